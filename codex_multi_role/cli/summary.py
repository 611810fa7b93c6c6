"""What is said when a run is over: how it went, what it cost, where everything lies, what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from codex_multi_role.cli.boundary import PROGRAM
from codex_multi_role.cli.options import RUNS_DIR
from codex_multi_role.cli.progress import Progress
from codex_multi_role.cli.text import duration, one_line, plural, verdict
from codex_multi_role.errors import QuotaUsedUp, ReviewWaiting
from codex_multi_role.options import RunReport
from codex_multi_role.run_folder import Question, Questions, RunFolder

MORE_CYCLES = 3
WAITING = ReviewWaiting.exit_code
FILES_NAMED = 6
EXIT_MEANINGS = {
    0: "goal reached",
    1: "ended without reaching the goal",
    2: "wrong usage or configuration",
    3: "a role or Codex failed for good",
    4: "parked, waiting for a person",
    5: "parked, a budget or a quota is used up",
    130: "interrupted",
}
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
}


def outcome_in_words(outcome: str) -> str:
    """A run's ``outcome`` for people; a name that a flow gave its end is shown as it is."""
    return OUTCOMES.get(outcome) or one_line(outcome.replace("_", " ")).capitalize()


def show_command(run_id: str, runs_dir: Path) -> str:
    """The command that looks closer at a run."""
    return f"{PROGRAM} show {run_id}{_where(runs_dir)}"


def resume_command(run_id: str, runs_dir: Path, exit_code: int | None, cycles: int) -> str:
    """The command that goes on with a run that did not reach its goal; none that used up its cycles without more."""
    more = f" --cycles {cycles + MORE_CYCLES}" if exit_code == 1 else ""
    return f"{PROGRAM} resume {run_id}{_where(runs_dir)}{more}"


def answer_commands(run_id: str, runs_dir: Path, pending: Sequence[Question]) -> str:
    """The two commands that answer a run's open question and go on with it; the oldest where there are several."""
    which = f"{run_id}{_where(runs_dir)}"
    if len(pending) > 1:
        which += f" --question {shlex.quote(pending[0].key)}"
    return f"{PROGRAM} approve {which} --resume, or {PROGRAM} reject {which} --comment WHY --resume"


def next_command(folder: RunFolder, runs_dir: Path, exit_code: int | None, cycles: int) -> str:
    """What helps a run on that did not reach its goal: an answer where it waits for one, otherwise a resume."""
    pending = Questions(folder.path).pending() if exit_code == WAITING else []
    if pending:
        return answer_commands(folder.run_id, runs_dir, pending)
    again = resume_command(folder.run_id, runs_dir, exit_code, cycles)
    return f"{again} --wait" if exit_code == QuotaUsedUp.exit_code and folder.record().get("resets_at") else again


def _where(runs_dir: Path) -> str:
    return "" if runs_dir == RUNS_DIR.default else f" --runs-dir {shlex.quote(str(runs_dir))}"


def summary(report: RunReport, progress: Progress, runs_dir: Path) -> Iterator[str]:
    """The lines of the closing summary."""
    totals = report.totals
    yield f"{outcome_in_words(report.outcome)}{f': {one_line(report.reason)}' if report.reason else ''}"
    if progress.playbook:
        yield f"  No model was asked: the answers came from the playbook {one_line(progress.playbook)}."
    repairs = f" ({plural(totals['repairs'], 'repair')})" if totals["repairs"] else ""
    yield f"  turns    {totals['turns']:.0f}{repairs} in {duration(totals['seconds'])}"
    yield f"  tokens   {totals['input_tokens']:,.0f} in, {totals['output_tokens']:,.0f} out"
    if progress.tests is not None:
        yield f"  tests    {verdict(progress.tests)}"
    if progress.files_written or progress.files_skipped:
        yield f"  files    {_files(progress)}"
    yield f"  folder   {report.folder}"
    if report.hint:
        yield f"  hint     {one_line(report.hint, 500)}"
    yield f"  exit     {report.exit_code}: {EXIT_MEANINGS.get(report.exit_code, 'see the reason above')}"
    if report.exit_code == 0:
        yield f"  next     {show_command(report.run_id, runs_dir)}"
    else:
        yield f"  next     {next_command(RunFolder(report.folder), runs_dir, report.exit_code, progress.cycles)}"


def _files(progress: Progress) -> str:
    names = [one_line(name) for name in progress.written]
    more = f" and {len(names) - FILES_NAMED} more" if len(names) > FILES_NAMED else ""
    skipped = f"; {progress.files_skipped} skipped" if progress.files_skipped else ""
    times = f" ({plural(progress.files_written, 'write')})" if names else "none written"
    return f"{', '.join(names[:FILES_NAMED])}{more}{times}{skipped}"
