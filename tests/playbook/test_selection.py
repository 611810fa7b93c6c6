from __future__ import annotations

import json
from typing import Any

import pytest

from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.playbook.request import AnswerKey, read_request
from codex_multi_role.playbook.script import Fault, Playbook, Usage
from codex_multi_role.playbook.selection import Message, ToolCall, select
from tests.support.models import PLANNER, asked, body, user


def playing(entry: dict[str, Any]) -> Playbook:
    return Playbook.model_validate({"name": "demo", "roles": {"planner": [entry]}})


def test_strings_inside_json_are_templates_and_keep_their_type() -> None:
    entry = {"json": {"said": ["{{ prompt }}!", "{{ visit }}"], "{{ role }}": None, "count": "{{ tool_outputs }}"}}
    answer = select(playing(entry), asked("hi")).answer
    assert isinstance(answer, Message)
    assert json.loads(answer.text) == {"said": ["hi!", 1], "{{ role }}": None, "count": []}


def test_text_is_one_template() -> None:
    entry = {"text": "{% if 'FAILED' in prompt %}red{% else %}green{% endif %} {{ role }}.{{ repair }}.{{ attempt }}\n"}
    assert select(playing(entry), asked("x FAILED")).answer == Message("red planner.0.1\n")


def test_steps_follow_the_tool_outputs() -> None:
    playbook = playing(
        {"steps": [{"call": "ls", "arguments": {"dir": "{{ role }}"}}, {"text": "{{ tool_outputs[0] }}"}]}
    )
    assert select(playbook, asked()).answer == ToolCall("ls", '{"dir": "planner"}')
    assert select(playbook, asked(outputs=("a b",))).answer == Message("a b")
    with pytest.raises(
        UsageError, match=r"playbook demo has no step 3 \(the turn has 2\): asked for role planner, visit 1"
    ):
        select(playbook, asked(outputs=("a", "b")))


def test_patch_is_a_pure_heredoc() -> None:
    answer = select(playing({"patch": "*** Begin Patch\n+{{ prompt }}\n*** End Patch\n"}), asked("new")).answer
    assert isinstance(answer, ToolCall)
    command = "apply_patch <<'EOF'\n*** Begin Patch\n+new\n*** End Patch\n\nEOF"
    assert json.loads(answer.arguments) == {"cmd": command}


def test_arguments_may_be_text_that_is_not_json() -> None:
    assert select(playing({"call": "ls", "arguments": "{oops"}), asked()).answer == ToolCall("ls", "{oops")


def test_first_choice_that_holds_is_played() -> None:
    choices = [
        {"when": "'red' in prompt", "text": "fix"},
        {"when": "attempt > 1", "fault": {"empty": True}},
        {"text": "ok"},
    ]
    playbook = playing({"choose": choices})
    assert select(playbook, asked("all red")).answer == Message("fix")
    assert select(playbook, asked(ask=PLANNER._replace(attempt=2))).answer == Fault(empty=True)
    assert select(playbook, asked()).answer == Message("ok")
    with pytest.raises(UsageError, match="no choice matches"):
        select(playing({"choose": choices[:1]}), asked())


def test_attempts_and_repairs_are_selected_apart() -> None:
    playbook = playing({"attempts": [{"fault": {"status": 500}}, {"text": "bad"}], "repairs": [{"text": "good"}]})
    assert select(playbook, asked(ask=AnswerKey("planner", 1, 0, 2))).answer == Message("bad")
    assert select(playbook, asked(ask=AnswerKey("planner", 1, 1, 1))).answer == Message("good")


def test_tokens_are_counted_from_the_lengths_unless_given() -> None:
    request = asked()
    assert select(playing({"text": "x" * 40}), request).usage == Usage(
        input_tokens=request.characters // 4, output_tokens=10
    )
    given = {"input_tokens": 7, "output_tokens": 3}
    assert select(playing({"text": "a", "usage": given}), request).usage == Usage.model_validate(given)


def test_template_that_fails_says_where() -> None:
    with pytest.raises(DefinitionError, match=r"^playbook demo: role planner, visit 1, repair 0, attempt 1, step 1"):
        select(playing({"text": "{{ tool_outputs[3] }}"}), asked())


def test_compaction_gets_a_summary_and_no_role_s_answer() -> None:
    answer = select(playing({"text": "a"}), read_request(body(user("go"), request_kind="compaction"))).answer
    assert isinstance(answer, Message)
    assert "no model was asked" in answer.text
