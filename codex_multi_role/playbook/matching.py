"""Selects the recorded turn that answers a requested one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff

from codex_multi_role.playbook.normalization import normalize
from codex_multi_role.playbook.recording import RecordedTurn
from codex_multi_role.playbook.request import Asked

NEAREST = "nearest"
MOST_LINES = 2_000
"""Maximum lines of a prompt in the search for the nearest one: more would take seconds."""


@dataclass(frozen=True)
class MatchedTurn:
    """The turn to play, or None. ``difference`` from the recording: one line; ``diff``: of the prompts."""

    turn: RecordedTurn | None
    difference: str = ""
    diff: str = ""


def find(turns: Sequence[RecordedTurn], asked: Asked, prompt: str, match: str) -> MatchedTurn:
    """The asker's recorded turn if its prompt is the same; otherwise none (strict) or the most similar of its role.

    ``prompt`` has names for paths, like the recorded ones.
    """
    same_ask = [turn for turn in turns if (turn.unit, turn.ask) == (asked.unit, asked.ask)]
    same = [turn for turn in same_ask if normalize(turn.prompt) == normalize(prompt)]
    if same:
        return MatchedTurn(max(same, key=lambda turn: turn.finished))
    candidates = same_ask or _of_role(turns, asked)
    if not candidates:
        return MatchedTurn(None, f"{_who(asked)}: nothing of this role is recorded")
    nearest = match == NEAREST
    close = max(_of_role(turns, asked) if nearest else candidates, key=lambda turn: _similarity(turn, asked, prompt))
    said = "its prompt is not the recorded one" if same_ask else "this turn is not recorded"
    return MatchedTurn(close if nearest else None, f"{_who(asked)}: {said}", _diff(close.prompt, prompt))


def _of_role(turns: Sequence[RecordedTurn], asked: Asked) -> list[RecordedTurn]:
    return [turn for turn in turns if turn.ask.role == asked.ask.role]


def _similarity(turn: RecordedTurn, asked: Asked, prompt: str) -> tuple[float, bool, bool, bool]:
    """The prompts' similarity; then whether the ask is the same, is of the same kind, and was answered."""
    recorded, now = (normalize(text).splitlines()[:MOST_LINES] for text in (turn.prompt, prompt))
    ratio = round(SequenceMatcher(None, recorded, now, autojunk=False).ratio(), 3)
    same = (turn.unit, turn.ask) == (asked.unit, asked.ask)
    return ratio, same, turn.ask.repair == asked.ask.repair, turn.finished


def _who(asked: Asked) -> str:
    ask = asked.ask
    parts = [f"role {ask.role}", f"visit {ask.visit}"]
    parts += [f"repair {ask.repair}"] if ask.repair else []
    parts += [f"attempt {ask.attempt}"] if ask.attempt > 1 else []
    return ", ".join([*parts, *([f"unit {asked.unit}"] if asked.unit else [])])


def _diff(recorded: str, now: str) -> str:
    """A unified diff of the normalized texts; empty if they are equal."""
    before, after = (normalize(text).splitlines() for text in (recorded, now))
    return "\n".join(unified_diff(before, after, "recorded", "now", lineterm=""))
