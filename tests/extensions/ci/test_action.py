"""The GitHub Action: its scripts run as GitHub runs them."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
import yaml
from junitparser import JUnitXml

from tests.support.continuous_integration import (
    END,
    EXPRESSION,
    TOP,
    WRITES_AND_ENDS,
    WRITTEN,
    Workflow,
    read_yaml,
)
from tests.support.git_hosts import add_remote, scripted_host, show
from tests.support.teams import TeamFolder, say
from tests.support.workflow_log import read_log
from tests.support.workspaces import commit_all, write_files

pytestmark = pytest.mark.real

YAML_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"steps\.team\.outputs\.([\w-]+)")
HOSTILE = '"; touch owned; $(touch owned) `touch owned` ${{ inputs.goal }}\n::error::owned'


def workflow(tmp_path: Path, **inputs: str) -> Workflow:
    """Of a checkout with a team of one, which is done at once."""
    TeamFolder(tmp_path / "checkout", {"planner": END}, {"planner": [say(status="DONE")]})
    return Workflow(
        tmp_path, {"python": sys.executable, "playbook": "playbook.yaml", "workspace": "workspace", **inputs}
    )


def test_run_in_a_workflow_becomes_a_pull_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several seconds: the scripts start what they start for a user. Without changed files, nothing is opened."""
    host = scripted_host(tmp_path / "host", "gh")
    monkeypatch.setenv("PATH", f"{host.path}{os.pathsep}{os.environ['PATH']}")
    options = {"args": "--no-run-tests\n\n--repair-attempts\n1", "pull-request": "draft"}
    job = workflow(tmp_path, goal=HOSTILE, cycles="2", **options)
    TeamFolder(job.checkout, {"planner": WRITES_AND_ENDS}, {"planner": [WRITTEN]})
    commit_all(job.checkout)
    add_remote(job.checkout, tmp_path / "remote.git")
    outputs = job.run(with_doctor=True)
    assert job.exit_code == 0, job.log
    assert read_log(job.log) == []
    assert re.search(r"^ok +sandbox ", job.log, re.MULTILINE), "the action runs doctor"
    assert "The run ends with exit code 2 if it needs what is missing." in job.log
    assert outputs["run-id"].startswith("github_4711_1_")
    assert outputs == {
        "run-id": outputs["run-id"],
        "folder": f"runs/{outputs['run-id']}",
        "outcome": "done",
        "exit-code": "0",
        "junit": f"runs/{outputs['run-id']}.xml",
        "pull-request": "https://git.example.com/team/shop/pull/1",
    }
    record = json.loads((job.checkout / outputs["folder"] / "run.json").read_text())
    options = record["options"]
    assert options["goal"] == HOSTILE
    assert (options["cycles"], options["repair_attempts"], options["run_tests"]) == (2, 1, False)
    assert not list(tmp_path.rglob("owned"))
    assert job.summary.startswith("## ✅ codex-multi-role: Done\n")
    report = JUnitXml.fromfile(str(job.checkout / outputs["junit"]))
    assert (report.tests, report.failures, report.errors) == (1, 0, 0)
    _, creating = host.calls("gh")
    branch = f"codex-multi-role/{outputs['run-id']}"
    assert creating[:6] == ["pr", "create", "--head", branch, "--base", "main"]
    assert "--draft" in creating
    assert show(tmp_path / "remote.git", f"{branch}:workspace/a.txt") == "a"
    (job.checkout / outputs["folder"] / "run.json").write_text(json.dumps({**record, "files": []}))
    job.take("pull-request")
    assert job.log.endswith("no pull request: no files changed\n")


def test_run_that_cannot_begin_fails_the_step_and_says_why(tmp_path: Path) -> None:
    """The outputs are not those of an earlier run of that ID, and no file of the checkout is imported."""
    job = workflow(tmp_path, goal="reach it", **{"run-id": "mine"})
    folder = job.checkout / "runs/mine"
    write_files(folder, {"run.json": '{"outcome": "done"}'})
    for name in ("codex_multi_role.py", "click.py", "json.py"):
        (job.checkout / name).write_text("open('owned', 'w')\n")
    outputs = job.run()
    assert not list(tmp_path.rglob("owned")), "what lies in the checkout was run for the action"
    assert job.exit_code == 2
    assert (outputs["exit-code"], outputs["outcome"], outputs["folder"]) == ("2", "", "")
    [(kind, _, text)] = read_log(job.log)
    assert kind == "error"
    assert "run mine already exists" in text
    assert job.summary.startswith("## ❌ codex-multi-role: No run\n")


def test_misspelt_mode_is_refused_before_the_run(tmp_path: Path) -> None:
    job = workflow(tmp_path, goal="x", **{"pull-request": "yes"})
    assert (job.run()["run-id"], job.exit_code) == ("", 2)
    assert read_log(job.log) == [("error", {}, "pull-request must be never, create or draft")]


def test_no_input_is_a_part_of_a_script() -> None:
    [action] = read_yaml(TOP / "action.yml")
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]
    used = {
        found for step in action["runs"]["steps"] for text in step["env"].values() for found in EXPRESSION.findall(text)
    }
    conditions = {step["if"].split()[0] for step in action["runs"]["steps"] if "if" in step}
    assert {f"inputs.{name}" for name in action["inputs"]} <= used | conditions


def test_documentation_uses_only_known_inputs_and_outputs() -> None:
    """The examples use only inputs and outputs that the action and the GitLab component declare."""
    [action] = read_yaml(TOP / "action.yml")
    spec, _ = read_yaml(TOP / "templates/codex-multi-role.yml")
    blocks = [yaml.safe_load(block) for block in YAML_BLOCK.findall((TOP / "docs/how-to/ci.md").read_text())]
    [job] = [job for block in blocks for job in block.get("jobs", {}).values()]
    [step] = [step for step in job["steps"] if "codex-multi-role" in step.get("uses", "")]
    assert set(step["with"]) <= set(action["inputs"])
    used = {name for each in job["steps"] for name in OUTPUT.findall(str(each))}
    assert used
    assert used <= set(action["outputs"])
    [include] = [each for block in blocks for each in block.get("include", [])]
    assert set(include["inputs"]) <= set(spec["spec"]["inputs"])


@pytest.mark.long
def test_action_installs_itself(tmp_path: Path) -> None:
    """Only here the action makes its own environment, and installs the package from the checkout."""
    job = workflow(tmp_path, flow="nowhere", python=sys.base_prefix + "/bin/python3")
    job.run()
    assert job.values["steps.install.outputs.python"] == str(tmp_path / "temporary/codex-multi-role/bin/python")
    assert job.exit_code == 2, job.log
