"""The settings that say where a CI system is told of a run."""

from __future__ import annotations

from pathlib import Path

import click

from codex_multi_role.cli.settings import Setting
from codex_multi_role.cli.values import report_file

JUNIT = Setting(
    ["--junit"],
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=report_file,
    help="When the run is over, write it and its latest tests to FILE as JUnit XML.",
)
SUMMARY = Setting(
    ["--summary"],
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=report_file,
    help="When the run is over, write a summary of it to FILE in Markdown; $GITHUB_STEP_SUMMARY is appended to.",
)
ANNOTATIONS = Setting(
    ["--annotations"],
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=report_file,
    help="When the run is over, write GitLab's report of links into the run's folder to FILE.",
)

REPORTS = [JUNIT, SUMMARY, ANNOTATIONS]
"""What a CI system is told in files."""
