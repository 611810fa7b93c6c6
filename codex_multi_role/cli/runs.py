"""``runs``: list the runs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from codex_multi_role.cli.options import JSON, RUNS_DIR, command
from codex_multi_role.cli.output import put_json, put_table, say
from codex_multi_role.presentation.recorded import open_questions, read_record, status_now, totals_now
from codex_multi_role.presentation.wording import compact, moment
from codex_multi_role.run_folder import list_runs

HEADINGS = ("run", "started", "flow", "status", "outcome", "turns", "tokens", "goal")


@command(RUNS_DIR, JSON, short_help="List the runs.")
def runs(runs_dir: Path, json: bool) -> None:
    """List the runs below --runs-dir, the oldest first.

    \b
    Examples:
      codex-multi-role runs
      codex-multi-role runs --json | jq -r '.[].run_id'
    """
    records = [
        {
            "run_id": folder.run_id,
            **record,
            "status": status_now(folder, record),
            "totals": totals_now(folder, record),
            "questions": list(map(asdict, open_questions(folder, record))),
        }
        for folder in list_runs(runs_dir)
        for record in [read_record(folder)]
    ]
    if json:
        put_json(records)
    elif records:
        put_table(HEADINGS, map(_row, records), numbers=("turns", "tokens"))
    else:
        say(f"There are no runs in {runs_dir}.")


def _row(record: dict[str, Any]) -> list[object]:
    totals = record["totals"]
    return [
        record["run_id"],
        _started(record),
        record.get("flow"),
        record["status"],
        _outcome(record),
        totals.get("turns", 0),
        compact(totals.get("input_tokens", 0) + totals.get("output_tokens", 0)),
        record.get("goal") or record.get("reason"),
    ]


def _outcome(record: dict[str, Any]) -> str:
    """Return what the run waits for, or how it ended."""
    asked = [f"{question['key']}: {question['question']}" for question in record["questions"]]
    return "; ".join(asked) or record.get("outcome") or ""


def _started(record: dict[str, Any]) -> str:
    started = record.get("started_at")
    return f"{moment(started):%Y-%m-%d %H:%M}" if started else ""
