"""`run`, for a goal with options as keywords, or for `RunOptions`; and the other calls that start work on a run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import codex_multi_role.lifecycle.running as running
from codex_multi_role.api.python_team import Team
from codex_multi_role.api.recorded_runs import RUNS_DIR, OnTypedEvent, ReportedRun, untyped, worked_on
from codex_multi_role.errors import UsageError
from codex_multi_role.reading.nearest import no_such
from codex_multi_role.run_folder import AskPerson, RunFolder
from codex_multi_role.run_options import GROUPS, RunOptions, options_by_name, options_for

if TYPE_CHECKING:
    from codex_multi_role.option_keywords import ForkKeywords, ResumeKeywords, RunKeywords


def run(
    goal: str | RunOptions = "",
    on_event: OnTypedEvent | running.OnEvent | None = None,
    ask_person: AskPerson | None = None,
    *,
    team: Team | None = None,
    **options: Unpack[RunKeywords],
) -> ReportedRun:
    """Run a flow for a goal and wait until it ends. ``options``: fields of `RunOptions`, with texts for paths as well.

    ``on_event`` gets every event, in order: an object of `codex_multi_role.events`, or, if the first argument is
    `RunOptions`, its JSON record. ``ask_person`` answers reviews. Without it, or if it returns None, the run parks:
    `answer` the question and `resume`. ``team``: roles and a flow written in Python; the run keeps them as YAML.

    Raises `UsageError`, `CodexUnavailable` and `StorageError` for problems found before anything starts. The report
    contains all later failures.
    """
    require_arguments(options, "goal", "team", on_event=on_event, ask_person=ask_person)
    told: Callable[[Any], None] | None = on_event
    if team is not None and not isinstance(team, Team):
        raise UsageError(f"team must be a Team, not {team!r}")
    if isinstance(goal, RunOptions):
        if team is not None or options:
            raise UsageError("run takes either RunOptions or options as keywords, not both")
        return ReportedRun.of(running.run(goal, told, ask_person))
    given = RunOptions(goal=goal, **options)
    if team is None:
        return ReportedRun.of(running.run(given, untyped(told), ask_person))
    if given.place.roles is not None:
        raise UsageError("run takes either team or roles, not both")
    with tempfile.TemporaryDirectory(prefix="codex-multi-role-team-") as name:
        team.write(Path(name))
        own = given.changed(roles=name, flow=options.get("flow") or team.flow_name)
        return ReportedRun.of(running.run(own, untyped(told), ask_person))


def resume(
    reference: str,
    *,
    runs_dir: Path | str = RUNS_DIR,
    changes: ResumeKeywords | None = None,
    on_event: running.OnEvent | None = None,
    ask_person: AskPerson | None = None,
    **options: Unpack[ResumeKeywords],
) -> ReportedRun:
    """Resume a run after its last recorded turn. ``options``, or ``changes``, override its recorded options.

    Without them, a run that has finished is reported as it ended, and nothing is started. Raises `RunNotFound`,
    `RunBusy`, and everything that `run` raises.
    """
    require_arguments(options, "changes", on_event=on_event, ask_person=ask_person)
    more: ResumeKeywords = {**options_by_name(changes or {}), **options}  # type: ignore[typeddict-item]  # checked there
    return worked_on(RunFolder.find(runs_dir, reference).path, running.resume, on_event, ask_person, changes=more)


def fork(
    reference: str,
    *,
    runs_dir: Path | str = RUNS_DIR,
    start: str | None = None,
    task: str | None = None,
    changes: ForkKeywords | None = None,
    on_event: running.OnEvent | None = None,
    ask_person: AskPerson | None = None,
    **options: Unpack[ForkKeywords],
) -> ReportedRun:
    """Start a run that shares the past of another up to ``start`` (``STEP[:VISIT]``), and wait until it ends.

    Turns, tests, handoffs and role threads up to that point come from the other run. A new folder gets the workspace as
    it was then. With ``task``, named as in `cancel_task`, that ended task is done again instead, with the tasks that
    need it and everything after them; the results of all others are kept. ``options``, or ``changes``, override that
    run's options. Raises everything that `resume` raises; `RunBusy` only with ``task``, because a run can be forked
    while it is running.
    """
    require_arguments(options, "start", "task", "changes", on_event=on_event, ask_person=ask_person)
    more: ForkKeywords = {**options_by_name(changes or {}), **options}  # type: ignore[typeddict-item]  # checked there
    folder = RunFolder.find(runs_dir, reference).path
    return worked_on(folder, running.fork, on_event, ask_person, start=start, task=task, changes=more)


def require_arguments(options: Mapping[str, object], *others: str, **called: object) -> None:
    """Raise `UsageError` for a name that is neither of an option nor of another argument, and for no function."""
    table = options_for(options)
    for name in options.keys() - table.keys() - {*GROUPS, "added"}:
        raise UsageError(*no_such("argument", name, [*others, *called, "added", *table]))
    for name, function in called.items():
        if function is not None and not callable(function):
            raise UsageError(f"{name} must be a function, not {function!r}")
