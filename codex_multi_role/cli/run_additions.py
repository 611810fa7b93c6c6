"""What extensions add to the commands for a run: options, where else runs are, and what follows when one has ended.

The options are looked up only if an argument, a variable or a key of a settings file is none of the core's, and in a
workflow of GitHub, so that no other run waits for this. What an extension opens is open until the command ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import click

from codex_multi_role.cli.output import say
from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.lifecycle.stopping import pause_run
from codex_multi_role.presentation.outcome import outcome_in_words
from codex_multi_role.presentation.recorded import RecordedRun, Records
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder import Answer, Question, Questions, Record, RunFolder
from codex_multi_role.run_folder.folder import SHARED

if TYPE_CHECKING:
    from codex_multi_role.cli.setting import Setting
    from codex_multi_role.presentation.course import Course
    from codex_multi_role.run_options import RunReport

EXTENDED = "codex_multi_role.extended"
"""Where a context says whether its command has the options of extensions."""
PLACES = "codex_multi_role.places"
"""Where it keeps the finders of runs whose option is given, with the values."""


@dataclass(frozen=True)
class RunAddition:
    """An entry of the group ``codex_multi_role.run_additions``. Its functions find the values in ``ctx.params``.

    ``settings``: its options, which are variables and keys of settings files, too. ``ended``: called when the run has
    ended; what it raises is printed. ``failed``: called for an error before the run, or instead of its end. ``left``:
    called if the run continues without this process.
    """

    settings: Sequence[Setting]
    ended: Callable[[click.Context, RunReport, Course], None]
    failed: Callable[[click.Context, CodexMultiRoleError], None]
    left: Callable[[click.Context], None]


class Told(NamedTuple):
    """What the commands say of a run elsewhere.

    ``who`` works on it, and ``where``; ``why`` nobody does yet, and that it ``waits``, as a sentence; ``lines`` of
    ``show``.
    """

    who: str = "-"
    where: str = ""
    why: str = ""
    waits: str = ""
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class RunFinder:
    """An entry of the group ``codex_multi_role.runs``: finds runs in another place than --runs-dir.

    ``setting``: the option that names the place. ``open``: from its value, the runs there, or None if it is none.
    ``arguments``: the option, as typed, from what ``run.json`` says of the place. ``column``: the heading of who works
    on a run. ``tell``: what is said of a run there, from its ``run.json``.
    """

    setting: Setting
    open: Callable[[Any], RemoteRuns | None]
    arguments: Callable[[Mapping[str, Any]], Sequence[str]] = lambda _: ()
    column: str = ""
    tell: Callable[[Mapping[str, Any]], Told] = lambda _: Told()


FINDERS: Registry[RunFinder] = Registry("place of runs", "codex_multi_role.runs", {})
ADDITIONS: Registry[RunAddition] = Registry("run option", "codex_multi_role.run_additions", {})


def place_column() -> str:
    """The heading of who works on the runs at the place that is given."""
    finder: RunFinder = next(finder for finder, _ in click.get_current_context().meta[PLACES])
    return finder.column


def told(record: Mapping[str, Any]) -> Told:
    """What is said of a run elsewhere, if this ``run.json`` is of one."""
    found = (finder.tell(record) for finder in (FINDERS.that_load() if SHARED in record else ()))
    return next((each for each in found if each != Told()), Told())


def added_settings() -> list[Setting]:
    """The options of all additions."""
    return [setting for each in ADDITIONS.that_load() for setting in each.settings]


def report_end(ctx: click.Context, report: RunReport, course: Course) -> None:
    """Let the additions report the end of the run. A failure here is printed and does not change how the run ended."""
    code = f"the exit code stays {report.exit_code}"
    for each in _additions(ctx):
        try:
            each.ended(ctx, report, course)
        except Exception as error:  # such as files of the run that can no longer be read
            say(f"warning: the run has ended and {code}, but the reports failed: {error}")


def report_failure(ctx: click.Context, error: CodexMultiRoleError) -> None:
    """Let the additions report an error before the run, or instead of its end."""
    for each in _additions(ctx):
        each.failed(ctx, error)


def report_leaving(ctx: click.Context) -> None:
    """Let the additions say what they do not do, because the run does not end in this process."""
    for each in _additions(ctx):
        each.left(ctx)


def _additions(ctx: click.Context) -> Iterator[RunAddition]:
    return ADDITIONS.that_load() if ctx.meta.get(EXTENDED) else iter(())


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


def give_answer(found: RunFolder | RemoteRun, key: str | None, answer: Answer) -> Question:
    """Answer the question ``key``, or the only open one. Raises `UsageError`, `StorageError`."""
    if isinstance(found, RunFolder):
        return Questions(found.path).answer(key, answer)
    return found.answer(approved=answer.approved, comment=answer.comment, question=key, values=answer.values)


def request_pause(found: RunFolder | RemoteRun) -> str:
    """Request that the run parks; returns a message with the result. Raises `UsageError`, `StorageError`."""
    if pause_run(found) if isinstance(found, RunFolder) else found.pause():
        return f"{found.run_id}: it parks once the turns at work have ended."
    record = (found if isinstance(found, RunFolder) else found.folder()).record()
    return f"{found.run_id}: {outcome_in_words(str(record['outcome']))}: it is parked already."


def all_records(here: Records, remote: RemoteRuns | None) -> list[RecordedRun]:
    """All runs, oldest first."""
    return here.look() if remote is None else remote.look(here)
