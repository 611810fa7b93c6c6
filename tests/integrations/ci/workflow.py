"""A composite action's steps, run as GitHub runs them: scripts in files, inputs in variables, outputs in files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

TOP = Path(__file__).parents[3]
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
GIVEN = re.compile(r"inputs\.([\w-]+) != ''")
SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]
SECONDS = 120


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

    def run(self) -> dict[str, str]:
        """Run the action's steps until one fails; returns its outputs."""
        [action] = read_yaml(TOP / "action.yml")
        temporary = self.job / "temporary"
        for folder in (self.checkout, temporary):
            folder.mkdir(parents=True, exist_ok=True)
        self.values = {f"inputs.{name}": each.get("default", "") for name, each in action["inputs"].items()}
        self.values |= {f"inputs.{name}": text for name, text in self.inputs.items()}
        self.values["runner.temp"] = str(temporary)
        for step in action["runs"]["steps"]:
            if self.exit_code == 0 and self._wanted(step.get("if", "")):
                self._take(step, temporary)
        return {name: self._fill(each["value"]) for name, each in action["outputs"].items()}

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
        done = subprocess.run(
            [*SHELL, str(script)],
            cwd=self.checkout,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        self.exit_code = done.returncode
        self.log += done.stdout + done.stderr
        self.summary += summary.read_text()
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{name}"] = value
