"""What a turn is asked, and what it leaves for the journal."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Self

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.flow import ExpectedAnswer
from codex_multi_role.reading.json_types import Json

CURRENT_THREAD = ""
NEW_THREAD = "new"

COMPLETED, DECLINED, GAVE_UP, INVALID, UNFINISHED = "completed", "declined", "gave_up", "invalid_reply", "unfinished"
"""The ``status`` of an answered turn; that of any other turn is Codex's."""
WEB_SEARCHES = "web_searches"
"""The handoff field with the number of the role's web searches; missing without any."""


@dataclass(frozen=True)
class PromptTexts:
    """What a prompt says, by what its thread knows.

    ``when_forgotten`` is sent instead of ``prompt`` if the thread has lost the role's earlier turns, ``when_known`` if
    it still has the ``instructions`` (a digest; empty if this prompt has none).
    """

    prompt: str
    when_forgotten: str
    when_known: str = ""
    instructions: str = ""

    def for_a_new_thread(self) -> PromptTexts:
        return replace(self, prompt=self.when_forgotten)


@dataclass(frozen=True)
class Follows:
    """The turn of the same ask that a prompt follows. ``repair``: the number of the repair turn, or 0.

    ``step``: how often the ask was continued.
    """

    repair: int = 0
    repair_of: int | None = None
    step: int = 0
    continues: int | None = None


@dataclass(frozen=True)
class TurnPrompt:
    """A prompt to send. ``visit``: the number of this ask of the role.

    ``instance``: the process that gets the prompt. ``thread``: `CURRENT_THREAD` of that process, `NEW_THREAD`, or an
    ID. ``opened``: an earlier attempt already switched to it. ``place``: the turn's journal position; ``unit``: the key
    of the asking unit. ``kept``: what tools stored for the handoff in earlier turns of this ask. ``expected``: what
    later steps need of the answer.
    """

    role: RoleSpec
    instance: str
    texts: PromptTexts
    visit: int
    cycle: int
    thread: str = CURRENT_THREAD
    opened: bool = False
    place: int = 0
    unit: str = ""
    follows: Follows = field(default_factory=Follows)
    kept: Json = field(default_factory=dict)
    expected: ExpectedAnswer = field(default_factory=ExpectedAnswer)

    def repairing(self, turn: TurnResult, prompt: str) -> TurnPrompt:
        """The prompt that asks again, on the same thread, for what ``turn`` should have answered."""
        follows = replace(self.follows, repair=self.follows.repair + 1, repair_of=turn.number, continues=None)
        return self._after(turn, prompt, follows)

    def continuing(self, turn: TurnResult, prompt: str) -> TurnPrompt:
        """The prompt that lets the role continue, on the same thread, what ``turn`` left unfinished."""
        return self._after(turn, prompt, replace(self.follows, step=self.follows.step + 1, continues=turn.number))

    def _after(self, turn: TurnResult, prompt: str, follows: Follows) -> TurnPrompt:
        thread = CURRENT_THREAD if self.thread == CURRENT_THREAD else turn.thread_id
        texts = replace(self.texts, prompt=prompt, instructions="")
        return replace(self, texts=texts, thread=thread, kept=turn.kept, follows=follows)


@dataclass(frozen=True)
class TurnResult:
    """What a turn left. ``number`` is 0 if a tolerated failure left no turn.

    ``status``, ``outcome`` and ``reason`` tell how it ended, in ``turn.json`` and in events: the outcome is one word,
    also the run's if the turn ends the run; the reason a sentence. ``handoff`` is None without a valid answer; that of
    a turn that `declined` holds the reason for the next role. ``ask_again``: a repair turn must follow or, if the turn
    is unfinished, one that continues it. ``snapshot``: the workspace before the turn's changes, empty if it could
    change nothing. ``protected_restored``: protected files that it changed and that were restored. ``kept``: what tools
    stored for the handoff, in this ask so far. ``web_searches``: how often the role itself searched the web.
    """

    role: str
    instance: str
    number: int
    thread_id: str
    status: str
    outcome: str
    reason: str
    handoff: Json | None = None
    ask_again: bool = False
    snapshot: str = ""
    changed_paths: list[str] = field(default_factory=list)
    protected_restored: list[str] = field(default_factory=list)
    kept: Json = field(default_factory=dict)
    web_searches: int = 0
    error: str = ""

    @classmethod
    def read(cls, result: Json) -> Self | None:
        """From a ``turn.json``; None if the turn was not answered, or another version wrote it."""
        with suppress(KeyError, TypeError):
            return cls(**result["recorded"])
        return None

    @property
    def answered(self) -> bool:
        """Whether Codex answered, even if the answer was of no use."""
        return self.status in (COMPLETED, DECLINED, GAVE_UP, INVALID, UNFINISHED)

    @property
    def declined(self) -> bool:
        """Whether the role answered that it cannot do its part."""
        return self.status == DECLINED

    @property
    def problem(self) -> str:
        """Why the turn left no answer, or why the role declined; empty for an answer."""
        return "" if self.status == COMPLETED else self.reason

    def as_json(self) -> Json:
        return asdict(self)
