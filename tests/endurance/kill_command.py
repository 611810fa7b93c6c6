"""The command that kills processes at every place of their work, or at some, and compares what is left."""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import click

from tests.support.databases import running_server

Places = Iterator[tuple[int, list[str]]]


class Undisturbed(Protocol):
    """Trials that first show what comes of an undisturbed one, and how many places it has."""

    def undisturbed(self) -> tuple[Any, int]: ...


def kill_command(
    name: str, described: str | None, make: Callable[[str, Path], Any], try_places: Callable[..., Places]
) -> click.Command:
    """The command; ``make`` gets the address of a server and a folder, and returns `Undisturbed` trials."""

    @click.command(help=described)
    @click.option("--points", type=int, default=0, help="Try so many, chosen at random; 0 tries all.")
    @click.option("--seed", type=int, default=0)
    @click.option("--only", type=int, multiple=True, help="Try only this point; repeatable.")
    @click.option("--jobs", type=int, default=os.cpu_count() or 1)
    def main(points: int, seed: int, only: Sequence[int], jobs: int) -> None:
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        with running_server() as server:
            trials: Undisturbed = make(server.url, folder)
            expected, count = trials.undisturbed()
            click.echo(f"{count} places to kill at; undisturbed: {expected}")
            chosen = only or (random.Random(seed).sample(range(count), points) if points else range(count))
            wrong = 0
            for place, problems in try_places(trials, sorted(chosen), expected, jobs):
                click.echo(f"{place:4}  {'; '.join(problems) or 'as undisturbed'}")
                wrong += bool(problems)
        click.echo(f"{len(chosen)} kills, {wrong} wrong")
        if wrong:
            sys.exit(1)
        shutil.rmtree(folder)

    return main
