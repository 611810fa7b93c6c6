"""What one attempt at a turn depends on, noted while it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codex_multi_role.codex.running_turn import Observed
from codex_multi_role.extensions.replays.reuse.turn_inputs import TurnBasis, TurnLook, position_of
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps.turn import Attempt
from codex_multi_role.steps.turn_record import TurnResult

if TYPE_CHECKING:
    from codex_multi_role.extensions.replays.reuse.observer import Reuse


class AttemptBasis:
    """The `AttemptObserver` that adds the key ``basis`` to ``turn.json``."""

    def __init__(self, reuse: Reuse, attempt: Attempt) -> None:
        run, role = attempt.run, attempt.role
        self._reuse, self._attempt = reuse, attempt
        self._look = TurnLook(role, run.workspace, run.snapshots, attempt.stay)
        self._inputs = reuse.read_role(role, run.workspace.root)

    def began(self) -> None:
        attempt = self._attempt
        if attempt.role.writes_itself:
            self._look.note_hidden_files()
        if attempt.forgot and self._reuse.has_taken(attempt.asked.thread):
            attempt.warn("its conversation of the earlier run was not found; it starts another with its latest handoff")

    def observe(self, event: Observed) -> None:
        self._look.observe(event)

    def called(self, tool: str) -> None:
        self._look.called.add(tool)

    @property
    def compares_workspace(self) -> bool:
        return self._look.has_looked

    def recorded(self, result: TurnResult, turn_id: str) -> Json:
        basis = self._basis().as_json() if result.answered else None
        self._reuse.note(result.thread_id, turn_id, self._attempt.folder)
        return {"basis": basis}

    def _basis(self) -> TurnBasis:
        """What an answered turn depended on, for later runs."""
        attempt, look = self._attempt, self._look
        seen = attempt.before if attempt.role.writes_itself else look.seen
        inputs = self._reuse.inputs(attempt.run, attempt.asked, self._inputs)
        refused = self._difference_of_attempt() or look.refusal(self._inputs, seen, attempt.after)
        basis = TurnBasis(position_of(attempt.asked), inputs, refused=refused)
        return replace(basis, workspace=seen, hidden=look.hidden, after=attempt.after) if look.has_looked else basis

    def _difference_of_attempt(self) -> str:
        """What a first attempt on an untouched conversation would not have remembered, or empty."""
        attempt = self._attempt
        if attempt.number > 1 or attempt.cut_short is not None:
            return "it was answered at a later attempt"
        if attempt.forgot:
            return "its conversation was lost"
        told = self._inputs.instructions != attempt.client.thread.instructions
        return "the project instructions changed since its conversation started" if told else ""
