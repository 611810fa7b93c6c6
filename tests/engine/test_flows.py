"""Flows of one's own on the real binary: single asks, checks, routes, named ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role import RunReport
from codex_multi_role.errors import DefinitionError, UsageError
from tests.support.console import console
from tests.support.teams import WRITER, Record, TeamFolder, read, say, with_flow


def test_loop_over_ask_and_check_until_the_tests_pass(tmp_path: Path) -> None:
    files = [{"path": "test_it.py", "content": f"def test_it():\n    assert {value}\n"} for value in (False, True)]
    team = TeamFolder(tmp_path, {"writer": WRITER}, {"writer": [say(files=[file]) for file in files]})
    route = [
        {"when": "steps.measure.failed == 0", "end": "green"},
        {"when": "steps.measure.visits >= inputs.most", "end": "gave_up", "exit": 1},
        {"to": "writer"},
    ]
    steps = [{"ask": "writer"}, {"id": "measure", "check": "tests", "next": route}]
    report = with_flow(team, {"inputs": {"most": 3}, "steps": steps}).run(flow="own")
    assert (report.outcome, report.exit_code) == ("green", 0)
    assert [turn[:2] for turn in team.turns()] == [("writer", 1), ("writer", 2)]
    assert '"status": "failed"' in (report.folder / "writer/turn_002/prompt.txt").read_text()
    record = read(report.folder / "run.json")
    assert (record["flow"], record["inputs"]) == ("own", {"most": 3})
    assert (report.folder / "catalog/flows/own.yaml").is_file()


def test_named_end_with_exit_code_1_is_not_success(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say(verdict="bad")]})
    steps = [
        {"ask": "one", "next": [{"when": "steps.one.verdict == 'bad'", "end": "rejected", "exit": 1}, {"end": "ok"}]}
    ]
    report = with_flow(team, {"steps": steps}).run(flow="own")
    assert (report.status, report.outcome, report.exit_code) == ("ended", "rejected", 1)


def test_condition_error_ends_run_with_location(tmp_path: Path) -> None:
    """A condition that cannot be evaluated fails the run, and the reason names its place in the flow."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    steps = [{"ask": "one", "next": [{"when": "steps.one.verdict.grade > 1", "end": "ok"}]}]
    report = with_flow(team, {"steps": steps}).run(flow="own")
    assert (report.status, report.exit_code) == ("failed", 2)
    assert "next[0].when" in report.reason


def test_unbounded_flow_is_refused_before_anything_starts(tmp_path: Path) -> None:
    team = with_flow(TeamFolder(tmp_path, {"one": {}}, {}), {"steps": [{"ask": "one", "next": [{"to": "one"}]}]})
    with pytest.raises(DefinitionError, match="one -> one"):
        team.run(flow="own")
    assert not team.runs.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"flow": "cyclse"}, "cycles"), ({"inputs": {"x": "1"}}, "input"), ({"playbook": "roman"}, "roman-numerals")],
)
def test_wrong_names_are_refused_with_the_nearest(tmp_path: Path, changes: Record, words: str) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {})
    with pytest.raises(UsageError) as caught:
        team.run(**changes)
    assert words in f"{caught.value} {caught.value.hint}"
    assert not team.runs.exists()


def test_of_a_called_flow_its_caller_sees_the_outputs_alone(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    look = {"check": "command", "with": {"argv": ["true"], "json": False}}
    with_flow(team, {"outputs": ["shown"], "steps": [{"id": "hidden", **look}, {"id": "shown", **look}]}, "inner")
    seen = "steps.inner.steps.shown.exit_code == 0 and steps.inner.steps.hidden is not defined"
    steps = [{"call": "inner", "next": [{"when": seen, "end": "as_declared"}, {"end": "otherwise", "exit": 1}]}]
    assert with_flow(team, {"steps": steps}).run(flow="own").outcome == "as_declared"


TWICE: Record = {"for_each": [1, 2], "concurrency": 2}


@pytest.mark.parametrize(
    ("keys", "outputs", "handed"),
    [
        ({}, None, "last of inner 1"),
        ({}, ["one"], "first of inner 1"),
        ({}, [], "outside"),
        (TWICE, None, "last of inner 2"),
        (TWICE, ["one"], "first of inner 2"),
        (TWICE, [], "outside"),
    ],
)
def test_role_after_call_starts_from_called_flows_outputs(
    tmp_path: Path, keys: Record, outputs: list[str] | None, handed: str
) -> None:
    """It does not start from the handoff before the call, or from an older one of the role asked last."""
    plays = {
        "one": [say("outside"), say("first of inner {{ 2 if 'item\": 2' in prompt else 1 }}")],
        "two": [say("last of inner {{ 2 if 'inner 2' in prompt else 1 }}")],
        "three": [say("end")],
    }
    team = TeamFolder(tmp_path, {role: {} for role in plays}, plays)
    inner: Record = {"steps": [{"ask": "one"}, {"ask": "two"}]}
    with_flow(team, inner if outputs is None else {"outputs": outputs, **inner}, "inner")
    steps = [{"ask": "one"}, {"call": "inner", **keys}, {"ask": "three"}]
    report = with_flow(team, {"steps": steps}).run(flow="own")
    state = read(report.folder / "controller_state.json")
    latest = {name: handoff["summary"] for name, handoff in state["latest_json_by_role"].items()}
    visits = 2 if keys else 1
    assert latest == {"one": f"first of inner {visits}", "two": f"last of inner {visits}", "three": "end"}
    prompt = (report.folder / "three/turn_001/prompt.txt").read_text()
    assert f'"{handed}"' in prompt
    assert prompt.count('"summary"') == 1


@pytest.mark.parametrize(
    ("keys", "answer"), [({}, "steps.one"), ({"for_each": ["a"]}, "steps.one.results[0]"), ({}, "roles.one")]
)
def test_flow_can_route_on_a_status_that_its_role_answers(tmp_path: Path, keys: Record, answer: str) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say(status="blocked", error="no key")]})
    place = answer if answer == "roles.one" else f"{answer}.handoff"
    when = f"{place}.status == 'blocked' and {place}.error == 'no key'"
    steps = [{"ask": "one", **keys, "next": [{"when": when, "end": "blocked", "exit": 1}, {"end": "missed"}]}]
    assert with_flow(team, {"steps": steps}).run(flow="own").outcome == "blocked"


def test_items_can_call_flows_that_fan_out_themselves(tmp_path: Path) -> None:
    """What an item comes to is kept in a file, with the answers of its own items in it."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say(status="blocked")]})
    with_flow(team, {"steps": [{"ask": "one", "for_each": [1]}]}, "inner")
    report = with_flow(team, {"steps": [{"id": "outer", "call": "inner", "for_each": [1]}]}).run(flow="own")
    assert report.outcome == "success"
    kept = read(report.folder / "items/outer.1.0.json")["outcome"]["output"]["steps"]["one"]["results"]
    assert [(each["status"], each["handoff"]["status"]) for each in kept] == [("done", "blocked")]


def suggested(report: RunReport) -> str:
    found: str = read(report.folder / "run.json")["suggestion"]
    return found


def test_cycles_used_up_suggests_more_cycles_and_they_help(tmp_path: Path) -> None:
    """The suggested resume continues the run."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say("a"), say("b"), say("c")]})
    report = team.run(cycles=1)
    assert suggested(report) == "resume RUN --cycles 4"
    assert (
        f"next: codex-multi-role resume {report.run_id} --cycles 4" in console("show", "latest", folder=tmp_path).stdout
    )
    assert team.resume(cycles=3).outcome == "cycles_used_up"
    assert len(team.turns()) == 2


def test_done_with_failing_tests_suggests_fork(tmp_path: Path) -> None:
    """A resume would only find the same DONE again."""
    files = [{"path": "test_it.py", "content": "def test_it():\n    assert False\n"}]
    keys: Record = {"behaviors": {"apply_files": True, "can_finish": True}}
    team = TeamFolder(tmp_path, {"one": keys}, {"one": [say("a"), say("b", files=files, status="DONE")]})
    report = team.run(cycles=3, run_tests=True)
    assert (report.outcome, suggested(report)) == ("tests_failed", "fork RUN --from team:2")
    assert team.resume(cycles=6).outcome == "tests_failed"
    assert team.turns() == []


FORK = "fork RUN --from a -i most={{ inputs.most * 2 }}"


@pytest.mark.parametrize(
    ("route", "suggestion", "reason"),
    [
        ({}, "show RUN", "the flow own ended in cycle 1: bad"),
        ({"suggest": FORK, "reason": "it said {{ roles.one.summary }}"}, "fork RUN --from a -i most=6", "it said no"),
        ({"reason": "{{ roles.one.summary | sum }}"}, "show RUN", "the flow own ended in cycle 1: bad"),
    ],
)  # fmt: skip
def test_flow_without_cycles_suggests_what_it_says_itself(
    tmp_path: Path, route: Record, suggestion: str, reason: str
) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say("no")]})
    step = {"id": "ask", "ask": "one", "next": [{"end": "bad", "exit": 1, **route}]}
    report = with_flow(team, {"inputs": {"most": 3}, "steps": [step]}).run(flow="own")
    assert (report.outcome, report.exit_code, report.reason) == ("bad", 1, reason)
    assert suggested(report) == suggestion
