"""Called flows that workers walk: what a run tells them, and what it sees of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from codex_multi_role.errors import ExitCode
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps.budget import Limits
from codex_multi_role.workspace import Snapshots

CALL_FILE = "call.json"
"""In the folder of a run that another run called: its `StepOutcome`, once its flow has ended."""


@dataclass(frozen=True)
class PlacedCall:
    """A called flow to be walked as the run ``run_id``, from the workspace's snapshot ``tree``.

    ``unit``: the key of the calling item. ``tolerant``: a failing step ends the walk and is an outcome.
    """

    run_id: str
    unit: str
    flow: str
    goal: str
    inputs: Mapping[str, Any]
    cycles: int
    tolerant: bool
    tree: str
    limits: Limits


@dataclass(frozen=True)
class PlacedRun:
    """Such a run as it is now. ``is_active``: a process works on it; ``ending``: None until it ended or was parked."""

    is_active: bool = False
    ending: ExitCode | None = None
    outcome: str = ""
    reason: str = ""
    resets_at: str = ""
    limits: Limits = field(default_factory=Limits)
    totals: Mapping[str, float] = field(default_factory=dict)


class CallPlacer(Protocol):
    """Submits called flows to workers. Every method raises `StorageError`. Threads may share it."""

    def submit(self, call: PlacedCall) -> None:
        """Submit the call; nothing happens if its run already exists."""

    def find(self, run_id: str) -> PlacedRun | None: ...

    def resume(self, run_id: str, limits: Limits) -> None:
        """Let a worker continue a run that ended early or was parked, with these limits."""

    def outcome(self, run_id: str, copy: Snapshots | None) -> Json | None:
        """The `StepOutcome` of a run whose flow has ended; None if its flow has not. Its files go into the ``copy``."""

    def waiting(self) -> AbstractContextManager[None]:
        """Around waiting for such a run, so that another one may use this process's place meanwhile."""
