"""Which prompts leave out the role's instructions because the thread still has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.run_folder import TurnFolder
from codex_multi_role.steps.known_instructions import INSTRUCTIONS, KEPT_CHARACTERS, KnownInstructions
from codex_multi_role.steps.turn_record import Follows, PromptTexts, TurnPrompt
from tests.support.models import model_requests, texts
from tests.support.teams import Record, TeamFolder, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

TEXTS = PromptTexts("all of it", "", "the rest", "digest")
ASKED = TurnPrompt(RoleSpec(name="one", prompt_text="Do it."), "one", TEXTS, 1, 1)


def _with(instructions: str) -> TurnPrompt:
    return replace(ASKED, texts=replace(TEXTS, instructions=instructions))


COMPACT = ("model_auto_compact_token_limit=100",)
FULL = "Do it."


def prompts(team: TeamFolder, count: int) -> list[bool]:
    """Whether each of the first ``count`` turns repeated the role's instructions."""
    paths = (team.runs / f"latest/one/turn_{turn:03d}/prompt.txt" for turn in range(1, count + 1))
    return [FULL in path.read_text() for path in paths]


@pytest.mark.parametrize(
    ("known", "asked", "enough"),
    [
        (KnownInstructions("digest", 1, 20), ASKED, True),
        (KnownInstructions("other", 1, 20), ASKED, False),
        (KnownInstructions(), ASKED, False),
        (KnownInstructions(), _with(""), False),
        (KnownInstructions("digest", 1, KEPT_CHARACTERS), ASKED, False),
    ],
)
def test_only_instructions_that_survive_are_left_out(known: KnownInstructions, asked: TurnPrompt, enough: bool) -> None:
    assert known.suffice_for(asked) is enough


@pytest.mark.parametrize(
    ("asked", "sent", "answered", "known"),
    [
        (ASKED, "the rest", 2, KnownInstructions("digest", 1, 108)),
        (ASKED, "the rest", None, KnownInstructions("digest", 1, 108)),
        (replace(_with(""), follows=Follows(repair=1)), "a repair", 2, KnownInstructions("digest", 1, 108)),
        (ASKED, "all of it", 2, KnownInstructions("digest", 2, 9)),
        (ASKED, "all of it", None, KnownInstructions("digest", 1, 109)),
        (_with("edited"), "all of it", 2, KnownInstructions("edited", 2, 9)),
        (_with("edited"), "all of it", None, KnownInstructions()),
        (_with(""), "a step's own", 2, KnownInstructions()),
    ],
)
def test_known_instructions_age_and_give_way_to_others(
    asked: TurnPrompt, sent: str, answered: int | None, known: KnownInstructions
) -> None:
    assert KnownInstructions("digest", 1, 100).after(asked, sent, answered) == known


def test_nothing_is_known_of_another_or_a_broken_turn(tmp_path: Path) -> None:
    folder, known = TurnFolder(tmp_path, Redactor({})), KnownInstructions("digest", 1, 9)
    folder.write_result({"thread_id": "a", INSTRUCTIONS: known.as_json()})
    assert KnownInstructions.of(folder, {"a"}) == known
    assert KnownInstructions.of(folder, {"b"}) == KnownInstructions.of(None, {"a"}) == KnownInstructions()
    folder.write_result({"thread_id": "a", "status": "interrupted"})
    assert KnownInstructions.of(folder, {"a"}) == KnownInstructions()


def test_resumed_conversation_keeps_its_instructions(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say() for _ in range(3)]})
    assert team.run(cycles=3, max_turns=2).exit_code == 5
    team.resume(max_turns=None)
    assert prompts(team, 3) == [True, False, False]


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_compacted_conversation_gets_its_instructions_again(tmp_path: Path) -> None:
    """The second turn finds the thread over its limit and compacts it, so that the third repeats them."""
    answers = [{**say(), "usage": {"input_tokens": 200 * (turn == 0), "output_tokens": 1}} for turn in range(3)]
    team = TeamFolder(tmp_path, {"one": {}}, {"one": answers})
    with model_requests() as requests:
        team.run(cycles=3, config=COMPACT)
    assert prompts(team, 3) == [True, False, True]
    assert any("Another language model started" in texts(body) for body in requests)
    assert all(FULL in texts(body) for body in requests)


def test_prompt_of_a_step_is_always_whole(tmp_path: Path) -> None:
    ways: list[Record] = [{"when": "steps.own.visits < 2", "to": "own"}, {"end": "over"}]
    step: Record = {"id": "own", "ask": "one", "prompt": FULL, "limits": {"visits": 2}, "next": ways}
    team = with_flow(
        TeamFolder(tmp_path, {"one": {"prompt_text": "Unused."}}, {"one": [say(), say()]}), {"steps": [step]}
    )
    team.run(flow="own")
    assert prompts(team, 2) == [True, True]
