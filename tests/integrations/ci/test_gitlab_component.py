"""The GitLab component: its script runs as a runner runs it, after GitLab has filled in the inputs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from junitparser import JUnitXml

from tests.support.continuous_integration import END, SECONDS, TOP, clean_environment, read_yaml
from tests.support.teams import TeamFolder, say

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


def test_job_leaves_what_it_says(tmp_path: Path) -> None:
    TeamFolder(tmp_path, {"planner": END}, {"planner": [say(status="DONE")]})
    goal = "\"; touch owned; $(touch owned) `touch owned` $HOME: it's\nEND\n"
    arguments = "--no-run-tests\n--workspace\nworkspace"
    name, job = job_of(goal=goal, playbook="playbook.yaml", cycles="2", args=arguments)
    variables = {key: each["value"] for key, each in job["variables"].items()}
    assert all(each["expand"] is False for each in job["variables"].values())
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(job["script"])],
        cwd=tmp_path,
        env={
            **clean_environment(),
            **variables,
            "GITLAB_CI": "true",
            "CI_JOB_URL": JOB,
            "CI_PROJECT_DIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (name, done.returncode) == ("codex-multi-role", 0), done.stderr
    assert not list(tmp_path.rglob("owned"))
    options = json.loads((tmp_path / "runs/latest/run.json").read_text())["options"]
    assert (options["goal"].strip(), options["cycles"], options["run_tests"]) == (goal.strip(), 2, False)
    reports = job["artifacts"]["reports"]
    assert JUnitXml.fromfile(str(tmp_path / reports["junit"])).failures == 0
    links = json.loads((tmp_path / reports["annotations"]).read_text())["codex-multi-role"]
    assert links[0]["external_link"]["url"].startswith(f"{JOB}/artifacts/browse/runs/")
    assert job["artifacts"]["paths"] == ["runs/"]


def test_no_input_is_a_part_of_the_script() -> None:
    _, jobs = read_yaml(TOP / "templates/codex-multi-role.yml")
    [job] = jobs.values()
    assert not INPUT.search("\n".join(job["script"]))
