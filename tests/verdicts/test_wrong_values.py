"""Wrong values in an answer, in a template, before a run and in it: each is found where `wrong_values.yaml` says.

An answer that does not fit is asked for again or fails a step, and is never a wrong usage.

Costs: every row is played through the engine, six on the real binary.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from jinja2 import nodes

from codex_multi_role import RunReport
from codex_multi_role.catalog import FlowSpec
from codex_multi_role.catalog.explorations import path_text
from codex_multi_role.catalog.flow_expressions import sandbox
from codex_multi_role.catalog.templates import render_text
from codex_multi_role.checks import find_check
from codex_multi_role.errors import DefinitionError, Ending, RoleFailed, UsageError
from codex_multi_role.flow import AnswerWays, ExpectedAnswer, new_state
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.flow.state import StepState
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps.ask import Ask
from tests.support.checks import MakeContext, make_context
from tests.support.console import console
from tests.support.flows import CATALOG, flows_of
from tests.support.scripted import Play, Script, Walked
from tests.support.teams import Record, TeamFolder, say, with_flow
from tests.support.teams import read as read_json
from tests.support.wrong_values import TABLE
from tests.verdicts.playing import read

__all__ = ["make_context"]
SAMPLES: Record = json.loads((Path(__file__).parents[1] / "samples/small-model-answers.json").read_text("utf-8"))
ROWS: Sequence[Record] = TABLE["reads"]
VALUES: tuple[object, ...] = (
    *("two words", "", "7", 7, 0, 1.5, True, False, None, ["b", "a"], [3, 1], [], [[1, 2]], [None], [{}]),
    *([{"k": "x", "n": 2}, {"k": "y", "n": 1}], {"k": "x", "n": 2}, {}),
)
"""Tried in every template of `steps.plan.a` that says which answer is right."""
SHORT = re.compile(r"(?<![\w'.{])a(?![\w'(])")


# Templates that read an answer.


def in_full(template: str) -> str:
    return SHORT.sub("steps.plan.a", template)


def flows_with(row: Record) -> dict[str, FlowSpec]:
    plan: Json = {"id": "plan", "ask": "planner"}
    work: Json = {"id": "work", "ask": "developer"}
    if "is" in row:
        steps = [plan, {"id": "fine", "ask": "reader"}, {**work, "prompt": in_full(row["is"])}]
    elif "panel" in row:
        panel: Json = {"ask": ["planner", "reader"], "isolate": {"merge": "none"}}
        steps = [{**plan, **panel}, {**work, "prompt": row["panel"]}]
    elif "when" in row:
        steps = [{**plan, "next": [{"when": row["when"], "end": "good"}, {"end": "bad"}]}]
    else:
        steps = row["steps"]
    own: Json = {"inputs": {"most": 4, "word": "x"}, "steps": steps}
    own |= {key: row[key] for key in ("result",) if key in row}
    return flows_of(x=json.dumps(own), **({"inner": json.dumps(row["inner"])} if "inner" in row else {}))


def expected_of(row: Record) -> tuple[ExpectedAnswer, Json]:
    """What the step ``plan`` must answer, and what its templates see."""
    flows, of = flows_with(row), row.get("of", "x")
    state = new_state(flows[of], "reach it", {}, 2)
    state.enter("plan")
    state.latest_handoffs |= row.get("answered", {})
    context = {**state.context(), **({"item": "planner", "index": 0} if "panel" in row else {})}
    ways = AnswerWays(Contracts(flows, "x", CATALOG.roles, ["web_searches", "copy"]))
    return ways.expected(of, flows[of].step("plan"), CATALOG.role("planner"), context), context


def can_fill(template: str, context: Json, answer: Json) -> bool:
    seen = StepState(True, 1, "done", output=answer).seen()
    try:
        render_text(template, {**context, "steps": {**context["steps"], "plan": seen}}, "prompt")
    except DefinitionError:
        return False
    return True


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.get('is') or row.get('when') or row}"[:60] for row in ROWS])
def test_contract_is_what_the_engine_can_evaluate(row: Record) -> None:
    expected, context = expected_of(row)
    if "needs" in row:
        said = [
            f"{path_text(need.path)}{'!' * need.is_required}{'?' * need.takes_null}{'~' * need.is_decided} "
            f"{need.type}{f'<={need.most}' if need.most else ''}".rstrip()
            for need in expected.contract
        ]
        assert said == row["needs"]
    for answer in row.get("right", ()):
        assert expected.problems(answer) == []
    for answer in row.get("wrong", ()):
        assert expected.problems(answer)
    template = in_full(row.get("is", ""))
    if "right" in row and "steps.plan.a" in template and "steps.fine" not in template:
        for answer in ({}, *({"a": each} for each in VALUES), *row.get("right", ())):
            assert expected.problems(answer) or can_fill(template, context, answer), answer


@pytest.mark.parametrize("row", [row for row in ROWS if "before" in row], ids=lambda row: row["is"])
def test_schema_that_contradicts_a_template_is_found_before_a_run(row: Record, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": row["schema"]}
    team = TeamFolder(tmp_path, {"planner": {"output_schema": schema}, "developer": {}}, {})
    work = {"id": "work", "ask": "developer", "prompt": in_full(row["is"])}
    with_flow(team, {"steps": [{"id": "plan", "ask": "planner"}, work]})
    try:
        load_team("own", team.folder / "roles")
        found = ""
    except DefinitionError as error:
        found = str(error)
    place = "step work: prompt: " if row["before"] else ""
    assert f"{place}{row['before']}" in found
    assert bool(found) == bool(row["before"])
    assert not found or "catalog.yaml" in found.rpartition("(")[2]


@pytest.mark.parametrize("row", TABLE["options"], ids=lambda row: f"{row['check']}: {row['says']}")
def test_wrong_option_is_named_and_nothing_starts(row: Record, make_context: MakeContext) -> None:
    context = replace(make_context({}), options=row["with"])
    with pytest.raises(UsageError) as caught:
        find_check(row["check"])(context)
    assert str(caught.value).startswith(f"check {row['check']}: {row['says']}")
    assert caught.value.hint
    assert row.get("hint", "") in caught.value.hint
    assert not context.folder.exists()


def test_table_has_every_filter_and_test_of_the_sandbox() -> None:
    trees = [sandbox().parse(row["is"]) for row in ROWS if "is" in row]
    used = {node.name for tree in trees for node in tree.find_all((nodes.Filter, nodes.Test))}
    signs = {name for name in sandbox().tests if not name.isidentifier()}
    assert {*sandbox().filters, *sandbox().tests} - signs == used


# Values that only a step knows.

EVERY: Mapping[str, Record] = {row["name"]: row for row in TABLE["values"]}
INNER: Json = {"name": "inner", "inputs": {"n": 1}, "steps": [{"id": "last", "ask": "two"}]}
PLAN: Json = {"id": "plan", "ask": "one"}


def answer_of(row: Record) -> Json:
    """With long texts written out."""
    long = ((key, re.fullmatch(r"x \* (\d+)", str(value))) for key, value in row["answer"].items())
    return {key: "x" * int(found[1]) if found else row["answer"][key] for key, found in long}


def steps_of(row: Record) -> list[Json]:
    last = {"id": "end", "ask": "two"}
    return [{**PLAN, **row["own"]}, last] if "own" in row else [PLAN, row["step"], last]


def skipped(steps: list[Json]) -> list[Json]:
    """The steps, of which a failure of the second one, or of its items, is allowed."""
    first, step, *others = steps
    allowed = {"allow": ["failed"]}
    of_items = {"for_each": {**step["for_each"], **allowed}} if "for_each" in step else allowed
    return [first, {**step, **of_items}, *others]


def walk_row(folder: Path, row: Record, steps: list[Json], *called: Json, judged: bool = False) -> Walked:
    script = Script(folder, {"one": [answer_of(row)], "two": [{}]}, judged=judged)
    return script.walk({"vars": {"n": 0}, "steps": steps}, INNER, *called)


@pytest.mark.parametrize("name", EVERY)
def test_wrong_value_fails_the_step_that_gets_it(name: str, tmp_path: Path) -> None:
    row, step = EVERY[name], EVERY[name].get("step", PLAN)["id"]
    walked = walk_row(tmp_path, row, steps_of(row))
    ending, where = walked.ending, row.get("where", "")
    assert (ending.status, ending.outcome, ending.exit_code) == ("failed", "wrong_value", 3), ending
    flow = tmp_path / "roles" / "flows" / "own.yaml"
    place, _, rest = ending.reason.partition(f": step {step}: ")
    file, line, _ = place.rsplit(":", 2)
    assert Path(file).resolve() == flow.resolve()
    assert rest.startswith(f"{where}: {row['fails']}" if where else row["fails"]), ending.reason
    assert (where.rpartition(".")[2].partition("[")[0] or "- ") in flow.read_text().splitlines()[int(line) - 1]
    assert ending.suggestion == f"fork RUN --from {row.get('again', 'plan:1')}"
    assert (walked.path[-1], len(walked.asks)) == (step, 1)


@pytest.mark.parametrize("name", EVERY)
def test_role_is_told_first_if_its_contract_says_so(name: str, tmp_path: Path) -> None:
    row = EVERY[name]
    ending = walk_row(tmp_path, row, steps_of(row), judged=True).ending
    assert ending.outcome == ("invalid_reply" if "asked" in row else "wrong_value"), ending
    assert row["asked" if "asked" in row else "fails"] in ending.reason.replace("\\'", "'")


@pytest.mark.parametrize("name", [name for name, row in EVERY.items() if "review" not in row.get("step", "review")])
def test_wrong_value_can_be_skipped_like_a_failure(name: str, tmp_path: Path) -> None:
    """Not what a person is to see, and not the list of a fan-out, of which only items can be skipped."""
    row = EVERY[name]
    walked = walk_row(tmp_path, row, skipped(steps_of(row)))
    if str(row.get("where")).startswith("for_each"):
        assert (walked.ending.outcome, walked.ending.exit_code) == ("wrong_value", 3), walked.ending
    elif "for_each" in row["step"]:
        assert (walked.ending.outcome, walked.ending.exit_code) == ("build_failed", 1), walked.ending
        assert row["fails"] in walked.ending.reason
    else:
        assert walked.ending.outcome == "success", walked.ending
        failed = walked.state.steps[row["step"]["id"]]
        assert (failed.status, walked.path[-1]) == ("failed", "end")
        assert row["fails"] in failed.error
        assert walked.asks[-1].visit == 1  # a failed template draws no number of an ask


@pytest.mark.parametrize("allow", [[], ["bad", "failed"]])
@pytest.mark.parametrize(
    "name", ["prompt-missing", "call-input", "tasks-text", "argv-mapping", "when-text", "set-text"]
)
def test_wrong_value_in_a_called_flow_fails_the_call(name: str, allow: list[str], tmp_path: Path) -> None:
    row = EVERY[name]
    called = {"name": "whole", "vars": {"n": 0}, "steps": steps_of(row)}
    steps: list[Json] = [{"id": "sub", "call": "whole", "allow": allow}, {"id": "end", "ask": "two"}]
    walked = walk_row(tmp_path, row, steps, called)
    if allow:
        assert (walked.ending.outcome, walked.state.steps["sub"].status) == ("success", "failed"), walked.ending
        assert row["fails"] in walked.state.steps["sub"].error
    else:
        assert (walked.ending.outcome, walked.ending.exit_code) == ("wrong_value", 3), walked.ending
        assert walked.ending.suggestion == "fork RUN --from sub:1"


def test_only_the_item_with_the_wrong_value_fails(tmp_path: Path) -> None:
    row = {"answer": {"tasks": [{"title": "a"}, {"name": "b"}]}}
    step = {**EVERY["item-lacks-field"]["step"], "prompt": "Do {{ task.title }}."}
    walked = walk_row(tmp_path, row, skipped([PLAN, step]))
    results = walked.state.steps["build"].output["results"]
    assert [each["status"] for each in results] == ["done", "failed"]
    assert "task.title is missing" in results[1]["error"]
    assert [ask.task for ask in walked.asks[1:]] == ["Do a."]


@pytest.mark.parametrize(
    "step", [{"ask": "two", "prompt": "{{ inputs.n.most }}"}, {"check": "command", "with": {"argv": ["{{ inputs }}"]}}]
)
def test_wrong_value_of_the_first_step_is_wrong_usage(step: Json, tmp_path: Path) -> None:
    """Nothing was spent, and no result is to blame."""
    ending = Script(tmp_path, {"two": [{}]}).walk({"inputs": {"n": 1}, "steps": [step]}).ending
    assert (ending.outcome, ending.exit_code, ending.suggestion) == ("wrong_usage", 2, "")


# Whole answers.

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
    asked: str = ""
    on_binary: bool = False

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
    problem: str = ""

    def __call__(self, question: Ask) -> Json | RoleFailed:
        self.asked += 1
        if self.asked == 1:
            reply = read(self.text, question)
            if not reply.problem:
                return RoleFailed(reply.refusal, "declined") if reply.refusal else reply.handoff or {}
            self.problem = reply.problem
        return self.right(question)


def play(case: Case, folder: Path) -> tuple[str, str, Ending]:
    """How the case ends, the problem that its role gets, and the end of the run."""
    flow = TABLE["flows"][case.flow]
    right: list[Json] = flow["answers"][case.role]
    wrong = WrongFirst(case.answer, lambda ask: right[min(ask.visit, len(right)) - 1])
    plays: dict[str, Sequence[Play]] = {**flow["answers"], case.role: [wrong]}
    team = team_of(flow, folder)
    ending = Script(folder, plays).walk_loaded("own", *load_team("own", team.folder / "roles"), {}).ending
    if ending.exit_code == 0:
        return REPAIR if wrong.problem else RIGHT, wrong.problem, ending
    return (FAILED if ending.exit_code == 3 and not wrong.problem else ending.outcome), wrong.problem, ending


def team_of(flow: Record, folder: Path) -> TeamFolder:
    """The catalog and the flows; with ``schemas: true``, the roles have those of the recorded answers."""
    schemas = SAMPLES["schemas"] if flow.get("schemas") is True else flow.get("schemas", {})
    roles = {role: {"output_schema": schemas[role]} if role in schemas else {} for role in flow["answers"]}
    team = with_flow(TeamFolder(folder, roles, {}), flow["flow"])
    for called in flow.get("called", ()):
        with_flow(team, {key: value for key, value in called.items() if key != "name"}, called["name"])
    return team


CASES = [Case(**each) for each in TABLE["cases"]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_wrong_answer_ends_by_the_rules(case: Case, tmp_path: Path) -> None:
    end, problem, ending = play(case, tmp_path)
    assert end in case.ends, ending
    assert case.asked in problem


# Six cells on the binary: four answers, and two values that only a step knows.


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
@pytest.mark.parametrize("case", [case for case in CASES if case.on_binary], ids=lambda case: case.name)
def test_wrong_answer_ends_alike_on_the_binary(case: Case, tmp_path: Path) -> None:
    flow = TABLE["flows"][case.flow]
    team = team_of(flow, tmp_path)
    right = {role: [{"json": each} for each in given] * 3 for role, given in flow["answers"].items()}
    team.plays = {**right, case.role: [{"text": case.answer, "repairs": right[case.role][:1]}, *right[case.role]]}
    team.write_plays()
    report = team.run(flow="own")
    repairs = [turn for turn in team.of_type("turn_started") if turn["repair_of"] is not None]
    end = FAILED if report.exit_code == 3 else REPAIR if repairs else RIGHT
    assert (end, report.exit_code) == (case.ends, 3 if end == FAILED else 0), report


def run_with(row: Record, folder: Path) -> tuple[TeamFolder, RunReport]:
    """The team, and its run with the wrong value."""
    team = TeamFolder(folder, {"planner": {}, "builder": {}}, {"builder": [say("built")] * 3})
    with_flow(team, {"inputs": {"file": str(folder / "value.json")}, "steps": row["steps"]})
    give(team, row["given"][0])
    report = team.run(flow="own")
    assert (report.outcome, report.exit_code) == ("wrong_value", 3), report
    assert row["problem"] in report.reason
    return team, report


def give(team: TeamFolder, value: Json) -> None:
    team.plays["planner"] = [say(**value)]
    (team.folder / "value.json").write_text(json.dumps(value))
    team.write_plays()


def paid_by(*arguments: str, folder: Path) -> list[str]:
    """The roles that a command asks."""
    done = console(*arguments, "--json", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [each["role"] for each in events if each["type"] == "turn_ended"]


@pytest.mark.real
@pytest.mark.parametrize("row", TABLE["runs"], ids=lambda row: row["fails"])
def test_run_that_met_a_wrong_value_pays_only_from_where_it_came(row: Record, tmp_path: Path) -> None:
    team, report = run_with(row, tmp_path)
    assert [role for role, *_ in team.turns()] == ["planner"]
    assert team.of_type("step_started")[-1]["step"] == row["fails"]
    again = read_json(report.folder / "run.json")["suggestion"]
    assert again == f"fork RUN --from {row['again']}:1"
    resumed = team.resume()
    assert (resumed.outcome, team.turns()) == ("wrong_value", [])
    shown = " ".join(console("show", "latest", folder=tmp_path).stdout.split())
    assert f"--from {row['again']}:1" in shown
    assert row["problem"] in shown
    give(team, row["given"][1])
    arguments = shlex.split(again.replace("RUN", report.run_id))
    assert paid_by(*arguments, "--playbook", "playbook.yaml", folder=tmp_path) == row["paid"]


@pytest.mark.real
def test_fork_can_start_at_the_step_that_failed(tmp_path: Path) -> None:
    """It has started, although its templates could not be filled in."""
    row = TABLE["runs"][0]
    team, _ = run_with(row, tmp_path)
    steps = [*row["steps"][:2], {"id": "build", "ask": "builder", "prompt": "Do it."}]
    with_flow(team, {"inputs": {"file": str(tmp_path / "value.json")}, "steps": steps})
    assert paid_by("fork", "latest", "--from", "build", "--roles", "roles", folder=tmp_path) == ["builder"]
