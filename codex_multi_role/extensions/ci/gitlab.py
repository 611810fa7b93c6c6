"""GitLab CI: links from the job's page to the run's files, in the format of ``artifacts:reports:annotations``.

https://docs.gitlab.com/ci/yaml/artifacts_reports/#artifactsreportsannotations: sections of external links. GitLab has
no annotations on lines of a log; failing tests get to a merge request through ``artifacts:reports:junit``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from codex_multi_role.extensions.ci.ended_run import EndedRun
from codex_multi_role.run_folder.folder import PROGRAM

LINKED = ("report.html", "answer.md", "run.json")


def link_annotations(run: EndedRun, environment: Mapping[str, str] = os.environ) -> dict[str, list[dict[str, Any]]]:
    """Build the report: links to the run's folder in the job's artifacts; empty outside a job or without the folder."""
    job, top = environment.get("CI_JOB_URL"), environment.get("CI_PROJECT_DIR")
    if not (job and top and run.folder):
        return {}
    links = [{"external_link": link} for link in _links(run, job, run.folder.path, Path(top))]
    return {PROGRAM: links} if links else {}


def _links(run: EndedRun, job: str, folder: Path, top: Path) -> Iterator[dict[str, str]]:
    try:
        inside = folder.resolve().relative_to(top.resolve())
    except ValueError:  # not below the project: not an artifact of the job
        return
    where = f"{job}/artifacts"
    yield {"label": run.line(f"run {run.name}: {run.outcome}"), "url": f"{where}/browse/{quote(str(inside))}/"}
    for name in LINKED:
        if (folder / name).is_file():
            yield {"label": name, "url": f"{where}/file/{quote(str(inside / name))}"}
