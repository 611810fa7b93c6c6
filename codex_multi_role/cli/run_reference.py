"""Which run a command means: one in --runs-dir or, with an option of an extension, also one that it finds elsewhere.

What an extension opens is open until the command ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import click

from codex_multi_role.cli.run_additions import PLACES
from codex_multi_role.presentation.recorded import RecordedRun, Records
from codex_multi_role.run_folder import Question, Record, RunFolder


class RemoteRun(Protocol):
    """A run that processes elsewhere work on, as it was when it was found.

    Every method raises `StorageError`, and `UsageError` for what is not possible now.
    """

    @property
    def run_id(self) -> str: ...

    def folder(self) -> RunFolder:
        """A copy of its folder, as it is saved now."""

    def follow(self) -> Iterator[Record]:
        """Yield the record of every event, also those to come, until the run ends or is parked."""

    def answer(self, *, approved: bool, comment: str, question: str | None, values: Mapping[str, object]) -> Question:
        """Answer the question with that key, or the only open one; return it with its answer."""

    def cancel(self) -> None:
        """Stop the run; it can be resumed. Raises `RunBusy` if it does not stop."""

    def pause(self) -> bool:
        """Park the run once the turns at work have ended; False if it is parked already."""

    def cancel_task(self, task: str, comment: str) -> str:
        """Cancel one task; return its unit."""

    def resume(self, changes: Mapping[str, Any]) -> object:
        """Let the run continue, with some of its options changed. Raises `RunBusy` if somebody works on it."""


class RemoteRuns(Protocol):
    """A place with such runs. Its text names it in messages. Every method raises `StorageError`."""

    def find(self, reference: str, runs_dir: Path) -> RunFolder | RemoteRun:
        """The run called so, of this place or of ``runs_dir``. Raises `RunNotFound`."""

    def look(self, here: Records) -> list[RecordedRun]:
        """All runs of both places, oldest first, without reading folders of this one."""

    def close(self) -> None: ...


def open_remote() -> RemoteRuns | None:
    """The runs at the place that an option of an extension names; None without one, or if there are no runs.

    Raises `UsageError`, `StorageError`.
    """
    context = click.get_current_context()
    remote = next(filter(None, (finder.open(value) for finder, value in context.meta.get(PLACES, ()))), None)
    if remote is not None:
        context.call_on_close(remote.close)
    return remote


def find_run(reference: str, runs_dir: Path) -> RunFolder:
    """The run's folder; of a run elsewhere, a copy of what was saved last.

    Raises `RunNotFound`, `UsageError`, `StorageError`.
    """
    found = find_either(reference, runs_dir)
    return found if isinstance(found, RunFolder) else found.folder()


def find_either(reference: str, runs_dir: Path) -> RunFolder | RemoteRun:
    """Like `find_run`, for commands that work on the two in different ways."""
    remote = open_remote()
    return RunFolder.find(runs_dir, reference) if remote is None else remote.find(reference, runs_dir)


def all_records(here: Records, remote: RemoteRuns | None) -> list[RecordedRun]:
    """All runs, oldest first."""
    return here.look() if remote is None else remote.look(here)
