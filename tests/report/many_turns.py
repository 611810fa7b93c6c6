"""A run of many turns as it lies in its folder, without having been run."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from codex_multi_role.run_folder import Record, RunEvent, RunFolder
from codex_multi_role.run_folder import events as e
from tests.cli.run_folders import record

ROLES = ("planner", "architect", "implementer", "integrator")
BEGAN = datetime(2026, 1, 31, 10, 15, tzinfo=UTC)
PATCH = "diff --git a/part.py b/part.py\n--- a/part.py\n+++ b/part.py\n@@ -1 +1,2 @@\n-old\n+new\n+line\n"


def make(runs_dir: Path, turns: int, *, prompt: str, answer: str) -> RunFolder:
    """``turns`` turns in all, by four roles one after the other; every eighth fails its tests."""
    folder = RunFolder.create(runs_dir, f"{turns}_turns")
    folder.write_record(
        record(folder.run_id, flow="cycles", outcome="done", status="succeeded", exit_code=0, reason="")
    )
    clock, happened = 0, [_at(_started(folder), 0)]
    for number in range(turns):
        role, own = ROLES[number % len(ROLES)], number // len(ROLES) + 1
        if role == ROLES[0]:
            happened.append(_at(e.StepStarted("team", own, own, 1), clock))
        happened += _turn(folder, role, own, clock, prompt, answer)
        clock += 60
    folder.events_path.write_text("".join(json.dumps(each) + "\n" for each in happened))
    return folder


def _started(folder: RunFolder) -> RunEvent:
    return e.RunStarted(
        folder.run_id, "Build all of it", "cycles", 250, list(ROLES), "/project", str(folder.path), None, False
    )


def _turn(folder: RunFolder, role: str, number: int, clock: int, prompt: str, answer: str) -> list[Record]:
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


def _at(event: RunEvent, second: int) -> Record:
    moment = BEGAN + timedelta(seconds=second)
    return {**event.as_record(), "at": moment.isoformat(timespec="milliseconds")}
