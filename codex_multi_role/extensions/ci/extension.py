"""``--junit``, ``--summary`` and ``--annotations``: reports to a CI system at the end of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from codex_multi_role.cli.output import say
from codex_multi_role.cli.run_additions import RunAddition
from codex_multi_role.cli.setting import Setting, report_file
from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.host.workflow_log import runs_here
from codex_multi_role.option import Section

if TYPE_CHECKING:
    from codex_multi_role.presentation.course import Course
    from codex_multi_role.run_options import RunReport


def _report(flag: str, content: str, **more: bool) -> Setting:
    return Setting(
        [flag],
        metavar="FILE",
        type=click.Path(path_type=Path),
        callback=report_file,
        section=Section.OUTPUT,
        help=f"When the run ends, write {content}.",
        **more,
    )


JUNIT = _report("--junit", "the run and its latest tests to FILE as JUnit XML")
SUMMARY = _report("--summary", "a Markdown summary to FILE (appended if FILE is $GITHUB_STEP_SUMMARY)")
ANNOTATIONS = _report("--annotations", "GitLab annotations with links into the run folder to FILE", is_set_once=True)
REPORTS = (JUNIT, SUMMARY, ANNOTATIONS)


def _files(ctx: click.Context) -> dict[str, Path]:
    """The requested files by the report that goes to each."""
    return {each.key: path for each in REPORTS if (path := ctx.params.get(each.key)) is not None}


def _ended(ctx: click.Context, report: RunReport, course: Course) -> None:
    if (files := _files(ctx)) or runs_here():
        from codex_multi_role.extensions.ci.reports import report_end  # here: few runs write reports

        report_end(files, report, course)


def _failed(ctx: click.Context, error: CodexMultiRoleError) -> None:
    if files := _files(ctx):
        from codex_multi_role.extensions.ci.reports import report_failure  # as above

        report_failure(files, error)


def _left(ctx: click.Context) -> None:
    for report in _files(ctx):
        say(f"warning: --{report} was not written because the run did not end in this process")


reports = RunAddition(REPORTS, _ended, _failed, _left)
