"""The settings for reports to a CI system."""

from __future__ import annotations

from pathlib import Path

import click

from codex_multi_role.cli.settings import Setting
from codex_multi_role.cli.values import report_file


def _report(flag: str, told: str) -> Setting:
    path = click.Path(path_type=Path)
    return Setting([flag], metavar="FILE", type=path, callback=report_file, help=f"When the run is over, write {told}.")


JUNIT = _report("--junit", "it and its latest tests to FILE as JUnit XML")
SUMMARY = _report("--summary", "a summary of it to FILE in Markdown; $GITHUB_STEP_SUMMARY is appended to")
ANNOTATIONS = _report("--annotations", "GitLab's report of links into the run's folder to FILE")
REPORTS = [JUNIT, SUMMARY, ANNOTATIONS]
"""The report files for a CI system."""
