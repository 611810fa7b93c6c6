"""Run folders as a run leaves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codex_multi_role.run_folder import RunFolder, TurnFolder
from tests.presentation.recorded_run import whole_run


def record(run_id: str, **changes: Any) -> dict[str, Any]:
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
    folder = RunFolder.create(runs_dir, run_id)
    folder.write_record(record(run_id, **changes))
    folder.events_path.write_text("".join(json.dumps(event) + "\n" for event in whole_run()))
    tokens = {"input": 1200, "output": 34}
    for status, reason, repair_of in (("invalid_reply", "summary: is missing", None), ("completed", "", 1)):
        turn = TurnFolder.create(folder, "planner")
        turn.begin("Role: planner", {})
        turn.write_result(
            {"status": status, "reason": reason, "repair_of": repair_of, "tokens": tokens, "seconds": 1.5}
        )
    turn.write_handoff({"summary": "planned\nit"})
    tests = folder.new_tests_folder()
    (tests / "result.json").write_text(json.dumps({"status": "failed", "passed": 3, "failed": 1}))
    return folder
