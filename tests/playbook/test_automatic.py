"""The automatic playbook: a valid answer for every ask of a team.

Costs: each shipped flow is loaded, and all of its asks are answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_multi_role.catalog import FlowSpec, RoleSpec, list_flows
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.playbook import Playbook, is_automatic, load_playbook, playbook_names
from codex_multi_role.playbook.automatic import automatic_playbook, schema_from_use
from codex_multi_role.playbook.example import example
from codex_multi_role.playbook.request import AnswerKey, NextStepRequest
from codex_multi_role.playbook.selection import Message, select
from codex_multi_role.replies import read_reply
from tests.support.paths import shipped_team

VERDICT = {"type": "object", "required": ["verdict"], "properties": {"verdict": {"enum": ["revise", "accept"]}}}


def playbook_of(folder: Path, roles: dict[str, Any], steps: list[dict[str, Any]] | None = None) -> Playbook:
    (folder / "flows").mkdir()
    entries = [{"name": name, "prompt_text": "Do it.", **keys} for name, keys in roles.items()]
    (folder / "catalog.yaml").write_text(yaml.safe_dump({"version": 1, "roles": entries}))
    (folder / "flows/own.yaml").write_text(yaml.safe_dump({"steps": steps or [{"id": "team", "ask": "*"}]}))
    return automatic_playbook(*load_team("own", folder))


def answer(playbook: Playbook, role: str, visit: int = 1, unit: str = "") -> Any:
    asked = NextStepRequest("turn", (), 0, AnswerKey(role, visit, 0, 1), "prompt", unit)
    message = select(playbook, asked).answer
    assert isinstance(message, Message)
    return json.loads(message.text)


def test_role_without_schema_says_that_no_model_was_asked(tmp_path: Path) -> None:
    playbook = playbook_of(tmp_path, {"writer": {}})
    assert "automatic" in playbook.name
    assert answer(playbook, "writer", 9) == {
        "summary": "Automatic answer of writer; no model was asked.",
        "status": "CONTINUE",
    }


STATUS = {"type": "object", "required": ["status"], "properties": {"status": {"enum": ["DONE", "OPEN"]}}}


@pytest.mark.parametrize("keys", [{}, {"output_schema": STATUS}, {"output_schema": {"type": "object"}}])
def test_only_a_role_that_may_finish_says_done(tmp_path: Path, keys: dict[str, Any]) -> None:
    finisher = {**keys, "behaviors": {"can_finish": True}}
    playbook = playbook_of(tmp_path, {"worker": keys, "judge": finisher})
    said = [[answer(playbook, role, visit).get("status") for visit in (1, 2)] for role in ("worker", "judge")]
    statuses = [[status == "DONE" for status in of_role] for of_role in said]
    assert statuses == [[False, False], [False, True]]


def test_values_take_turns_so_that_loops_end(tmp_path: Path) -> None:
    playbook = playbook_of(tmp_path, {"critic": {"output_schema": VERDICT}})
    verdicts = [answer(playbook, "critic", visit)["verdict"] for visit in (1, 2, 3, 4)]
    assert verdicts == ["revise", "accept", "revise", "accept"]


def test_each_step_gets_an_answer_of_its_own_reply(tmp_path: Path) -> None:
    count = {"type": "object", "required": ["count"], "properties": {"count": {"type": "integer"}}}
    steps: list[dict[str, Any]] = [
        {"id": "write", "ask": "one"},
        {"id": "judge", "ask": "one", "reply": VERDICT},
        {"id": "judge.count", "ask": "one", "reply": count},
    ]
    playbook = playbook_of(tmp_path, {"one": {}}, steps)
    assert answer(playbook, "one", 1, "write.1")["status"] == "CONTINUE"
    assert answer(playbook, "one", 2, "call.1/judge.1.0") == {"verdict": "accept"}
    assert answer(playbook, "one", 3, "judge.count.2") == {"count": 0}


def test_template_syntax_in_a_schema_stays_text(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"const": "{{ goal }} {% x %}"}}}
    assert answer(playbook_of(tmp_path, {"one": {"output_schema": schema}}), "one") == {"a": "{{ goal }} {% x %}"}


def test_role_without_a_valid_answer_is_named_with_the_reason(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "not": {}}}}
    with pytest.raises(DefinitionError, match=r"role one: --playbook auto found no valid answer .*\$\.id") as caught:
        playbook_of(tmp_path, {"one": {"output_schema": schema}})
    assert "examples" in caught.value.hint


def test_steps_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    inner = [{"id": "judge", "ask": "one", "reply": {"type": "object"}}]
    (tmp_path / "flows/inner.yaml").write_text(yaml.safe_dump({"steps": inner}))
    (tmp_path / "flows/own.yaml").write_text(
        yaml.safe_dump({"steps": [{"id": "judge", "ask": "one", "reply": VERDICT}, {"call": "inner"}]})
    )
    (tmp_path / "catalog.yaml").write_text("version: 1\nroles: [{name: one, prompt_text: Do it.}]\n")
    with pytest.raises(DefinitionError, match='two flows ask the role one in a step "judge"'):
        automatic_playbook(*load_team("own", tmp_path))


@pytest.mark.extensions
@pytest.mark.parametrize("flow", [entry.name for entry in list_flows(None)])
def test_every_shipped_flow_gets_valid_answers(flow: str) -> None:
    flows, catalog = shipped_team(flow)
    playbook = automatic_playbook(flows, catalog)
    for step in (step for each in flows.values() for step in each.steps if step.ask in playbook.roles):
        schema = catalog.role(str(step.ask)).output_schema if step.reply is None else step.reply
        for visit in range(1, 4):
            text = json.dumps(answer(playbook, str(step.ask), visit, f"{step.id}.1"))
            assert read_reply(text, schema).problem == ""


def test_text_of_the_playbook_loads_again(tmp_path: Path) -> None:
    playbook = playbook_of(tmp_path, {"one": {"output_schema": VERDICT}})
    copy = tmp_path / "copy.yaml"
    copy.write_text(playbook.text)
    assert load_playbook(str(copy)).roles == playbook.roles


def test_own_playbook_of_that_name_is_preferred(tmp_path: Path) -> None:
    assert is_automatic("auto", tmp_path)
    assert playbook_names(tmp_path)[0] == "auto"
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/auto.yaml").write_text("name: mine\n")
    assert not is_automatic("auto", tmp_path)
    assert load_playbook("auto", tmp_path).name == "mine"


ROLE = RoleSpec(name="one", prompt_text="Do.")


def answers(*steps: dict[str, Any], count: int = 3) -> list[Any]:
    """The answers of the role ``one``, which the step ``a`` asks, by visit."""
    flow = FlowSpec.model_validate({"name": "own", "steps": [{"id": "a", "ask": "one"}, *steps]})
    contracts = Contracts({"own": flow}, "own", [ROLE])
    return [example(schema_from_use(contracts, {"own": flow}, "one"), number) for number in range(count)]


def route(when: str) -> dict[str, Any]:
    return {"id": "b", "ask": "two", "next": [{"when": when, "end": "over"}]}


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("steps.a.mood == 'good'", [{"mood": "automatic"}, {"mood": "good"}]),
        ("'good' == roles.one.mood", [{"mood": "automatic"}, {"mood": "good"}]),
        ("steps.a.mood in ['good', 'fine']", [{"mood": "automatic"}, {"mood": "good"}, {"mood": "fine"}]),
        ("steps.a.score >= 7", [{"score": 6}, {"score": 8}, {"score": 7}]),
        ("steps.a.ok == true", [{"ok": False}, {"ok": True}]),
        ("cycle > 1 and not steps.a.ok", [{"ok": False}, {"ok": True}]),
        ("steps.a.handoff.status == 'OPEN'", [{"status": "automatic"}, {"status": "OPEN"}]),
        ("steps.a.tasks | length > 0", [{"tasks": ["automatic"]}]),
        ("steps.a.visits > 2 and steps.a.status == 'done'", [{}]),
    ],
)
def test_condition_gets_values_for_both_outcomes(when: str, expected: list[Any]) -> None:
    assert answers(route(when), count=len(expected)) == expected


def test_texts_and_inner_fields_are_filled() -> None:
    prompt = "{{ steps.a.title }} by {{ roles.one.author.name }}{% for part in steps.a.parts %}{{ part }}{% endfor %}"
    expected = {"title": "automatic", "author": {"name": "automatic"}, "parts": ["automatic"]}
    assert (
        answers({"id": "b", "ask": "two", "prompt": prompt, "with": {"t": ["{{ steps.a.title }}"]}}) == [expected] * 3
    )


def test_items_of_a_fan_out_have_the_fields_that_it_uses() -> None:
    step = {"id": "b", "ask": "two", "for_each": {"items": "{{ steps.a.tasks }}", "as": "task", "max_items": 9}}
    step |= {"prompt": "{{ task.title }} {{ item.size }}"}
    assert answers(step, count=1) == [{"tasks": [{"title": "automatic", "size": "automatic"}]}]


def test_results_of_a_fan_out_are_not_fields() -> None:
    items = {"id": "c", "ask": "one", "for_each": [1, 2]}
    assert answers(items, route("steps.c.results"), count=1) == [{}]
