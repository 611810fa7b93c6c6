"""A team of Codex agents on one goal: defined in YAML, run as real processes, recorded turn by turn.

The public names are loaded on first use, so that importing the package is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from codex_multi_role.version import __version__

if TYPE_CHECKING:
    from codex_multi_role.api import RunOptions, RunReport, answer, cancel_task, fork, restart, resume, run
    from codex_multi_role.catalog import RoleSpec, RoleSpecCatalog
    from codex_multi_role.systems.plan_solve.plan_solver import PlanSolved, PlanSolver, create_plan_solver

_PUBLIC = {
    "PlanSolved": "systems.plan_solve.plan_solver",
    "PlanSolver": "systems.plan_solve.plan_solver",
    "RoleSpec": "catalog",
    "RoleSpecCatalog": "catalog",
    "RunOptions": "api",
    "RunReport": "api",
    "answer": "api",
    "cancel_task": "api",
    "create_plan_solver": "systems.plan_solve.plan_solver",
    "fork": "api",
    "restart": "api",
    "resume": "api",
    "run": "api",
}

__all__ = [
    "PlanSolved",
    "PlanSolver",
    "RoleSpec",
    "RoleSpecCatalog",
    "RunOptions",
    "RunReport",
    "__version__",
    "answer",
    "cancel_task",
    "create_plan_solver",
    "fork",
    "restart",
    "resume",
    "run",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562: the type depends on the name
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
