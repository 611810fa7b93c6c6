"""Workflows of other products, played with good and with bad answers: each ends as recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.console import console
from tests.verdicts.playing import Answers, play, walk
from tests.verdicts.workflows import FOLDER, SUCCESS, WORKFLOWS, Case, Workflow

WITH_A_TRICK = ["joins", "script-stdin", "script-typed-output", "set-step", "wait-loop"]
PLAYED = [(workflow, case) for workflow in WORKFLOWS for case in workflow.cases]


def named(played: list[tuple[Workflow, Case]]) -> list[Any]:
    return [pytest.param(*each, id=f"{each[0].name}-{each[1].answers}") for each in played]


def answers_of(workflow: Workflow, case: Case) -> Answers:
    return Answers.load(workflow.folder / "answers" / f"{case.answers}.yaml")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.name)
def test_flow_is_valid_and_bounded(workflow: Workflow, tmp_path: Path) -> None:
    done = console("flows", "validate", workflow.name, "--roles", str(workflow.folder), folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("workflow", "case"), named(PLAYED))
def test_walk_ends_by_the_rules(workflow: Workflow, case: Case, tmp_path: Path) -> None:
    ending = walk(workflow.folder, answers_of(workflow, case), tmp_path).ending
    assert case.is_met(ending.exit_code, ending.outcome), ending.reason


@pytest.mark.real
@pytest.mark.parametrize(("workflow", "case"), named([each for each in PLAYED if each[1].on_binary]))
def test_run_on_the_binary_ends_by_the_rules(workflow: Workflow, case: Case, tmp_path: Path) -> None:
    report = play(workflow.folder, answers_of(workflow, case), tmp_path)
    assert case.is_met(report.exit_code, report.outcome), report.reason


@pytest.mark.real
def test_item_with_a_merge_conflict_on_the_binary_is_repeated(tmp_path: Path) -> None:
    answers = Answers.load(FOLDER / "kanban/answers/merge-conflict.yaml")
    assert play(FOLDER / "kanban", answers, tmp_path).exit_code == SUCCESS.exit_code
    assert (tmp_path / "workspace/shop.py").read_text() == "CART, PAID = [], False\n"


def test_role_of_each_item_is_that_of_its_domain(tmp_path: Path) -> None:
    walked = walk(FOLDER / "switchboard", Answers.load(FOLDER / "switchboard/answers/good.yaml"), tmp_path)
    asked = [ask.role.name for ask in walked.asks]
    assert asked == ["intake", "classifier", "support", "billing", "summarizer"]


def test_workflows_with_a_trick_are_those_that_flows_cannot_express() -> None:
    tricks = [workflow.name for workflow in WORKFLOWS if workflow.trick]
    assert (sorted(tricks), len(WORKFLOWS) - len(tricks)) == (WITH_A_TRICK, 25)


def test_table_has_every_workflow_and_every_file_of_answers() -> None:
    files = {(path.parents[1].name, path.stem) for path in FOLDER.glob("*/answers/*.yaml")}
    assert sorted((workflow.name, case.answers) for workflow, case in PLAYED) == sorted(files)
    assert sorted(workflow.name for workflow in WORKFLOWS) == sorted(path.name for path in FOLDER.iterdir())


def test_verdicts_change_an_end_only_to_exit_1() -> None:
    assert {case.by_rules.exit_code for _, case in PLAYED if case.by_rules} == {1}


def test_good_answers_end_in_success() -> None:
    cases = [case for workflow in WORKFLOWS for case in workflow.good]
    assert {case.expected.exit_code for case in cases} == {SUCCESS.exit_code}
