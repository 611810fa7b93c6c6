"""`run`, for a goal with options as keywords, or for `RunOptions`; and the other calls that start work on a run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Unpack, overload

import codex_multi_role.lifecycle.running as running
from codex_multi_role.api.python_team import Team
from codex_multi_role.api.recorded_runs import OnTypedEvent, ReportedRun, untyped
from codex_multi_role.errors import UsageError
from codex_multi_role.run_folder import AskPerson
from codex_multi_role.run_options import RunOptions, RunReport

if TYPE_CHECKING:
    from codex_multi_role.option_keywords import RunKeywords

Given = ParamSpec("Given")


@overload
def run(
    goal: RunOptions, on_event: running.OnEvent | None = None, ask_person: AskPerson | None = None
) -> ReportedRun: ...


@overload
def run(
    goal: str = "",
    on_event: OnTypedEvent | None = None,
    ask_person: AskPerson | None = None,
    *,
    team: Team | None = None,
    **options: Unpack[RunKeywords],
) -> ReportedRun: ...


def run(
    goal: str | RunOptions = "",
    on_event: Callable[[Any], None] | None = None,
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
    if isinstance(goal, RunOptions):
        if team is not None or options:
            raise UsageError("run takes either RunOptions or options as keywords, not both")
        return ReportedRun.of(running.run(goal, on_event, ask_person))
    for name, called in (("on_event", on_event), ("ask_person", ask_person)):
        if called is not None and not callable(called):
            raise UsageError(f"{name} must be a function, not {called!r}")
    if team is not None and not isinstance(team, Team):
        raise UsageError(f"team must be a Team, not {team!r}")
    given = RunOptions(goal=goal, **options)
    if team is None:
        return ReportedRun.of(running.run(given, untyped(on_event), ask_person))
    if given.place.roles is not None:
        raise UsageError("run takes either team or roles, not both")
    with tempfile.TemporaryDirectory(prefix="codex-multi-role-team-") as name:
        team.write(Path(name))
        own = given.changed(roles=name, flow=options.get("flow") or team.flow_name)
        return ReportedRun.of(running.run(own, untyped(on_event), ask_person))


def as_reported_run(call: Callable[Given, RunReport]) -> Callable[Given, ReportedRun]:
    """``call``, whose report knows everything that the run left."""

    @wraps(call)
    def with_contents(*args: Given.args, **keywords: Given.kwargs) -> ReportedRun:
        return ReportedRun.of(call(*args, **keywords))

    return with_contents


resume = as_reported_run(running.resume)
fork = as_reported_run(running.fork)
