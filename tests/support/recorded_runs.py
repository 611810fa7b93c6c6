"""Run folders as a run leaves them, without a run: built from the real event types."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from codex_multi_role.run_folder import Question, Questions, RunEvent, RunFolder, TurnFolder
from codex_multi_role.run_folder import events as e

ROLES = ["planner", "implementer"]
FOUR_ROLES = ("planner", "architect", "implementer", "integrator")
PATCH = "diff --git a/part.py b/part.py\n--- a/part.py\n+++ b/part.py\n@@ -1 +1,2 @@\n-old\n+new\n+line\n"
FAILURES = [{"test": "test_a::test_one", "message": "assert 1 == 2"}]
BEGAN = datetime(2026, 1, 31, 10, 15, tzinfo=UTC)


def started(*, resumed: bool = False, playbook: str | None = "roman-numerals") -> e.RunStarted:
    """The first event of a run."""
    return e.RunStarted(
        run_id="20260131_101500_0a1b2c3d",
        goal="Convert roman numerals",
        flow="cycles",
        cycles=3,
        roles=ROLES,
        workspace="/project",
        folder="/project/runs/20260131_101500_0a1b2c3d",
        playbook=playbook,
        resumed=resumed,
        steps=["team"],
        limits={"turns": 20, "tokens": 50_000, "seconds": 600},
    )


def turn(
    role: str, number: int, cycle: int, *, status: str = "completed", repair_of: int | None = None
) -> list[RunEvent]:
    """The events of one turn, which is not valid unless ``status`` is ``completed``."""
    reason = "" if status == "completed" else "summary: is missing"
    said = f"what {role} did" if status == "completed" else ""
    return [
        e.TurnStarted(role, number, cycle, 1, repair_of),
        e.RoleActivity(role, number, "command: ls"),
        e.TurnEnded(role, number, status, status, reason, 1200, 34, 1.5, said, cost=0.42),
    ]


def ended(*, exit_code: int = 0) -> e.RunEnded:
    """The last event of a run: done, or out of cycles."""
    tokens = {"input_tokens": 6000, "output_tokens": 170, "cost": 2.1, "unpriced_turns": 0}
    totals: dict[str, int | float | None] = {"turns": 5, "repairs": 1, **tokens, "seconds": 12.5}
    status, outcome, reason = ("succeeded", "done", "implementer said DONE")
    if exit_code:
        status, outcome, reason = ("ended", "cycles_used_up", "all 3 cycles are used up")
    return e.RunEnded(status, outcome, reason, exit_code, totals, "/project/runs/20260131_101500_0a1b2c3d")


def whole_run() -> list[RunEvent]:
    """The records of a run of two cycles, with a failed and a passed test run, and a repair."""
    return in_order(
        started(),
        e.RoleStarted("planner", 101, "thread-1", 0.2, False),
        e.RoleStarted("implementer", 102, "thread-2", 0.3, False),
        e.StepStarted("team", 1, 1),
        *turn("planner", 1, 1),
        *turn("implementer", 1, 1, status="invalid_reply"),
        *turn("implementer", 2, 1, repair_of=1),
        e.FilesApplied("implementer", 2, 2, 1, ["roman.py", "test_roman.py"]),
        e.TestsStarted(1, "implementer", 2),
        e.TestsEnded(1, "failed", 3, 1, 0, 0, 0.4, ["test_a::test_one"]),
        e.StepStarted("team", 2, 2),
        *turn("planner", 2, 2),
        e.DoneIgnored("planner", 2),
        *turn("implementer", 3, 2),
        e.FilesApplied("implementer", 3, 1, 0, ["roman.py"]),
        e.TestsStarted(2, "implementer", 3),
        e.TestsEnded(2, "passed", 4, 0, 0, 0, 0.4),
        e.Warning("the disk is nearly full"),
        ended(),
    )


def in_order(*events: RunEvent) -> list[RunEvent]:
    """``events``, one second apart."""
    return [_at(event, second) for second, event in enumerate(events)]


def record(run_id: str, **changes: Any) -> dict[str, Any]:
    """The content of ``run.json`` after a run; ``changes``: keys that differ."""
    ended = {
        "run_id": run_id,
        "goal": "Convert roman numerals",
        "flow": "cycles",
        "status": "ended",
        "outcome": "cycles_used_up",
        "reason": "all 3 cycles are used up",
        "exit_code": 1,
        "started_at": "2026-01-31T10:15:00.000+00:00",
        "workspace": "/project",
        "playbook": None,
        "options": {"cycles": 3, "inputs": {}, "config": []},
        "totals": {"turns": 2, "repairs": 1, "input_tokens": 2400, "output_tokens": 68, "seconds": 12.5},
    }
    return {**ended, **changes}


def make_run(runs_dir: Path, run_id: str, **changes: Any) -> RunFolder:
    """The folder of a run that ended: two turns, tests, the events of `whole_run`. ``changes`` as of `record`."""
    folder = RunFolder.create(runs_dir, run_id)
    folder.write_record(record(run_id, **changes))
    folder.events_path.write_text("".join(json.dumps(event.as_record()) + "\n" for event in whole_run()))
    tokens = {"input": 1200, "output": 34}
    for status, reason, repair_of in (("invalid_reply", "summary: is missing", None), ("completed", "", 1)):
        turn = TurnFolder.create(folder, "planner")
        turn.begin("Role: planner", {})
        turn.write_result(
            {"status": status, "reason": reason, "repair_of": repair_of, "tokens": tokens, "seconds": 1.5}
        )
    turn.write_handoff({"summary": "planned\nit"})
    tests = folder.new_tests_folder()
    result = {"status": "failed", "passed": 3, "failed": 1, "failures": FAILURES}
    (tests / "result.json").write_text(json.dumps(result))
    return folder


def make_asking(runs_dir: Path, run_id: str = "asking") -> RunFolder:
    """A run that is parked until a person says whether the thing is shipped."""
    run = make_run(runs_dir, run_id, status="parked", outcome="waiting_for_review", reason="ok.1 waits", exit_code=4)
    Questions(run.path).ask(Question("ok.1", "Ship it?", "the thing", "2026-01-31T10:15:00.000+00:00", None, None))
    return run


def make_many_turns(runs_dir: Path, turns: int, *, prompt: str, answer: str) -> RunFolder:
    """``turns`` turns in all, by four roles one after the other; every eighth fails its tests."""
    folder = RunFolder.create(runs_dir, f"{turns}_turns")
    folder.write_record(
        record(folder.run_id, flow="cycles", outcome="done", status="succeeded", exit_code=0, reason="")
    )
    clock, happened = 0, [_at(_started(folder), 0)]
    for number in range(turns):
        role, own = FOUR_ROLES[number % len(FOUR_ROLES)], number // len(FOUR_ROLES) + 1
        if role == FOUR_ROLES[0]:
            happened.append(_at(e.StepStarted("team", own, own, 1), clock))
        happened += _write_turn(folder, role, own, clock, prompt, answer)
        clock += 60
    folder.events_path.write_text("".join(json.dumps(each.as_record()) + "\n" for each in happened))
    return folder


def _started(folder: RunFolder) -> RunEvent:
    return e.RunStarted(
        folder.run_id, "Build all of it", "cycles", 250, list(FOUR_ROLES), "/project", str(folder.path), None, False
    )


def _write_turn(folder: RunFolder, role: str, number: int, clock: int, prompt: str, answer: str) -> list[RunEvent]:
    turn = folder.path / role / f"turn_{number:03d}"
    turn.mkdir(parents=True)
    summary = f"{role} did part {number}"
    result = {"status": "completed", "tokens": {"input": 9000, "output": 700}, "seconds": 41.5, "cycle": number}
    files = {
        "prompt.txt": f"Role: {role}\nturn {number}\n{prompt}",
        "assistant_text.txt": answer,
        "items_text.md": f"## message\n\n{answer}",
        "handoff.json": json.dumps({"summary": summary, "text": answer}),
        "turn.json": json.dumps(result),
        **({"changes.patch": PATCH} if role == "implementer" else {}),
    }
    for name, text in files.items():
        (turn / name).write_text(text)
    told: list[tuple[RunEvent, int]] = [
        (e.TurnStarted(role, number, number, 1, None), clock),
        (e.TurnEnded(role, number, "completed", "completed", "", 9000, 700, 41.5, summary), clock + 41),
    ]
    if role == "implementer":
        status = "failed" if number % 2 else "passed"
        result = {"status": status, "passed": 3, "failed": number % 2, "errors": 0, "skipped": 0, "output_tail": "..."}
        tests = folder.path / "tests" / f"{number:03d}"
        tests.mkdir(parents=True)
        (tests / "result.json").write_text(json.dumps(result))
        told += [(e.TestsStarted(number, role, number), clock + 42)]
        told += [(e.TestsEnded(number, status, 3, number % 2, 0, 0, 5.0), clock + 47)]
    return [_at(event, moment) for event, moment in told]


def _at(event: RunEvent, second: int) -> RunEvent:
    moment = BEGAN + timedelta(seconds=second)
    return replace(event, at=moment.isoformat(timespec="milliseconds"))
