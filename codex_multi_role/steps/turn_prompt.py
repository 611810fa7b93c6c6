"""A prompt to send: to whom, on which thread, and as which attempt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps.turn_result import TurnResult

CURRENT_THREAD = ""
NEW_THREAD = "new"


@dataclass(frozen=True)
class TurnPrompt:
    """A prompt to send. ``visit``: the number of this ask of the role; ``step``: how often it was continued.

    ``repair``: the number of the repair turn, or 0. ``instance``: the process that gets the prompt. ``thread``:
    `CURRENT_THREAD` of that process, `NEW_THREAD`, or an ID. ``opened``: an earlier attempt already switched to it.
    ``place``: the turn's journal position; ``unit``: the key of the asking unit. ``when_forgotten`` is sent instead if
    the thread has lost the role's earlier turns. ``kept``: what tools stored for the handoff in earlier turns of this
    ask.
    """

    role: RoleSpec
    instance: str
    prompt: str
    when_forgotten: str
    visit: int
    cycle: int
    thread: str = CURRENT_THREAD
    opened: bool = False
    place: int = 0
    repair: int = 0
    repair_of: int | None = None
    unit: str = ""
    step: int = 0
    continues: int | None = None
    kept: Json = field(default_factory=dict)


def repair_of(asked: TurnPrompt, prompt: str, turn: TurnResult) -> TurnPrompt:
    """The prompt that asks again, on the same thread, for what ``turn`` should have answered."""
    after = _after(asked, prompt, turn)
    return replace(after, repair=asked.repair + 1, repair_of=turn.turn, continues=None)


def continued(asked: TurnPrompt, prompt: str, turn: TurnResult) -> TurnPrompt:
    """The prompt that lets the role continue, on the same thread, what ``turn`` left unfinished."""
    return replace(_after(asked, prompt, turn), step=asked.step + 1, continues=turn.turn)


def _after(asked: TurnPrompt, prompt: str, turn: TurnResult) -> TurnPrompt:
    thread = CURRENT_THREAD if asked.thread == CURRENT_THREAD else turn.thread_id
    return replace(asked, prompt=prompt, thread=thread, kept=turn.kept)
