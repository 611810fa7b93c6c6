"""Reports to a CI system at the end of a run: the requested files, and annotations in its log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from codex_multi_role.cli.output import annotate, say
from codex_multi_role.errors import CodexMultiRoleError, StorageError
from codex_multi_role.extensions.ci.ended_run import EndedRun
from codex_multi_role.extensions.ci.github import SUMMARY_VARIABLE, TOP_VARIABLE, run_annotations
from codex_multi_role.extensions.ci.gitlab import link_annotations
from codex_multi_role.extensions.ci.job_summary import job_summary
from codex_multi_role.extensions.ci.junit import junit_report
from codex_multi_role.host.atomic import append_text, still_there, write_bytes, write_json, write_text
from codex_multi_role.host.workflow_log import runs_here
from codex_multi_role.presentation.progress import Progress
from codex_multi_role.run_options import RunReport

Files = Mapping[str, Path]
"""The requested files by the report that goes to each."""


def report_end(files: Files, report: RunReport, progress: Progress) -> None:
    """Write the reports, and annotate the log of a workflow. Raises an error if the run can no longer be read."""
    run = EndedRun.of(report, progress)
    _write_reports(files, run)
    if runs_here():
        top = os.environ.get(TOP_VARIABLE)
        for command in run_annotations(run, Path(top) if top else None):
            annotate(command)


def report_failure(files: Files, error: CodexMultiRoleError) -> None:
    """Write the reports, as failed, for an ``error`` before the run."""
    _write_reports(files, EndedRun.without_run(error))


def _write_reports(files: Files, run: EndedRun) -> None:
    prefix = "the run has ended and " if run.folder else ""
    for report, path in files.items():
        try:
            _write(report, still_there(path), run)
        except StorageError as error:
            code = f"the exit code stays {run.exit_code}"
            say(f"warning: {prefix}{code}, but --{report} was not written: {error}")


def _write(report: str, path: Path, run: EndedRun) -> None:
    match report:
        case "junit":
            write_bytes(path, junit_report(run))
        case "summary":
            text = job_summary(run)
            if _is_step_summary(path):
                append_text(path, f"{text}\n")
            else:
                write_text(path, text)
        case "annotations":
            write_json(path, link_annotations(run))


def _is_step_summary(path: Path) -> bool:
    """Whether it is GitHub's summary file of this step, which earlier commands of the step may have written to."""
    given = os.environ.get(SUMMARY_VARIABLE)
    return bool(given) and Path(str(given)).resolve() == path.resolve()
