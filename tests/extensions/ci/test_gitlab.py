"""GitLab's report of links leads into what the job keeps."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.ci.ended_run import EndedRun
from codex_multi_role.extensions.ci.reports import link_annotations
from tests.support.continuous_integration import RUN_ID, make_ended

JOB = "https://gitlab.example.com/team/shop/-/jobs/17"


def test_links_lead_to_the_runs_folder_among_the_artifacts(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    report = link_annotations(run, {"CI_JOB_URL": JOB, "CI_PROJECT_DIR": str(tmp_path)})
    assert report == {
        "codex-multi-role": [
            {
                "external_link": {
                    "label": f"run {RUN_ID}: All cycles are used up",
                    "url": f"{JOB}/artifacts/browse/runs/{RUN_ID}/",
                }
            },
            {"external_link": {"label": "run.json", "url": f"{JOB}/artifacts/file/runs/{RUN_ID}/run.json"}},
        ]
    }


def test_only_artifacts_are_linked(tmp_path: Path) -> None:
    """Nothing is linked outside a CI job, for a run folder outside the project, or without a run."""
    run = make_ended(tmp_path)
    elsewhere = {"CI_JOB_URL": JOB, "CI_PROJECT_DIR": str(tmp_path / "project")}
    for environment in ({}, elsewhere):
        assert link_annotations(run, environment) == {}
    none = EndedRun.without_run(UsageError("x"))
    assert link_annotations(none, elsewhere) == {}
