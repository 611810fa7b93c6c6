"""What a check is, and what it receives."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from codex_multi_role.checks.check_result import as_json
from codex_multi_role.errors import CheckFailed, RunInterrupted, UsageError
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.workspace import Workspace, Worktrees
from codex_multi_role.workspace.commands import Sandbox, no_sandbox

if TYPE_CHECKING:
    from codex_multi_role.checks.interpreter import Interpreter


@dataclass(frozen=True)
class RunFacts:
    """The run so far. ``unit``: the check's own unit key.

    ``turns``: the ``turn.json`` of each turn that the run paid for, with its ``role``. ``searches_web``: whether the
    role of that name has Codex's own web search.
    """

    run_id: str
    flow: str
    started_at: str
    folder: Path
    unit: str
    turns: Sequence[Mapping[str, Any]]
    searches_web: Callable[[str], bool] = lambda _: False


def _no_run() -> RunFacts:
    raise UsageError("this check can only run within a run")


def _no_settings() -> Any:  # noqa: ANN401 - any settings model
    raise UsageError("this check has no settings file")


@dataclass(frozen=True)
class CheckContext:
    """Everything a check may use.

    ``folder`` receives this visit's artifacts (``runs/<id>/tests/003``); pass text for people through ``redact``.
    ``sandbox`` wraps a command so that it can write only to the workspace and to the given folder. ``options`` is the
    step's ``with``. ``worktrees`` are the run's copies of the workspace, ``run`` returns the facts of the run,
    ``settings`` those declared by the check. ``python`` runs the project's tests, None if it is
    still to be found. ``stopping`` is set when the run must stop: pass it to the commands you run.
    """

    workspace: Workspace
    folder: Path
    environment: Mapping[str, str]
    deadline_seconds: float
    sandbox: Sandbox = no_sandbox
    options: Mapping[str, object] = field(default_factory=dict)
    stopping: Event = field(default_factory=Event)
    worktrees: Worktrees | None = None
    redact: Redactor = field(default_factory=lambda: Redactor({}))
    run: Callable[[], RunFacts] = _no_run
    settings: Callable[[], Any] = _no_settings
    python: Interpreter | None = None


def in_copy(context: CheckContext, key: str) -> CheckContext:
    """The same context in the copy with that key; without a key, the context itself. Raises UsageError."""
    if not key:
        return context
    if context.worktrees is None:
        raise UsageError(f"no copy {key!r} of the workspace")
    context.worktrees.prepare(key)  # only if the run has moved to another machine since
    return replace(context, workspace=context.worktrees.open(key).workspace)


# A check's result has a `status`. A bad verdict is a result; CheckFailed means that there is no verdict.
CheckFunction = Callable[[CheckContext], BaseModel | dict[str, object]]
MaxSeconds = Callable[[Mapping[str, object], float], float]


def deadline(options: Mapping[str, object], deadline_seconds: float) -> float:
    """The `max_seconds` of a check that declares nothing else."""
    return deadline_seconds


@dataclass(frozen=True)
class Settings:
    """A YAML file beside the catalog, or otherwise the packaged one of that name, and its model."""

    file: str
    model: type[BaseModel]


@dataclass(frozen=True)
class Check:
    """A check, and what must be known about it before a run.

    ``options``: the model of the step's ``with``, None if the check does not declare it. ``max_seconds(options,
    deadline_seconds)``: the most that it takes, from the options known before the run, not yet validated.
    ``read_only``: it does not change the workspace on purpose; what tests leave behind does not count. ``settings`` are
    validated before a run and kept with it. ``uses_python``: it runs tests with the project's Python, which needs
    pytest and coverage for it. ``result``: the model of what it returns, None if that may be any JSON object.
    """

    run: CheckFunction
    options: type[BaseModel] | None = None
    result: type[BaseModel] | None = None
    max_seconds: MaxSeconds = deadline
    read_only: bool = False
    settings: Settings | None = None
    uses_python: bool = False

    def __call__(self, context: CheckContext) -> dict[str, object]:
        result = self.run(context)
        return as_json(result) if isinstance(result, BaseModel) else result


def declare_check(
    *,
    options: type[BaseModel] | None = None,
    result: type[BaseModel] | None = None,
    max_seconds: MaxSeconds = deadline,
    read_only: bool = False,
    settings: Settings | None = None,
    uses_python: bool = False,
) -> Callable[[CheckFunction], Check]:
    """Make a `Check` of a function."""
    return lambda run: Check(run, options, result, max_seconds, read_only, settings, uses_python)


def no_time(options: Mapping[str, object], deadline_seconds: float) -> float:
    """For `max_seconds`: the duration of a check that waits for nothing is negligible."""
    return 0.0


def at_most_own(options: Mapping[str, object], deadline_seconds: float) -> float:
    """For `max_seconds`: the option ``timeout_seconds``, which cannot exceed the deadline."""
    own = options.get("timeout_seconds")
    return min(own, deadline_seconds) if isinstance(own, int | float) else deadline_seconds


class TimeLeft:
    """The deadline of a check that works long in the run's own process, where nothing else would end it.

    It counts from here.
    """

    def __init__(self, context: CheckContext, check: str) -> None:
        self._context = context
        self._check = check
        self._until = time.monotonic() + context.deadline_seconds

    def require(self) -> None:
        """Raise `CheckFailed` after the deadline, `RunInterrupted` if the run must stop."""
        if self._context.stopping.is_set():
            raise RunInterrupted
        if time.monotonic() > self._until:
            raise CheckFailed(f"check {self._check}: took longer than {self._context.deadline_seconds:g} s")
