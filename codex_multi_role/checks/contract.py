"""What a check is, and what it receives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from codex_multi_role.errors import UsageError
from codex_multi_role.redaction import Redactor
from codex_multi_role.workspace import Workspace, Worktrees

if TYPE_CHECKING:
    from codex_multi_role.checks.interpreter import Interpreter

Sandbox = Callable[[Sequence[str], Path], list[str]]


def no_sandbox(argv: Sequence[str], writable: Path) -> list[str]:
    """The disabled sandbox: ``argv`` unchanged."""
    return list(argv)


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
    raise UsageError("this check belongs to a run")


def _no_settings() -> Any:  # noqa: ANN401 - any settings model
    raise UsageError("this check has no settings here")


@dataclass(frozen=True)
class CheckContext:
    """Everything a check may use.

    ``folder`` receives this visit's artifacts (``runs/<id>/tests/003``); pass text for people through ``redact``.
    ``sandbox`` wraps a command so that it can write only to the workspace and to the given folder. ``options`` is the
    step's ``with``. ``worktrees`` are the run's copies of the workspace, ``run`` returns the facts of the run,
    ``settings`` the settings that the check is `configured_by`. ``python`` runs the project's tests, None if it is
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
        raise UsageError(f"there is no copy {key!r} of the workspace")
    return replace(context, workspace=context.worktrees.open(key).workspace)


# A check's result is JSON with a `status`. A bad verdict is a result; CheckFailed means that there is no verdict.
CheckFunction = Callable[[CheckContext], dict[str, object]]
Longest = Callable[[Mapping[str, object], float], float]
_LONGEST: dict[CheckFunction, Longest] = {}


def lasts(longest: Longest) -> Callable[[CheckFunction], CheckFunction]:
    """Declare the maximum seconds that a check takes: ``longest(options, deadline_seconds)``.

    ``options`` are those known before the run, not yet validated. A check that declares nothing takes the deadline.
    """

    def declared(check: CheckFunction) -> CheckFunction:
        _LONGEST[check] = longest
        return check

    return declared


def longest_seconds(check: CheckFunction, options: Mapping[str, object], deadline_seconds: float) -> float:
    """The maximum seconds that ``check`` takes, as declared by `lasts`."""
    return _LONGEST[check](options, deadline_seconds) if check in _LONGEST else deadline_seconds


@dataclass(frozen=True)
class Settings:
    """A YAML file beside the catalog, or otherwise the packaged one of that name, and its model."""

    file: str
    model: type[BaseModel]


_SETTINGS: dict[CheckFunction, Settings] = {}


def configured_by(file: str, model: type[BaseModel]) -> Callable[[CheckFunction], CheckFunction]:
    """Declare that the check reads its settings from ``file``, which is validated before a run and kept with it."""

    def declared(check: CheckFunction) -> CheckFunction:
        _SETTINGS[check] = Settings(file, model)
        return check

    return declared


def settings_of(check: CheckFunction) -> Settings | None:
    """The settings declared for ``check``, or None."""
    return _SETTINGS.get(check)


_LOOKING: set[CheckFunction] = set()


def only_looks(check: CheckFunction) -> CheckFunction:
    """Declare that the check does not change the workspace on purpose; what tests leave behind does not count."""
    _LOOKING.add(check)
    return check


def may_change_workspace(check: CheckFunction) -> bool:
    """Whether the check may change the workspace, which is true of each that is not declared `only_looks`."""
    return check not in _LOOKING


_USING_PYTHON: set[CheckFunction] = set()


def uses_python(check: CheckFunction) -> CheckFunction:
    """Declare that the check runs tests with the project's Python, which needs pytest and coverage for it."""
    _USING_PYTHON.add(check)
    return check


def needs_python(check: CheckFunction) -> bool:
    """Whether the check declares `uses_python`."""
    return check in _USING_PYTHON


def no_time(options: Mapping[str, object], deadline_seconds: float) -> float:
    """For `lasts`: the duration of a check that waits for nothing is negligible."""
    return 0.0


def at_most_own(options: Mapping[str, object], deadline_seconds: float) -> float:
    """For `lasts`: the option ``timeout_seconds``, which cannot exceed the deadline."""
    own = options.get("timeout_seconds")
    return min(own, deadline_seconds) if isinstance(own, int | float) else deadline_seconds
