"""Reports to a CI system at the end of a run: the requested files, and annotations in its log."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codex_multi_role.cli.options import REPORTS
from codex_multi_role.cli.output import annotate, say
from codex_multi_role.errors import CodexMultiRoleError, StorageError
from codex_multi_role.host.atomic import append_text, still_there, write_bytes, write_json, write_text
from codex_multi_role.host.workflow_log import runs_here
from codex_multi_role.integrations.ci.github import SUMMARY_VARIABLE, TOP_VARIABLE, run_annotations

if TYPE_CHECKING:
    from codex_multi_role.integrations.ci.ended_run import EndedRun
    from codex_multi_role.presentation.progress import Progress
    from codex_multi_role.run_options import RunReport


def report_end(ctx: click.Context, report: RunReport, progress: Progress) -> None:
    """Report the end of the run to CI. A failure here is printed and does not change how the run ended."""
    if not (_asked_for(ctx) or runs_here()):
        return
    try:
        _report(ctx, report, progress)
    except (CodexMultiRoleError, OSError, ValueError) as error:  # the run's files can no longer be read
        say(f"warning: the run has ended and the exit code stays {report.exit_code}, but the reports failed: {error}")


def _report(ctx: click.Context, report: RunReport, progress: Progress) -> None:
    from codex_multi_role.integrations.ci.ended_run import EndedRun  # here: few runs write reports

    run = EndedRun.of(report, progress)
    _write_reports(ctx, run)
    if runs_here():
        top = os.environ.get(TOP_VARIABLE)
        for command in run_annotations(run, Path(top) if top else None):
            annotate(command)


def reported(body: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command so that it also writes its reports, as failed, for an error before the run."""

    @wraps(body)
    def command(ctx: click.Context, /, **values: Any) -> None:  # noqa: ANN401 - the command's settings
        try:
            body(ctx, **values)
        except CodexMultiRoleError as error:
            if _asked_for(ctx):
                from codex_multi_role.integrations.ci.ended_run import EndedRun  # as above

                _write_reports(ctx, EndedRun.without_run(error))
            raise

    return command


def _asked_for(ctx: click.Context) -> bool:
    return any(ctx.params.get(setting.key) for setting in REPORTS)


def say_unreported(ctx: click.Context) -> None:
    """Warn about requested reports if the run does not end in this process."""
    for setting in REPORTS:
        if ctx.params.get(setting.key):
            say(f"warning: --{setting.key} was not written because the run did not end in this process")


def _write_reports(ctx: click.Context, run: EndedRun) -> None:
    prefix = "the run has ended and " if run.folder else ""
    for setting in REPORTS:
        if (path := ctx.params.get(setting.key)) is not None:
            try:
                _write(setting.key, still_there(path), run)
            except StorageError as error:
                code = f"the exit code stays {run.exit_code}"
                say(f"warning: {prefix}{code}, but --{setting.key} was not written: {error}")


def _write(report: str, path: Path, run: EndedRun) -> None:
    match report:
        case "junit":
            from codex_multi_role.integrations.ci.junit import junit_report  # as above

            write_bytes(path, junit_report(run))
        case "summary":
            from codex_multi_role.integrations.ci.job_summary import job_summary

            text = job_summary(run)
            if _is_step_summary(path):
                append_text(path, f"{text}\n")
            else:
                write_text(path, text)
        case "annotations":
            from codex_multi_role.integrations.ci.gitlab import link_annotations

            write_json(path, link_annotations(run))


def _is_step_summary(path: Path) -> bool:
    """Whether it is GitHub's summary file of this step, which earlier commands of the step may have written to."""
    given = os.environ.get(SUMMARY_VARIABLE)
    return bool(given) and Path(str(given)).resolve() == path.resolve()
