"""Which recorded turn answers one that is asked for."""

from __future__ import annotations

from typing import Any

from codex_multi_role.extensions.replays.recording import RecordedTurn
from codex_multi_role.extensions.replays.replay_server import find_turn
from codex_multi_role.playbook.request import AnswerKey, Asked
from tests.support.recordings import WHOLE


def turn(prompt: str, *, end: str = "completed", **ask: Any) -> RecordedTurn:
    who = {"role": "one", "visit": 1, "repair": 0, "attempt": 1, **ask}
    return RecordedTurn(who.pop("unit", ""), AnswerKey(**who), prompt, {("turn", 0): {**WHOLE, "end": end}})


def asked(**ask: Any) -> Asked:
    who = {"role": "one", "visit": 1, "repair": 0, "attempt": 1, **ask}
    return Asked("now", "turn", AnswerKey(**{**who}), "", "m", "")


def test_second_try_of_killed_turn_is_played() -> None:
    turns = [turn("do it", end="broken"), turn("do it")]
    assert find_turn(turns, asked(), "do it", "strict").turn is turns[1]
    assert find_turn(turns[::-1], asked(), "do it", "strict").turn is turns[1]


def test_of_two_turns_that_share_a_place_the_prompt_decides() -> None:
    turns = [turn("item a"), turn("item b")]
    assert find_turn(turns, asked(), "item a", "strict").turn is turns[0]


def test_strict_finds_none_and_says_in_what_it_differs() -> None:
    found = find_turn([turn("do\nit")], asked(), "do\nit well", "strict")
    assert found.turn is None
    assert "-it\n+it well" in found.diff
    assert (
        "role one, visit 2: this turn is not recorded"
        in find_turn([turn("do it")], asked(visit=2), "do it", "strict").difference
    )
    assert (
        "this role is not in the recording"
        in find_turn([turn("do it")], asked(role="two"), "do it", "strict").difference
    )


def test_nearest_is_of_the_role_and_the_most_similar() -> None:
    turns = [turn("a\nb\nc\nd"), turn("a\nb\nx\ny", visit=2), turn("a\nb\nc\nz", role="two")]
    found = find_turn(turns, asked(visit=3), "a\nb\nx\nz", "nearest")
    assert found.turn is turns[1]
    assert found.difference


def test_nearest_prefers_the_same_ask_among_equals() -> None:
    turns = [turn("same", visit=1), turn("same", visit=2), turn("same", visit=2, attempt=2)]
    assert find_turn(turns, asked(visit=2), "changed", "nearest").turn is turns[1]
