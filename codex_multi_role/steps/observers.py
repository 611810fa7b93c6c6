"""What may observe the turns and checks of a run, and may take over what is known already."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from codex_multi_role.codex.running_turn import Observed
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps.turn_record import TurnPrompt, TurnResult

if TYPE_CHECKING:
    from codex_multi_role.steps.resources import RunResources, Stay
    from codex_multi_role.steps.turn import Attempt

CarryOut = Callable[[], Json]


class TurnObserver(Protocol):
    """Observes the turns and checks of one run, from several threads."""

    def take(self, run: RunResources, asked: TurnPrompt, *, may_decline: bool) -> TurnResult | None:
        """The turn, recorded in the run folder without asking for it; None if it must be asked.

        ``may_decline``: a refusal is also an answer.
        """

    def attempt(self, attempt: Attempt) -> AttemptObserver:
        """The observer of an attempt, which has a folder and the process that it will ask."""

    def check(
        self, run: RunResources, folder: Path, name: str, options: Mapping[str, object], carry_out: CarryOut, stay: Stay
    ) -> Json:
        """The result of the check ``name``: that of ``carry_out``, or an equal one; ``stay``: that of the check."""

    def hidden_files(self, run: RunResources) -> str:
        """A digest of what no snapshot has, before tests run beside turns; empty if the observer does not need it."""


class AttemptObserver(Protocol):
    """Observes one attempt at a turn. All moments come in this order."""

    def began(self) -> None:
        """Nothing has been sent. `Attempt.before` and ``forgot`` are known."""

    def observe(self, event: Observed) -> None: ...

    def called(self, tool: str) -> None:
        """The role calls one of the controller's tools."""

    @property
    def compares_workspace(self) -> bool:
        """Whether `Attempt.after` is needed, even if the role can change nothing."""

    def recorded(self, result: TurnResult, turn_id: str) -> Json:
        """The turn has ended, with Codex's id; returns further keys of ``turn.json``."""
