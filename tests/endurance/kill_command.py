"""The command that kills processes at every place of their work, or at some, and compares what is left."""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import click

from tests.support.databases import running_server

MAX_MISSED = 0.25
"""The share of places that need not be reached: how often a process looks, and so how many there are, varies."""


class Trials(Protocol):
    """The same work again and again. What it leaves has a method ``differences`` from what it should leave."""

    def undisturbed(self) -> tuple[Any, int]:
        """What should be left, and how many places there are to kill at."""

    def killed_at(self, place: int) -> tuple[Any, bool]:
        """What is left in the end, and whether the process got to that place and was killed there."""


@dataclass(frozen=True)
class Kill:
    """What was wrong after a kill at that place."""

    place: int
    problems: Sequence[str]
    is_reached: bool

    def __str__(self) -> str:
        missed = [] if self.is_reached else ["not reached"]
        return f"{self.place:4}  {'; '.join([*missed, *self.problems]) or 'as undisturbed'}"


def try_places(trials: Trials, places: Sequence[int], expected: object, jobs: int) -> Iterator[Kill]:
    """A kill at each place, ``jobs`` of them at once."""
    with ThreadPoolExecutor(jobs) as pool:
        for place, (left, is_reached) in zip(places, pool.map(trials.killed_at, places), strict=True):
            yield Kill(place, left.differences(expected), is_reached)


def failures(kills: Sequence[Kill]) -> list[str]:
    """What is wrong with them, in words; too many that were not reached show nothing, so they count as well."""
    found = [str(kill) for kill in kills if kill.problems]
    missed = sum(not kill.is_reached for kill in kills)
    if missed > MAX_MISSED * len(kills):
        found.append(f"{missed} of {len(kills)} places were not reached")
    return found


def kill_command(name: str, described: str | None, make: Callable[[str, Path], Trials]) -> click.Command:
    """The command; ``make`` gets the address of a server and a folder."""

    @click.command(help=described)
    @click.option("--points", type=int, default=0, help="Try so many, chosen at random; 0 tries all.")
    @click.option("--seed", type=int, default=0)
    @click.option("--only", type=int, multiple=True, help="Try only this point; repeatable.")
    @click.option("--jobs", type=int, default=os.cpu_count() or 1)
    def main(points: int, seed: int, only: Sequence[int], jobs: int) -> None:
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        kills = []
        with running_server() as server:
            trials = make(server.url, folder)
            expected, count = trials.undisturbed()
            click.echo(f"{count} places to kill at; undisturbed: {expected}")
            chosen = only or (random.Random(seed).sample(range(count), points) if points else range(count))
            for kill in try_places(trials, sorted(chosen), expected, jobs):
                click.echo(kill)
                kills.append(kill)
        reached, wrong = sum(kill.is_reached for kill in kills), sum(bool(kill.problems) for kill in kills)
        click.echo(f"{reached} kills, {wrong} wrong; {len(kills) - reached} places not reached")
        if failures(kills):
            sys.exit(1)
        shutil.rmtree(folder)

    return main
