"""How a run ended, in words, and the command to continue with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codex_multi_role.errors import LOOK, MORE_CYCLES, ExitCode, RunStatus
from codex_multi_role.presentation.wording import PROGRAM, one_line
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.run_folder import Questions, RunFolder
from codex_multi_role.run_options import RunOptions

OUTCOMES = {
    "done": "Done",
    "cycles_used_up": "All cycles are used up",
    "tests_failed": "The tests fail",
    "role_failed": "A role failed",
    "waiting_for_review": "Waiting for a person",
    "budget_used_up": "A budget is used up",
    "quota": "The provider takes no more turns for now",
    "cancelled": "Cancelled",
    "gave_up": "A role gave up",
    "declined": "A role declined its part",
}


def outcome_in_words(outcome: str) -> str:
    """Return a run's ``outcome`` for people; a flow's own name for an end is shown as it is."""
    return OUTCOMES.get(outcome) or one_line(outcome.replace("_", " ")).capitalize()


def exit_meaning(exit_code: object, otherwise: str = "see the reason") -> str:
    """What ``exit_code`` means, or ``otherwise`` if it is not one of ours."""
    code = ExitCode.find(exit_code)
    return code.meaning if code is not None else otherwise


def show_command(run_id: str, runs_dir: Path) -> str:
    """Return the command that shows a run in detail."""
    return f"{PROGRAM} show {run_id}{_where(runs_dir)}"


def report_command(run_id: str, runs_dir: Path) -> str:
    """Return the command that writes the page of a run."""
    return f"{PROGRAM} report {run_id}{_where(runs_dir)}"


def resume_command(run_id: str, runs_dir: Path) -> str:
    """Return the command that resumes a run."""
    return f"{PROGRAM} resume {run_id}{_where(runs_dir)}"


def more_cycles(record: Mapping[str, Any]) -> int | None:
    """Return the number of cycles to resume a run with that ended without its goal; None if more would not help."""
    found = re.fullmatch(r"resume RUN --cycles (\d+)", _suggestion(record))
    return int(found[1]) if found and record.get("exit_code") == ExitCode.GOAL_NOT_REACHED else None


def _suggestion(record: Mapping[str, Any]) -> str:
    """Return what the end of the run suggests; runs of earlier versions recorded only their outcome."""
    if "suggestion" in record or record.get("outcome") != "cycles_used_up":
        return str(record.get("suggestion") or LOOK)
    cycles = int(record.get("options", {}).get("cycles", RunOptions.cycles))
    return f"resume RUN --cycles {cycles + MORE_CYCLES}"


def answer_commands(run_id: str, runs_dir: Path, open_keys: Sequence[str]) -> str:
    """Return the two commands that answer a run's open question, the oldest of several, and resume the run."""
    which = f"{run_id}{_where(runs_dir)}"
    if len(open_keys) > 1:
        which += f" --question {shlex.quote(open_keys[0])}"
    return f"{PROGRAM} approve {which} --resume, or {PROGRAM} reject {which} --comment WHY --resume"


def next_command(folder: RunFolder, runs_dir: Path, exit_code: int | None) -> str:
    """Return the command to type next: a closer look at a run that reached its goal, otherwise what continues it.

    That is an answer if it waits for one, what its end suggests if it has ended, and a resume in all other cases.
    """
    if exit_code == ExitCode.GOAL_REACHED:
        return show_command(folder.run_id, runs_dir)
    record = read_object(folder.record_path)
    if exit_code == ExitCode.GOAL_NOT_REACHED:
        which = f"{folder.run_id}{_where(runs_dir)}"
        return f"{PROGRAM} {re.sub(r'(?<= )RUN', lambda _: which, _suggestion(record), count=1)}"
    pending = Questions(folder.path).pending() if exit_code == ExitCode.WAITING else []
    if pending:
        return answer_commands(folder.run_id, runs_dir, [question.key for question in pending])
    again = resume_command(folder.run_id, runs_dir)
    return f"{again} --wait" if exit_code == ExitCode.BUDGET_USED_UP and record.get("resets_at") else again


def next_from_record(folder: RunFolder, runs_dir: Path, record: Mapping[str, Any], status: str) -> str:
    """Return `next_command` for a run whose current status is ``status``; empty if nothing is left to do."""
    if (
        record.get("exit_code") == ExitCode.GOAL_REACHED
        or status == RunStatus.RUNNING
        or not isinstance(record.get("options"), Mapping)
    ):
        return ""
    return next_command(folder, runs_dir, record.get("exit_code"))


def _where(runs_dir: Path) -> str:
    return "" if runs_dir.absolute() == RunOptions.runs_dir.absolute() else f" --runs-dir {shlex.quote(str(runs_dir))}"
