"""A check, a subscriber of events and a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click
from pydantic import Field

from codex_multi_role.checks.contract import CheckContext, CheckOptions, CheckResult, declare_check, no_time
from codex_multi_role.checks.data_file import read_document

DIARY = "diary.txt"


class WordLimitOptions(CheckOptions):
    path: str = Field(min_length=1, description="a text file of the workspace")
    most: int = Field(ge=1, description="the maximum number of words")


class WordLimitResult(CheckResult):
    status: Literal["short enough", "too long"]
    words: int


@declare_check(options=WordLimitOptions, result=WordLimitResult, max_seconds=no_time, read_only=True)
def word_limit(context: CheckContext) -> WordLimitResult:
    """Count the words of a file."""
    options = context.read_options(WordLimitOptions, "word_limit")
    words = len(read_document(context.workspace, options.path, "check word_limit: path").split())
    return WordLimitResult(status="too long" if words > options.most else "short enough", words=words)


@contextmanager
def keep_diary() -> Iterator[Callable[[dict[str, Any]], None]]:
    """Add a line to ``diary.txt`` beside the runs when a run ends."""

    def take(event: dict[str, Any]) -> None:
        if event["type"] == "run_ended":
            folder = Path(event["folder"])
            with (folder.parent / DIARY).open("a") as file:
                file.write(f"{event['at']} {folder.name}: {event['outcome']}\n")

    yield take


@click.command(short_help="Print how each run ended.")
@click.option("--runs-dir", type=click.Path(path_type=Path), default="runs", help="The folder of the runs.")
def diary(runs_dir: Path) -> None:
    """Print the diary of a folder of runs."""
    file = runs_dir / DIARY
    click.echo(file.read_text() if file.exists() else "No run has ended yet.\n", nl=False)
