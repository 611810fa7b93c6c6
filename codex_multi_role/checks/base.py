"""What a check is given, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from codex_multi_role.redaction import Redactor
from codex_multi_role.workspace import Workspace, Worktrees

Sandbox = Callable[[Sequence[str], Path], list[str]]


def no_sandbox(argv: Sequence[str], writable: Path) -> list[str]:
    """The sandbox that is turned off: ``argv`` as it is."""
    return list(argv)


@dataclass(frozen=True)
class CheckContext:
    """Everything a check may use.

    ``folder`` takes this visit's artifacts (``runs/<id>/tests/003``), what is for people to read through ``redact``.
    ``sandbox`` wraps a command so that it can write only to the workspace and to the folder it is given. ``options`` is
    the step's ``with``. ``worktrees`` are the run's copies of the workspace. ``stopping`` is set when the run is to
    stop: give it to the commands you run.
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


# A check's result can be written as JSON and has a `status`. A bad verdict is a result; CheckFailed is for no verdict.
CheckFunction = Callable[[CheckContext], dict[str, object]]
Longest = Callable[[Mapping[str, object], float], float]
_LONGEST: dict[CheckFunction, Longest] = {}


def lasts(longest: Longest) -> Callable[[CheckFunction], CheckFunction]:
    """Declare how long a check takes at most: ``longest(options, deadline_seconds)``.

    ``options`` are those known before the run, not yet looked at. A check that declares nothing takes the deadline.
    """

    def declared(check: CheckFunction) -> CheckFunction:
        _LONGEST[check] = longest
        return check

    return declared


def longest_seconds(check: CheckFunction, options: Mapping[str, object], deadline_seconds: float) -> float:
    """The longest that ``check`` takes, as it declares."""
    return _LONGEST[check](options, deadline_seconds) if check in _LONGEST else deadline_seconds


def no_time(options: Mapping[str, object], deadline_seconds: float) -> float:
    """Of a check that waits for nothing: what it takes is not worth counting."""
    return 0.0


def at_most_own(options: Mapping[str, object], deadline_seconds: float) -> float:
    """Of a check with an option ``timeout_seconds``, which cannot exceed the deadline."""
    own = options.get("timeout_seconds")
    return min(own, deadline_seconds) if isinstance(own, int | float) else deadline_seconds
