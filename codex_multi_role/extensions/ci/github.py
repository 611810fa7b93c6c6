"""Annotations of a run in the log of a GitHub workflow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codex_multi_role.extensions.ci.ended_run import Case, EndedRun
from codex_multi_role.host.workflow_log import command
from codex_multi_role.run_folder.folder import PROGRAM

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
TOP_VARIABLE = "GITHUB_WORKSPACE"
MOST_OF_A_KIND = 10
"""Maximum number of errors, and of warnings, that GitHub shows per step."""


def run_annotations(run: EndedRun, top: Path | None) -> Iterator[str]:
    """Yield workflow commands, one per line: the run's failure, its failing tests, its warnings.

    ``top`` is the checkout; places outside it are left out, because GitHub could not show them.
    """
    if run.exit_code != 0:
        text = "\n".join([f"{run.headline} ({run.meaning})", *run.next_steps()])
        yield command("error", text, title=f"{PROGRAM}: {run.outcome}")
        for case in run.tests.red[: MOST_OF_A_KIND - 1] if run.tests else []:
            yield _failing_test(run, case, top)
    for warning in list(dict.fromkeys(run.progress.warnings))[:MOST_OF_A_KIND]:
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
