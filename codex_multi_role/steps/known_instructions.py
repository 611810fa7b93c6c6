"""What a thread still has of a role's instructions, so that a later prompt does not repeat them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Self

from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import TurnFolder
from codex_multi_role.steps.turn_record import TurnPrompt

KEPT_CHARACTERS = 16_000
"""Codex keeps the latest 80,000 bytes of prompts when it compacts a thread (measured on 0.163.0), in any script."""
INSTRUCTIONS = "instructions"
"""The key in ``turn.json``."""


@dataclass(frozen=True)
class KnownInstructions:
    """``digest`` as in `TurnPrompt`, empty if unknown; ``turn``: whose prompt has them.

    ``characters``: of that prompt and all later ones.
    """

    digest: str = ""
    turn: int = 0
    characters: int = 0

    @classmethod
    def of(cls, latest: TurnFolder | None, threads: Collection[str]) -> Self:
        """What the thread has after the instance's ``latest`` turn; nothing is known of any other thread."""
        result = latest.result() if latest else {}
        return cls(**result.get(INSTRUCTIONS, {})) if result.get("thread_id") in threads else cls()

    def suffice_for(self, asked: TurnPrompt) -> bool:
        """Whether the prompt may leave its instructions out. They must survive a compaction before it is answered."""
        within = self.characters + len(asked.texts.when_known) <= KEPT_CHARACTERS
        return bool(asked.texts.instructions) and self.digest == asked.texts.instructions and within

    def after(self, asked: TurnPrompt, sent: str, answered_turn: int | None) -> Self:
        """The state after ``sent``. A turn that is not answered may have left all of its prompt in the thread, or none.

        Other instructions replace these, even those of a step's own prompt, because the last ones given apply.
        """
        follows = sent == asked.texts.when_known or asked.follows.repair + asked.follows.step > 0
        same = asked.texts.instructions != "" and asked.texts.instructions == self.digest
        if follows or (same and answered_turn is None):
            return replace(self, characters=self.characters + len(sent))
        if answered_turn is None or not asked.texts.instructions:
            return type(self)()
        return type(self)(asked.texts.instructions, answered_turn, len(sent))

    def as_json(self) -> Json:
        return asdict(self)
