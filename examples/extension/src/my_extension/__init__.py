"""A check with a settings file, an event, an option of a run, a subscriber of events and two commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import click
from pydantic import BaseModel, Field

from codex_multi_role.plugins import (
    AddedEvent,
    AddedOptions,
    CheckContext,
    CheckOptions,
    CheckResult,
    RunFolder,
    Section,
    Settings,
    declare_check,
    load_settings,
    no_time,
    option,
    read_document,
)

DIARY = "diary.txt"


class WordLimits(BaseModel, extra="forbid"):
    """The file ``word_limit.yaml`` beside the catalog."""

    most: int = Field(ge=1)


@dataclass(frozen=True)
class WordsCounted(AddedEvent):
    path: str = ""
    words: int = 0

    def in_words(self) -> str:
        return f"{self.path} has {self.words} words"

    def figures(self) -> Mapping[str, int | float | str]:
        return {"words": self.words}


@dataclass(frozen=True, kw_only=True)
class DiaryOptions(AddedOptions):
    section: ClassVar = Section.OUTPUT

    remark: str = option("", "A remark for the diary.", "TEXT")


class WordLimitOptions(CheckOptions):
    path: str = Field(min_length=1, description="a text file of the workspace")


class WordLimitResult(CheckResult):
    bad = ("too long",)

    status: Literal["short enough", "too long"]
    words: int


@declare_check(
    options=WordLimitOptions,
    result=WordLimitResult,
    max_seconds=no_time,
    read_only=True,
    settings=Settings("word_limit.yaml", WordLimits),
)
def word_limit(context: CheckContext) -> WordLimitResult:
    """Count the words of a file."""
    options = context.read_options(WordLimitOptions, "word_limit")
    words = len(read_document(context.workspace, options.path, "check word_limit: path").split())
    context.publish(WordsCounted(options.path, words))
    return WordLimitResult(status="too long" if words > context.settings().most else "short enough", words=words)


@contextmanager
def keep_diary() -> Iterator[Callable[[dict[str, Any]], None]]:
    """Add a line to ``diary.txt`` beside the runs when a run ends."""

    def take(event: dict[str, Any]) -> None:
        if event["type"] == "run_ended":
            folder = RunFolder(Path(event["folder"]))
            remark = folder.record()["options"].get("remark", "")
            with (folder.path.parent / DIARY).open("a") as file:
                file.write(f"{event['at']} {folder.run_id}: {event['outcome']} {remark}".rstrip() + "\n")

    yield take


@click.command(short_help="Print how each run ended.")
@click.option("--runs-dir", type=click.Path(path_type=Path), default="runs", help="The folder of the runs.")
def diary(runs_dir: Path) -> None:
    """Print the diary of a folder of runs."""
    file = runs_dir / DIARY
    click.echo(file.read_text() if file.exists() else "No run has ended yet.\n", nl=False)


@click.command(short_help="Print the maximum number of words.")
@click.option("--roles", type=click.Path(path_type=Path), default="roles", help="The folder of the catalog.")
def limits(roles: Path) -> None:
    """Print how many words the check word_limit allows."""
    click.echo(load_settings("word_limit", roles).most)
