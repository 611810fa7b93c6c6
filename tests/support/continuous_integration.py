"""Runs that are over as CI shows them, and a composite action's steps as GitHub runs them."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from codex_multi_role.extensions.ci.ended_run import EndedRun
from codex_multi_role.presentation.course import Course
from codex_multi_role.run_folder import RunFolder, read_events
from codex_multi_role.run_options import RunReport
from tests.support.console import completed
from tests.support.recorded_runs import make_run
from tests.support.teams import say

RUN_ID = "20260131_101500_0a1b2c3d"
TOTALS = {"turns": 5, "repairs": 1, "input_tokens": 6000, "output_tokens": 170, "seconds": 12.5}
PYTEST_REPORT = """<testsuites><testsuite name="pytest">
<testcase classname="tests.test_a" name="test_good" time="0.1" />
<testcase classname="tests.test_a" name="test_bad" time="0.2"><failure message="assert 1 == 2">def test_bad():
&gt;   assert 1 == 2
tests/test_a.py:7: AssertionError</failure></testcase>
<testcase classname="tests.test_a" name="test_later" time="0"><skipped message="not now" /></testcase>
<testcase classname="" name="tests.test_b" time="0"><error message="collection failure">boom</error></testcase>
</testsuite></testsuites>"""
END = {"output_schema": {"type": "object", "required": ["status"]}, "behaviors": {"can_finish": True}}
WRITES_AND_ENDS = {**END, "behaviors": {"can_finish": True, "apply_files": True}}
WRITTEN = say(status="DONE", files=[{"path": "a.txt", "content": "a"}])
TOP = Path(__file__).parents[2]
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
GIVEN = re.compile(r"inputs\.([\w-]+) != ''")
SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]
SECONDS = 120


def make_ended(folder: Path, exit_code: int = 1, reason: str = "all 3 cycles are used up", **changes: Any) -> EndedRun:
    """A recorded run that ended so; its workspace is ``folder/workspace``."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    run = make_run(folder / "runs", RUN_ID, workspace=str(workspace), exit_code=exit_code)
    outcome = {0: "done", 1: "cycles_used_up", 4: "waiting_for_review", 5: "budget_used_up"}.get(
        exit_code, "role_failed"
    )
    values = {"status": "ended", "outcome": outcome, "reason": reason, "hint": "", **changes}
    report = RunReport(run.run_id, run.path, exit_code=exit_code, totals=TOTALS, **values)
    return EndedRun.of(report, Course.of(read_events(run.events_path)))


def leave_tests(run: RunFolder | None, report: str, **result: Any) -> None:
    """The run's latest tests leave this JUnit report, or none where it is empty."""
    assert run is not None
    folder = run.new_tests_folder()
    (folder / "result.json").write_text(json.dumps({"status": "failed", "passed": 1, "failed": 1, **result}))
    if report:
        (folder / "junit.xml").write_text(report)


def read_yaml(path: Path) -> list[Any]:
    """The documents of a file."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def clean_environment() -> dict[str, str]:
    """Of a job: without what steers this process's own runs, and with the command on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CODEX_", "OPENAI_", "GITHUB_"))}
    return {**kept, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


@dataclass
class Workflow:
    """``job`` is the job's folder. ``inputs`` are what a workflow gives ``with:`` the action."""

    job: Path
    inputs: dict[str, str]
    values: dict[str, str] = field(default_factory=dict)
    log: str = ""
    summary: str = ""
    exit_code: int = 0

    @property
    def checkout(self) -> Path:
        return self.job / "checkout"

    def run(self, *, with_doctor: bool = False) -> dict[str, str]:
        """Run the action's steps until one fails; returns its outputs. The result of `doctor` changes no other step."""
        [action] = read_yaml(TOP / "action.yml")
        temporary = self.job / "temporary"
        for folder in (self.checkout, temporary):
            folder.mkdir(parents=True, exist_ok=True)
        self.values = {f"inputs.{name}": each.get("default", "") for name, each in action["inputs"].items()}
        self.values |= {f"inputs.{name}": text for name, text in self.inputs.items()}
        self.values["runner.temp"] = str(temporary)
        for step in action["runs"]["steps"]:
            if self.exit_code == 0 and (with_doctor or step["id"] != "doctor") and self._wanted(step.get("if", "")):
                self._take(step, temporary)
        return {name: self._fill(each["value"]) for name, each in action["outputs"].items()}

    def take(self, name: str) -> None:
        """Run this step once more, with the outputs of the others."""
        [action] = read_yaml(TOP / "action.yml")
        [step] = [step for step in action["runs"]["steps"] if step["id"] == name]
        self._take(step, self.job / "temporary")

    def _wanted(self, condition: str) -> bool:
        if not condition:
            return True
        given = GIVEN.fullmatch(condition)
        assert given, f"this test knows no condition such as {condition}"
        return bool(self.values[f"inputs.{given[1]}"])

    def _fill(self, text: str) -> str:
        return EXPRESSION.sub(lambda found: self.values.get(found[1], ""), text)

    def _take(self, step: dict[str, Any], temporary: Path) -> None:
        assert step["shell"] == "bash"
        script, output, summary = (temporary / f"{step['id']}.{kind}" for kind in ("sh", "output", "md"))
        script.write_text(step["run"])
        for path in (output, summary):
            path.write_text("")
        environment = {
            **clean_environment(),
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(TOP),
            "GITHUB_WORKSPACE": str(self.checkout),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_RUN_ID": "4711",
            "GITHUB_RUN_ATTEMPT": "1",
            "RUNNER_TEMP": str(temporary),
            **{name: self._fill(str(value)) for name, value in step.get("env", {}).items()},
        }
        done = completed([*SHELL, str(script)], self.checkout, environment, seconds=SECONDS)
        self.exit_code = done.returncode
        self.log += done.stdout + done.stderr
        self.summary += summary.read_text()
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{name}"] = value
