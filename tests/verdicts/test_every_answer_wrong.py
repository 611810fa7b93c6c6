"""Every answer of the ported workflows and the examples, made wrong in every field: no run ends as a wrong usage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from codex_multi_role.errors import Ending, RoleFailed
from codex_multi_role.playbook.script import Playbook
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps.ask import Ask
from tests.docs.pages import TOP
from tests.support.scripted import Said
from tests.verdicts.playing import Answers, read, reply_of, walk
from tests.verdicts.workflows import WORKFLOWS

WRONG = (None, "false", "x", 7, ["a"], {"a": 1}, [None])
RED: Json = {"status": "failed", "verdict": "failed", "failed": 1, "exit_code": 1}
GREEN: Json = {"status": "passed", "verdict": "passed", "exit_code": 0}
FILE: Json = {"status": "written", "path": "a.md", "content": ""}
EXAMPLES: Mapping[str, tuple[str, dict[str, list[Json]]]] = {
    "best-of-two": ("best", {"merge": [{"status": "merged"}]}),
    "fix-until-green": ("fix", {"test": [RED, GREEN]}),
    "per-file": ("summarize", {"list": [{"status": "ok", "exit_code": 0, "json": ["a.py", "b.py"]}], "write": [FILE]}),
    "plan-approval": ("planned", {}),
    "review-panel": ("reviewed", {}),
    "sections": ("report", {"write": [FILE]}),
    "translate": ("translate", {"read": [{**FILE, "status": "read"}], "write": [FILE]}),
    "triage": ("triage", {}),
}
"""The flow of each example, and the results of its checks that are not computed."""
INPUTS: Mapping[str, Json] = {"translate": {"file": "hello.md", "language": "French"}}


@dataclass
class Spoiling:
    """The answers of one role by a playbook; that of its ask ``number`` is ``wrong`` where the reader takes it."""

    playbook: Playbook
    number: int = 0
    wrong: Json = field(default_factory=dict)
    right: list[Json] = field(default_factory=list)

    def __call__(self, question: Ask) -> Json | RoleFailed:
        answer = reply_of(self.playbook, question)
        self.right.append(answer if isinstance(answer, dict) else {})
        if len(self.right) != self.number:
            return answer
        reply = read(json.dumps(self.wrong), question)
        if reply.problem:
            return answer  # to the repair turn
        return RoleFailed(reply.refusal, "declined") if reply.refusal else reply.handoff or {}


@dataclass(frozen=True)
class Game:
    """A flow of the catalog in ``roles`` with the right answers of all who take part."""

    roles: Path
    flow: str
    answers: Answers

    def end(self, folder: Path, role: str, spoiling: Spoiling) -> Ending:
        return walk(self.roles, self.answers, folder, {role: [spoiling]}, self.flow).ending


def wrong_ones(right: Json) -> Iterator[Json]:
    """Nothing of ``right``, and each of its fields missing or with another value."""
    yield {"summary": "fine"}
    for key in right:
        yield {"summary": "fine", **{name: value for name, value in right.items() if name != key}}
        yield from ({**right, key: value} for value in WRONG)


def games() -> Iterator[tuple[str, Game]]:
    for workflow in WORKFLOWS:
        answers = Answers.load(workflow.folder / "answers" / f"{workflow.good[0].answers}.yaml")
        yield workflow.name, Game(workflow.folder, workflow.folder.name, answers)
    for name, (flow, checks) in EXAMPLES.items():
        folder = TOP / "examples" / name
        playbook = Playbook.load(folder / "playbook.yaml")
        approvals = [Said()] * 5
        answers = Answers(playbook, checks, reviews=approvals, inputs=INPUTS.get(name, {}))
        yield name, Game(folder / "roles", flow, answers)


GAMES = {name: game for name, game in games() if game.answers.playbook.roles}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_with_right_answers_succeeds(name: str, tmp_path: Path) -> None:
    game = GAMES[name]
    assert walk(game.roles, game.answers, tmp_path, flow=game.flow).ending.exit_code == 0


@pytest.mark.long("verdicts/test_wrong_answers.py::test_wrong_answer_ends_by_the_rules")
@pytest.mark.parametrize("name", GAMES)
def test_no_wrong_answer_is_a_wrong_usage(name: str, tmp_path: Path) -> None:
    game, played = GAMES[name], 0
    for role in game.answers.playbook.roles:
        whole = Spoiling(game.answers.playbook)
        game.end(tmp_path / role, role, whole)
        for number, right in enumerate(whole.right[:2], 1):
            for wrong in wrong_ones(right):
                played += 1
                spoiling = Spoiling(game.answers.playbook, number, wrong)
                ending = game.end(tmp_path / f"{role}{played}", role, spoiling)
                assert ending.exit_code in (0, 1, 3), (role, number, wrong, ending)
                assert ending.outcome not in ("internal_error", "storage_failed"), (role, number, wrong, ending)
