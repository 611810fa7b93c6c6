"""Every kind of bad result ends its flow; `test_rules` has the other places and answers to it.

So end workflows of other products as flows of ours, with good and with bad answers. Each of ``workflows/`` has another
shape: a catalog, the flow of its name with those that it calls, and ``answers/``, which say how they end by the three
rules of verdicts, written by hand.

Costs: each workflow is walked by the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted import Script, Walked
from tests.support.teams import TeamFolder, say, with_flow
from tests.verdicts.known_contracts import FILE, known_contracts
from tests.verdicts.playing import WORKFLOWS, Answers, play, walk

Record = dict[str, Any]
TOLD = {"argv": ["true"]}
BROKEN: Record = {
    "name": "broken",
    "internal": True,
    "steps": [
        {"id": "look", "check": "command", "with": TOLD, "next": [
            {"when": "steps.look.verdict == 'failed'", "end": "broken", "exit": 1}, {"end": "fine"},
        ]},
    ],
}  # fmt: skip
"""The flow that a call gets its bad result from."""


@dataclass(frozen=True)
class BadResult:
    """A kind of step and what it leaves: ``bad`` at first, ``good`` for the next try, which a person has not.

    ``step``: its own keys. ``when``: a condition that reads the result and holds if it is bad.
    ``reason``: of a run that it ends.
    """

    name: str
    step: Record
    reason: str
    when: str
    bad: Record = field(default_factory=dict)
    good: Record = field(default_factory=dict)


def check(name: str, status: str, good: str, options: Record | None = None, **more: Any) -> BadResult:
    """A check with a bad ``status``; ``more``: further fields of its result."""
    step, said, fields = {"check": name, "with": options or {}}, f"{name}: {status}", {"reason": "", **more}
    bad, reason = {"status": status, **fields}, said if name == "tests" else f"check {said}"
    return BadResult(said, step, reason, f"steps.x.verdict != '{good}'", bad, {"status": good, **fields})


TESTS = {"target": "a.py", "tests": "tests"}
REVIEWED = {"question": "Continue?", "after": {"seconds": 0.000001, "answer": "reject"}}
RESULTS = (
    check("command", "failed", "ok", TOLD),
    check("command", "timed out", "ok", TOLD),
    check("tests", "failed", "passed", number=1),
    check("tests", "timed out", "no tests", number=1),
    check("coverage", "crashed", "passed", TESTS),
    check("coverage", "syntax error", "passed", TESTS),
    check("schema", "invalid", "valid", {"file": "a.json", "schema": {}}, problems=["a: is missing"]),
    check("choose", "none", "chosen", {"candidates": [], "by": [{"key": "a", "prefer": "highest"}]}),
    check("merge", "conflicts", "merged", {"copies": ["x.1.1"]}),
    BadResult(
        "flaky: a test that always fails", {"check": "flaky"}, "check flaky: failed every time: test_a",
        "steps.x.failed",
        {"status": "ok", "flaky": {}, "failed": ["test_a"]},
        {"status": "ok", "flaky": {}, "failed": []},
    ),
    BadResult("review: rejected", {"review": "Continue?"}, "rejected by ", "not steps.x.approved"),
    BadResult("review: out of time", {"review": REVIEWED}, "rejected by time limit", "not steps.x.approved"),
    BadResult(
        "call: ended with exit 1", {"call": "broken"}, "broken ended with ", "steps.x.exit_code == 1",
        {"status": "failed"}, {"status": "ok"},
    ),
)  # fmt: skip


def walked(folder: Path, result: BadResult, **keys: object) -> Walked:
    """A flow whose step has these keys as well, and the bad result at first; a role is asked after it."""
    step = "x/look" if "call" in result.step else "x"
    answers = [] if "out of time" in result.name else [(False, "not yet")]
    script = Script(folder, {"one": [{"summary": "fine"}]}, {step: [result.bad, result.good]}, answers)
    called = [BROKEN] if "call" in result.step else []
    return script.walk({"steps": [{"id": "x", **result.step, **keys}, {"ask": "one"}]}, *called)


def marks_of(result: BadResult) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.extensions,) if result.name.startswith(("coverage", "flaky")) else ()


@pytest.mark.parametrize("result", [pytest.param(each, id=each.name, marks=marks_of(each)) for each in RESULTS])
def test_bad_result_ends_its_flow_unless_read_or_tried_again(tmp_path: Path, result: BadResult) -> None:
    ended = walked(tmp_path, result)
    assert (ended.ending.outcome, ended.ending.exit_code, ended.asks) == ("x_failed", 1, []), ended.ending
    assert f"step x: {result.reason}" in ended.ending.reason
    assert ended.ending.suggestion == "fork RUN --from x:1"
    assert walked(tmp_path, result, next=[{"when": result.when, "end": "handled"}]).ending.outcome == "handled"
    if result.good:
        again = walked(tmp_path, result, retry={"attempts": 2, "backoff_seconds": 0})
        assert (again.ending.outcome, len(again.asks)) == ("success", 1), again.ending


PLAYED = {f"{path.parents[1].name}-{path.stem}": path for path in sorted(WORKFLOWS.glob("*/answers/*.yaml"))}
ON_BINARY = [name for name, path in PLAYED.items() if "\non_binary:" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", PLAYED)
def test_walk_ends_by_the_rules(name: str, tmp_path: Path) -> None:
    answers = Answers.load(PLAYED[name])
    ending = walk(PLAYED[name].parents[1], answers, tmp_path)
    assert answers.expects(ending.exit_code, ending.outcome), ending


@pytest.mark.real
@pytest.mark.parametrize("name", ON_BINARY)
def test_run_on_the_binary_ends_by_the_rules(name: str, tmp_path: Path) -> None:
    answers = Answers.load(PLAYED[name])
    report = play(PLAYED[name].parents[1], answers, tmp_path)
    assert answers.expects(report.exit_code, report.outcome), report
    assert {each: (tmp_path / "workspace" / each).read_text() for each in answers.leaves} == answers.leaves


@pytest.mark.real
def test_sandboxes_of_one_workspace_do_not_fail_each_other(tmp_path: Path) -> None:
    """They make and remove the same mount points: every run had a bad item before."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    true = {"check": "command", "with": TOLD}
    with_flow(team, {"steps": [{"id": "x", **true, "for_each": {"items": [*range(60)], "concurrency": 12}}]})
    assert team.run(flow="own").exit_code == 0


@pytest.mark.extensions
@pytest.mark.real  # takes seconds
def test_derived_contracts_are_those_that_were_looked_at() -> None:
    assert known_contracts() == FILE.read_text(encoding="utf-8")
