"""The shipped playbook against real prompts and real test results: red in cycle 1, green in cycle 2, then DONE."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.catalog import RoleSpecCatalog, build_prompt
from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.checks.tests import run_tests
from codex_multi_role.playbook import AnswerKey, load_playbook
from codex_multi_role.playbook.selection import Message, ToolCall, select
from codex_multi_role.reading.shipped import packaged_roles
from codex_multi_role.replies import read_reply
from codex_multi_role.workspace import Workspace, apply_files
from tests.support.models import asked

LISTING = "Chunk ID: 1\nProcess exited with code 0\nOutput:\nREADME.md\n"


class Team:
    """The cycle's roles, each answered from the playbook; the tests run whenever files are submitted."""

    def __init__(self, folder: Path) -> None:
        self.catalog = RoleSpecCatalog.load(packaged_roles() / "catalog.yaml")
        self.playbook = load_playbook("roman-numerals")
        self.workspace = Workspace(folder / "workspace")
        self.results = folder / "tests"
        self.tests: dict[str, object] | None = None
        self.handoff: dict[str, Any] | None = None

    def cycle(self, visit: int) -> list[dict[str, Any]]:
        return [self.answer(role.name, visit) for role in self.catalog.roles]

    def answer(self, name: str, visit: int, outputs: tuple[str, ...] = ()) -> dict[str, Any]:
        role = next(role for role in self.catalog.roles if role.name == name)
        prompt = build_prompt(self.catalog.general_prompts, role, self.playbook.goal or "", self.handoff, self.tests)
        answer = select(self.playbook, asked(prompt, AnswerKey(name, visit, 0, 1), outputs)).answer
        if isinstance(answer, ToolCall):
            return self.answer(name, visit, (*outputs, LISTING))
        assert isinstance(answer, Message)
        reply = read_reply(answer.text, role.output_schema)
        handoff: dict[str, Any] = json.loads(answer.text)
        assert {key: value for key, value in (reply.handoff or {}).items() if value is not None} == handoff
        self.handoff = handoff
        if role.behaviors.apply_files:
            assert {entry.status for entry in apply_files(self.workspace, handoff["files"])} == {"WROTE"}
            self.tests = run_tests(CheckContext(self.workspace, self.results, os.environ, deadline_seconds=60))
        return handoff


@pytest.fixture
def team(tmp_path: Path) -> Team:
    (tmp_path / "workspace").mkdir()
    return Team(tmp_path)


@pytest.mark.real
def test_failing_test_is_passed_on_and_fixed(team: Team) -> None:
    _, architect, _, integrator = team.cycle(1)
    assert team.tests
    assert (team.tests["status"], team.tests["failed"]) == ("failed", 1)
    assert "README.md" in architect["analysis_md"]
    assert integrator["status"] == "CONTINUE"
    assert integrator["key_points"][0] == ("test_subtractive_numbers fails: AssertionError: assert 'IIII' == 'IV'")
    planner, _, _, integrator = team.cycle(2)
    assert planner["summary"] == "Fix what the tests found: test_subtractive_numbers."
    assert team.tests["status"] == "passed"
    assert integrator["status"] == "DONE"


def test_without_tests_it_is_never_done(team: Team) -> None:
    for visit in (1, 2, 3):
        assert team.answer("integrator", visit)["status"] == "CONTINUE"
        assert "what is still open" in team.answer("planner", visit)["summary"] or visit == 1
