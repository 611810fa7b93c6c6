"""What extensions add to the commands for a run: options, where else runs are, and what follows when one has ended.

The options are looked up only if an argument, a variable or a key of a settings file is none of the core's, and in a
workflow of GitHub, so that no other run waits for this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from codex_multi_role.cli.output import say
from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder.folder import SHARED

if TYPE_CHECKING:
    from codex_multi_role.cli.run_reference import RemoteRuns
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
