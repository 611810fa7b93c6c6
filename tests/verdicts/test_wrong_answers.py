"""Answers that do not fit: a question again, a failed step or a right result, and never a wrong usage."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import yaml

from codex_multi_role.errors import Ending, RoleFailed
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps.ask import Ask
from tests.support.scripted import Play, Script
from tests.support.teams import Record, TeamFolder, with_flow
from tests.verdicts.playing import Answers, read, reply_of, walk
from tests.verdicts.workflows import FOLDER

DATA: Record = yaml.safe_load((Path(__file__).parent / "wrong_answers.yaml").read_text(encoding="utf-8"))
SAMPLES: Record = json.loads((Path(__file__).parents[1] / "samples/small-model-answers.json").read_text("utf-8"))
REPAIR, FAILED, RIGHT = "repair", "failed", "right"


@dataclass(frozen=True)
class Case:
    """One of the file's ``cases``."""

    name: str
    flow: str
    role: str
    ends: str | Sequence[str]
    says: Json | None = None
    text: str = ""
    recorded: int | None = None

    @property
    def answer(self) -> str:
        if self.recorded is not None:
            return str(SAMPLES["answers"][self.recorded][-1])
        return self.text if self.says is None else json.dumps(self.says)


@dataclass
class WrongFirst:
    """A role's plays: its first answer is ``text``, and every other one ``right``, as the reader takes them."""

    text: str
    right: Callable[[Ask], Json | RoleFailed]
    asked: int = 0
    repairs: int = 0

    def __call__(self, question: Ask) -> Json | RoleFailed:
        self.asked += 1
        if self.asked == 1:
            reply = read(self.text, question)
            if not reply.problem:
                return RoleFailed(reply.refusal, "declined") if reply.refusal else reply.handoff or {}
            self.repairs += 1
        return self.right(question)


@dataclass
class Played:
    """A case in its flow. ``wrong``: the plays of its role."""

    case: Case
    folder: Path
    wrong: WrongFirst = field(init=False)

    def end(self) -> tuple[str, Ending]:
        flow = DATA["flows"][self.case.flow]
        ending = self._ported(flow["workflow"]) if "workflow" in flow else self._own(flow)
        if ending.exit_code == 0:
            return REPAIR if self.wrong.repairs else RIGHT, ending
        return (FAILED if ending.exit_code == 3 and not self.wrong.repairs else ending.outcome), ending

    def _own(self, flow: Record) -> Ending:
        right: list[Json] = flow["answers"][self.case.role]
        self.wrong = WrongFirst(self.case.answer, lambda ask: right[min(ask.visit, len(right)) - 1])
        plays: dict[str, Sequence[Play]] = {**flow["answers"], self.case.role: [self.wrong]}
        script = Script(self.folder, plays, answers=[(True, "")] * flow.get("approvals", 0))
        team = team_of(flow, self.folder)
        return script.walk_loaded("own", *load_team("own", team.folder / "roles"), {}).ending

    def _ported(self, name: str) -> Ending:
        answers = Answers.load(FOLDER / name / "answers/good.yaml")
        self.wrong = WrongFirst(self.case.answer, partial(reply_of, answers.playbook))
        return walk(FOLDER / name, answers, self.folder, {self.case.role: [self.wrong]}).ending


def team_of(flow: Record, folder: Path) -> TeamFolder:
    """The catalog and the flows; with ``schemas``, the roles have those of the recorded answers."""
    schemas = SAMPLES["schemas"] if flow.get("schemas") else {}
    roles = {role: {"output_schema": schemas[role]} if role in schemas else {} for role in flow["answers"]}
    team = with_flow(TeamFolder(folder, roles, {}), flow["flow"])
    for called in flow.get("called", ()):
        with_flow(team, {key: value for key, value in called.items() if key != "name"}, called["name"])
    return team


CASES = [Case(**each) for each in DATA["cases"]]


@pytest.mark.parametrize("case", CASES, ids=[case.name.replace(" ", "-") for case in CASES])
def test_wrong_answer_ends_by_the_rules(case: Case, tmp_path: Path) -> None:
    end, ending = Played(case, tmp_path).end()
    assert end in case.ends, ending


ON_BINARY = (
    "number missing",
    "refusal",
    "tasks are a text",
    "field that one way reads missing",
    "recorded schema without a schema",
    "recorded DONE beside an error",
)


@pytest.mark.real
@pytest.mark.long("verdicts/test_wrong_answers.py::test_wrong_answer_ends_by_the_rules")
@pytest.mark.usefixtures("real_codex")
@pytest.mark.parametrize("case", [case for case in CASES if case.name in ON_BINARY], ids=lambda case: case.name)
def test_wrong_answer_ends_alike_on_the_binary(case: Case, tmp_path: Path) -> None:
    flow = DATA["flows"][case.flow]
    team = team_of(flow, tmp_path)
    right = {role: [{"json": each} for each in given] * 3 for role, given in flow["answers"].items()}
    team.plays = {**right, case.role: [{"text": case.answer, "repairs": right[case.role][:1]}, *right[case.role]]}
    team.write_plays()
    report = team.run(flow="own")
    repairs = [turn for turn in team.of_type("turn_started") if turn["repair_of"] is not None]
    end = FAILED if report.exit_code == 3 else REPAIR if repairs else RIGHT
    assert (end, report.exit_code) == (case.ends, 3 if end == FAILED else 0), report


def test_cases_are_many_and_of_real_models() -> None:
    recorded = [case for case in CASES if case.name.startswith("recorded")]
    assert len(CASES) >= 60
    assert len(recorded) >= 30
    assert len({case.flow for case in CASES}) == len(DATA["flows"]) >= 12
