"""Bad results of real checks, called flows and people, in runs with real Codex processes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.reviews import answer
from tests.support.teams import Record, TeamFolder, read, say, with_flow
from tests.support.workspaces import commit_all
from tests.verdicts.table import EXIT_CODES, Cell, cells

pytestmark = [pytest.mark.usefixtures("real_codex"), pytest.mark.real]

FAILING: Record = {"check": "command", "with": {"argv": ["false"], "json": False}}
SLOW: Record = {"argv": ["sleep", "9"], "timeout_seconds": 0.2, "json": False}
SCHEMA: Record = {"file": "data.json", "schema": {"required": ["name"]}}
ENDS: Record = {
    "steps": [{"id": "look", **FAILING, "next": [{"when": "steps.look.exit_code", "end": "no", "exit": 1}]}]
}
REVIEW: Record = {"review": "Deploy?"}
TIMED: Record = {**REVIEW, "time_limit_seconds": 0.000001, "default": "reject"}
APPROVED = [{"when": "steps.x.approved", "to": "deploy"}]
BY: list[Record] = [{"key": "score", "prefer": "highest"}]
STEPS: dict[str, tuple[Record, str]] = {
    "rejected": (REVIEW, "rejected by "),
    "rejected after the time limit": (TIMED, "rejected by time limit"),
    "rejected, only approval routed": ({**REVIEW, "next": APPROVED}, "rejected by "),
    "tests": ({"check": "tests"}, "tests: failed: new failures: test_red.py::test_red"),
    "command": (FAILING, "check command: failed: exit code 1"),
    "command out of time": ({"check": "command", "with": SLOW}, "check command: timed out"),
    "schema": ({"check": "schema", "with": SCHEMA}, "check schema: invalid"),
    "call": ({"call": "inner"}, "inner ended with no"),
    "one item": (
        {"check": "command", "for_each": ["true", "false"], "with": {"argv": ["{{ item }}"], "json": False}},
        "bad items: 1 of 2, first x.1.1: check command: failed",
    ),
    "every item, skipped": ({"ask": "broken", "for_each": ["a", "b"], "on_error": "skip"}, "bad items: 2 of 2"),
    "choose": (
        {"check": "choose", "with": {"candidates": [{"status": "failed", "score": 1}], "by": BY}},
        "check choose: none",
    ),
}
NOW = ("rejected, only approval routed", "call", "every item, skipped")
"""In the gate as well; the others take the same way through the code there, without processes."""


def _cases() -> Iterator[Any]:
    for name in STEPS:
        for place in ("last", "middle"):
            marks = () if name in NOW and place == "middle" else pytest.mark.long
            if place == "middle" or "routed" not in name:
                yield pytest.param(name, place, marks=marks, id=f"{name}-{place}")


def team_with(folder: Path, step: Record, following: Sequence[Record]) -> TeamFolder:
    plays = {"one": [say("deployed")], "broken": [{"fault": {"status": 400}}] * 2}
    team = TeamFolder(folder, {"one": {}, "broken": {}}, plays)
    (team.workspace / "data.json").write_text("{}")
    (team.workspace / "test_red.py").write_text("def test_red():\n    assert False\n")
    commit_all(team.workspace)
    with_flow(team, ENDS, "inner")
    return with_flow(team, {"steps": [{"id": "x", **step}, *following]})


@pytest.mark.parametrize(("name", "place"), [*_cases()])
def test_bad_result_ends_the_run_with_its_reason(tmp_path: Path, name: str, place: str) -> None:
    step, reason = STEPS[name]
    team = team_with(tmp_path, step, [{"id": "deploy", "ask": "one"}] if place == "middle" else [])
    report = team.run(flow="own")
    if report.exit_code == 4:
        answer(team, False, "no")
        report = team.resume()
    assert (report.outcome, report.exit_code) == ("x_failed", 1), report
    assert f"step x: {reason}" in report.reason
    assert read(report.folder / "run.json")["suggestion"] == "fork RUN --from x:1"
    assert not [turn for turn in team.turns() if turn[0] == "one"]


def test_sandboxes_of_one_workspace_do_not_fail_each_other(tmp_path: Path) -> None:
    """They make and remove the same mount points: every run had a bad item before."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    true = {"check": "command", "with": {"argv": ["true"]}}
    with_flow(team, {"steps": [{"id": "x", **true, "for_each": [*range(60)], "concurrency": 12}]})
    assert team.run(flow="own").exit_code == 0


def test_merge_with_conflicts_ends_the_run(tmp_path: Path) -> None:
    writes = [say(files=[{"path": "data.json", "content": text}]) for text in ("[1]", "[2]")]
    team = TeamFolder(tmp_path, {"writer": {"behaviors": {"apply_files": True}}}, {"writer": writes})
    (team.workspace / "data.json").write_text("{}")
    commit_all(team.workspace)
    write = {"id": "write", "ask": "writer", "isolate": "worktree", "merge": "none", "for_each": ["a", "b"]}
    copies = "{{ steps.write.results | map(attribute='copy') | list }}"
    with_flow(team, {"steps": [write, {"id": "x", "check": "merge", "with": {"copies": copies}}]})
    report = team.run(flow="own")
    assert (report.outcome, report.exit_code) == ("x_failed", 1), report
    assert report.reason == "step x: check merge: conflicts"


ALWAYS_BAD = ("command: failed", "call: ended with exit 1", "review: out of time")
CELLS = [
    cell
    for cell in cells()
    if cell.result.name in ALWAYS_BAD and cell.response != "retry" and cell.place != "fan_out" and cell.end != "refused"
]


@pytest.mark.long
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_cell_of_the_table(tmp_path: Path, cell: Cell) -> None:
    """The cells whose results are bad as they stand; the others need a second try or item that is good."""
    roles: dict[str, Record] = {"one": {}, "boss": {"behaviors": {"can_finish": True}}}
    team = TeamFolder(tmp_path, roles, {"one": [say()] * 2, "boss": [say(status="DONE")]})
    for number, flow in enumerate(cell.flows()):
        text = json.dumps({key: value for key, value in flow.items() if key != "name"}).replace('["true"]', '["false"]')
        with_flow(team, json.loads(text), flow.get("name", "own") if number else "own")
    report = team.run(flow="own")
    assert (report.outcome, report.exit_code) == (cell.end, EXIT_CODES[cell.end]), report.reason
