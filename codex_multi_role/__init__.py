"""A team of Codex agents on one goal: defined in YAML, run as real processes, recorded turn by turn.

The public names are loaded on first use, so that importing the package is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from codex_multi_role.version import __version__

if TYPE_CHECKING:
    from codex_multi_role.api.python_team import Flow, Role, Route, Step, Team
    from codex_multi_role.api.recorded_runs import (
        RecordedTests,
        ReportedRun,
        Run,
        RunResult,
        RunTotals,
        Turn,
        load_run,
        runs,
    )
    from codex_multi_role.api.run_goal import fork, resume, run
    from codex_multi_role.api.run_handle import AsyncRunHandle, RunHandle, start, start_async
    from codex_multi_role.catalog import RoleSpec, RoleSpecCatalog
    from codex_multi_role.errors import (
        CodexMultiRoleError,
        CodexNotFound,
        CodexNotLoggedIn,
        CodexUnavailable,
        DefinitionError,
        ExitCode,
        RunBusy,
        RunNotFound,
        RunStatus,
        StorageError,
        UsageError,
    )
    from codex_multi_role.lifecycle.running import answer, cancel_task
    from codex_multi_role.option_keywords import PlaybookAsk
    from codex_multi_role.run_folder import Answer, Question, RunEvent, events
    from codex_multi_role.run_options import RunOptions, RunReport

_MODULES = {
    "api.python_team": ("Flow", "Role", "Route", "Step", "Team"),
    "api.recorded_runs": ("RecordedTests", "ReportedRun", "Run", "RunResult", "RunTotals", "Turn", "load_run", "runs"),
    "api.run_goal": ("fork", "resume", "run"),
    "api.run_handle": ("AsyncRunHandle", "RunHandle", "start", "start_async"),
    "lifecycle.running": ("answer", "cancel_task"),
    "option_keywords": ("PlaybookAsk",),
    "catalog": ("RoleSpec", "RoleSpecCatalog"),
    "errors": (
        *("CodexMultiRoleError", "CodexNotFound", "CodexNotLoggedIn", "CodexUnavailable", "DefinitionError"),
        *("ExitCode", "RunBusy", "RunNotFound", "RunStatus", "StorageError", "UsageError"),
    ),
    "run_folder": ("Answer", "Question", "RunEvent", "events"),
    "run_options": ("RunOptions", "RunReport"),
}
_PUBLIC = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Answer",
    "AsyncRunHandle",
    "CodexMultiRoleError",
    "CodexNotFound",
    "CodexNotLoggedIn",
    "CodexUnavailable",
    "DefinitionError",
    "ExitCode",
    "Flow",
    "PlaybookAsk",
    "Question",
    "RecordedTests",
    "ReportedRun",
    "Role",
    "RoleSpec",
    "RoleSpecCatalog",
    "Route",
    "Run",
    "RunBusy",
    "RunEvent",
    "RunHandle",
    "RunNotFound",
    "RunOptions",
    "RunReport",
    "RunResult",
    "RunStatus",
    "RunTotals",
    "Step",
    "StorageError",
    "Team",
    "Turn",
    "UsageError",
    "__version__",
    "answer",
    "cancel_task",
    "events",
    "fork",
    "load_run",
    "resume",
    "run",
    "runs",
    "start",
    "start_async",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562: the type depends on the name
    if name not in _PUBLIC:
        from codex_multi_role.reading.registry import hint  # here: the package is to be cheap to import

        if moved := "" if name.startswith("_") else hint(name):
            raise ImportError(f"{name} has moved: {moved}")  # `from … import` would hide that of an AttributeError
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
