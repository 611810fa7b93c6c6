"""Reports to a CI system at the end of a run: the requested files, and annotations in its log."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from codex_multi_role.cli.output import annotate, say
from codex_multi_role.errors import CodexMultiRoleError, StorageError
from codex_multi_role.extensions.ci.ended_run import Case, EndedRun
from codex_multi_role.extensions.ci.job_summary import job_summary
from codex_multi_role.extensions.ci.junit import junit_report
from codex_multi_role.host.atomic import storage_errors, write_bytes, write_json, write_text
from codex_multi_role.host.workflow_log import command, runs_here
from codex_multi_role.presentation.course import Course
from codex_multi_role.run_folder.folder import PROGRAM
from codex_multi_role.run_options import RunReport

Files = Mapping[str, Path]
"""The requested files by the report that goes to each."""


def report_end(files: Files, report: RunReport, course: Course) -> None:
    """Write the reports, and annotate the log of a workflow. Raises an error if the run can no longer be read."""
    run = EndedRun.of(report, course)
    _write_reports(files, run)
    if runs_here():
        top = os.environ.get(TOP_VARIABLE)
        for line in run_annotations(run, Path(top) if top else None):
            annotate(line)


def report_failure(files: Files, error: CodexMultiRoleError) -> None:
    """Write the reports, as failed, for an ``error`` before the run."""
    _write_reports(files, EndedRun.without_run(error))


def _write_reports(files: Files, run: EndedRun) -> None:
    prefix = "the run has ended and " if run.folder else ""
    for report, path in files.items():
        try:
            _write(report, _still_there(path), run)
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
                _append(path, f"{text}\n")
            else:
                write_text(path, text)
        case "annotations":
            write_json(path, link_annotations(run))


def _append(path: Path, text: str) -> None:
    """Append ``text`` to a file that others own, without following a link. Raises `StorageError`."""
    with storage_errors(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)


def _still_there(path: Path) -> Path:
    """Return ``path``, whose folder was resolved before. Raises `StorageError` if a link now leads elsewhere."""
    if path.parent.resolve() != path.parent:
        raise StorageError(f"{path.parent} points to another place since the run started")
    return path


def _is_step_summary(path: Path) -> bool:
    """Whether it is GitHub's summary file of this step, which earlier commands of the step may have written to."""
    given = os.environ.get(SUMMARY_VARIABLE)
    return bool(given) and Path(str(given)).resolve() == path.resolve()


SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
TOP_VARIABLE = "GITHUB_WORKSPACE"
MOST_OF_A_KIND = 10
"""Maximum number of errors, and of warnings, that GitHub shows per step."""


def run_annotations(run: EndedRun, top: Path | None) -> Iterator[str]:
    """Yield GitHub's workflow commands, one per line: the run's failure, its failing tests, its warnings.

    ``top`` is the checkout; places outside it are left out, because GitHub could not show them.
    """
    if run.exit_code != 0:
        text = "\n".join([f"{run.headline} ({run.meaning})", *run.next_steps()])
        yield command("error", text, title=f"{PROGRAM}: {run.outcome}")
        for case in run.tests.red[: MOST_OF_A_KIND - 1] if run.tests else []:
            yield _failing_test(run, case, top)
    for warning in list(dict.fromkeys(run.course.warnings))[:MOST_OF_A_KIND]:
        yield command("warning", run.line(warning, 500), title=PROGRAM)


def _failing_test(run: EndedRun, case: Case, top: Path | None) -> str:
    text = run.line(case.message, 500) or "failed"
    return command("error", text, **_place(run, case, top), title=f"test {run.line(case.full_name)}")


def _place(run: EndedRun, case: Case, top: Path | None) -> dict[str, str]:
    if not (case.file and top and run.folder):
        return {}
    path = Path(str(run.folder.record().get("workspace", ""))) / case.file
    try:
        place = {"file": str(path.resolve().relative_to(top.resolve()))}
    except (OSError, ValueError):  # not below the checkout
        return {}
    return {**place, "line": str(case.line)} if case.line else place


LINKED = ("report.html", "answer.md", "run.json")


def link_annotations(run: EndedRun, environment: Mapping[str, str] = os.environ) -> dict[str, list[dict[str, Any]]]:
    """Link the run's folder in the artifacts of a GitLab job; empty outside a job or without the folder.

    https://docs.gitlab.com/ci/yaml/artifacts_reports/#artifactsreportsannotations: GitLab has no annotations on lines
    of a log; failing tests get to a merge request through ``artifacts:reports:junit``.
    """
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
