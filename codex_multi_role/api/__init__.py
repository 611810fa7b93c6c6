"""The public API: run a team, look at what runs left, and write a team in Python.

`run` takes a goal and options as keywords, and returns a `ReportedRun`; `load_run` and `runs` give earlier runs. The
names are loaded on first use, because a run of the command line needs only `api.running`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codex_multi_role.api.python_team import Flow, Role, Route, Step, Team
    from codex_multi_role.api.recorded_runs import ReportedRun, Run, Turn, load_run, runs
    from codex_multi_role.api.run_goal import fork, rerun, restart, resume, run
    from codex_multi_role.api.running import answer, cancel_task
    from codex_multi_role.run_options import RunOptions, RunReport

_MODULES = {
    "api.python_team": ("Flow", "Role", "Route", "Step", "Team"),
    "api.recorded_runs": ("ReportedRun", "Run", "Turn", "load_run", "runs"),
    "api.run_goal": ("fork", "rerun", "restart", "resume", "run"),
    "api.running": ("answer", "cancel_task"),
    "run_options": ("RunOptions", "RunReport"),
}
_MODULE_OF = {name: f"codex_multi_role.{module}" for module, names in _MODULES.items() for name in names}

__all__ = [
    "Flow",
    "ReportedRun",
    "Role",
    "Route",
    "Run",
    "RunOptions",
    "RunReport",
    "Step",
    "Team",
    "Turn",
    "answer",
    "cancel_task",
    "fork",
    "load_run",
    "rerun",
    "restart",
    "resume",
    "run",
    "runs",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name refers to
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
