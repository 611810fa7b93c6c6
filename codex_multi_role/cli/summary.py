"""The closing summary of a run: how it went, what it cost, where its files are, what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codex_multi_role.errors import ExitCode
from codex_multi_role.presentation.outcome import (
    exit_in_words,
    next_command,
    outcome_in_words,
    playbook_in_words,
    report_command,
    tokens_in_words,
    turns_in_words,
)
from codex_multi_role.presentation.plain import question_lines
from codex_multi_role.presentation.progress import Progress
from codex_multi_role.presentation.wording import one_line, plural, verdict
from codex_multi_role.run_folder import Questions, RunFolder
from codex_multi_role.run_options import RunReport

FILES_NAMED = 6


def summary(report: RunReport, progress: Progress, runs_dir: Path) -> Iterator[str]:
    totals = report.totals
    yield f"{outcome_in_words(report.outcome)}{f': {one_line(report.reason)}' if report.reason else ''}"
    if progress.playbook:
        yield f"  {playbook_in_words(progress.playbook, over=True)}"
    yield f"  turns    {turns_in_words(totals)}"
    yield f"  tokens   {tokens_in_words(totals['input_tokens'], totals['output_tokens'])}"
    if progress.tests is not None:
        yield f"  tests    {verdict(vars(progress.tests))}"
    if progress.files.written or progress.files.skipped:
        yield f"  files    {_files(progress)}"
    yield f"  folder   {report.folder}"
    if report.page is not None:
        yield f"  report   {report.page}"
    if report.page_problem:
        yield f"  report   {no_page(report, runs_dir)}"
    if report.exit_code == ExitCode.WAITING:
        yield from _waiting_for(RunFolder(report.folder))
    if report.hint:
        yield f"  hint     {one_line(report.hint, 500)}"
    yield f"  exit     {exit_in_words(report.exit_code, 'see the reason above')}"
    yield f"  next     {next_command(RunFolder(report.folder), runs_dir, report.exit_code)}"


def _waiting_for(folder: RunFolder) -> Iterator[str]:
    """Yield the open questions with what each is about: this is where people read what they approve."""
    for question in Questions(folder.path).pending():
        yield ""
        yield from (f"  {line}" for line in question_lines(question))
        yield ""


def no_page(report: RunReport, runs_dir: Path) -> str:
    """Say that a run has no report, and why."""
    again = report_command(report.run_id, runs_dir)
    return f"not written: {one_line(report.page_problem, 500)}; `{again}` tries again"


def _files(progress: Progress) -> str:
    names = [one_line(name) for name in progress.files.paths]
    more = f" and {len(names) - FILES_NAMED} more" if len(names) > FILES_NAMED else ""
    skipped = f"; {progress.files.skipped} skipped" if progress.files.skipped else ""
    times = f" ({plural(progress.files.written, 'write')})" if names else "none written"
    return f"{', '.join(names[:FILES_NAMED])}{more}{times}{skipped}"
