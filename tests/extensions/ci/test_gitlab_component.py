"""The GitLab component: its script runs as a runner runs it, after GitLab has filled in the inputs."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml

from tests.support.console import Completed, completed
from tests.support.continuous_integration import (
    END,
    SECONDS,
    TOP,
    WRITES_AND_ENDS,
    WRITTEN,
    clean_environment,
    read_yaml,
)
from tests.support.git_hosts import add_remote, scripted_host, show
from tests.support.teams import TeamFolder, say
from tests.support.workspaces import commit_all

INPUT = re.compile(r"\$\[\[ inputs\.([\w-]+) \]\]")
JOB = "https://gitlab.example.com/team/shop/-/jobs/17"


def filled(node: Any, inputs: dict[str, str]) -> Any:
    """As GitLab fills in inputs: in the parsed YAML, so that no value changes its structure."""
    if isinstance(node, dict):
        return {filled(key, inputs): filled(value, inputs) for key, value in node.items()}
    if isinstance(node, list):
        return [filled(value, inputs) for value in node]
    return INPUT.sub(lambda found: inputs[found[1]], node) if isinstance(node, str) else node


def job_of(**given: str) -> tuple[str, dict[str, Any]]:
    spec, jobs = read_yaml(TOP / "templates/codex-multi-role.yml")
    inputs = {name: each["default"] for name, each in spec["spec"]["inputs"].items()}
    [(name, job)] = filled(jobs, {**inputs, **given}).items()
    return name, job


def execute(job: dict[str, Any], folder: Path, variables: dict[str, str]) -> Completed:
    return completed(["sh", "-e", "-c", "\n".join(job["script"])], folder, variables, seconds=SECONDS)


@pytest.mark.real
def test_job_leaves_what_it_says(tmp_path: Path) -> None:
    TeamFolder(tmp_path, {"planner": END}, {"planner": [say(status="DONE")]})
    goal = "\"; touch owned; $(touch owned) `touch owned` $HOME: it's\nEND\n"
    arguments = "--no-run-tests\n--workspace\nworkspace"
    name, job = job_of(goal=goal, playbook="playbook.yaml", cycles="2", args=arguments, **{"merge-request": "create"})
    variables = {key: each["value"] for key, each in job["variables"].items()}
    assert all(each["expand"] is False for each in job["variables"].values())
    of_job = {"GITLAB_CI": "true", "CI_JOB_URL": JOB, "CI_PROJECT_DIR": str(tmp_path)}
    done = execute(job, tmp_path, {**clean_environment(), **variables, **of_job})
    assert (name, done.returncode) == ("codex-multi-role", 0), done.stderr
    assert done.stdout.endswith("no merge request: no files changed\n")
    assert not list(tmp_path.rglob("owned"))
    options = json.loads((tmp_path / "runs/latest/run.json").read_text())["options"]
    assert (options["goal"].strip(), options["cycles"], options["run_tests"]) == (goal.strip(), 2, False)
    reports = job["artifacts"]["reports"]
    assert JUnitXml.fromfile(str(tmp_path / reports["junit"])).failures == 0
    links = json.loads((tmp_path / reports["annotations"]).read_text())["codex-multi-role"]
    assert links[0]["external_link"]["url"].startswith(f"{JOB}/artifacts/browse/runs/")
    assert job["artifacts"]["paths"] == ["runs/"]


@pytest.mark.long
def test_result_becomes_a_merge_request(tmp_path: Path) -> None:
    """Only here the script speaks to glab: into the branch of the pipeline, which a job's checkout does not have."""
    host = scripted_host(tmp_path / "host", "glab")
    team = TeamFolder(tmp_path / "checkout", {"planner": WRITES_AND_ENDS}, {"planner": [WRITTEN]})
    commit_all(team.folder)
    add_remote(team.folder, tmp_path / "remote.git")
    for arguments in (["push", "-q", "origin", "HEAD:develop"], ["checkout", "-q", "--detach"]):
        subprocess.run(["git", *arguments], cwd=team.folder, check=True)
    arguments_of_run = "--no-run-tests\n--workspace\nworkspace"
    _, job = job_of(goal="reach it", playbook="playbook.yaml", args=arguments_of_run, **{"merge-request": "draft"})
    variables = {key: each["value"] for key, each in job["variables"].items()} | {"CI_COMMIT_BRANCH": "develop"}
    environment = clean_environment()
    path = os.pathsep.join([host.path, environment["PATH"]])
    done = execute(job, team.folder, {**environment, **variables, "PATH": path})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "https://git.example.com/team/shop/merge_requests/1"
    _, creating = host.calls("glab")
    branch = creating[creating.index("--source-branch") + 1]
    assert creating[creating.index("--target-branch") + 1] == "develop"
    assert "--draft" in creating
    assert show(tmp_path / "remote.git", f"{branch}:workspace/a.txt") == "a"


def test_no_input_is_a_part_of_the_script() -> None:
    _, jobs = read_yaml(TOP / "templates/codex-multi-role.yml")
    [job] = jobs.values()
    assert not INPUT.search("\n".join(job["script"]))
