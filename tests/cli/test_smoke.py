"""The main job from the command line, on the real Codex binary: no model is asked, a playbook answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.console import console, console_process, on_terminal

PLAYBOOK = ["--playbook", "roman-numerals"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


def test_machines_read_the_events_people_read_the_rest(project: Path) -> None:
    done = console_process(*PLAYBOOK, "--json", "--run-id", "first", folder=project)
    assert (done.returncode, done.stderr) == (0, "")
    recorded = (project / "runs" / "first" / "events.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in done.stdout.splitlines()] == [json.loads(line) for line in recorded]
    shown = console("show", "latest", folder=project).stdout
    assert "status     succeeded: Done" in shown
    assert "tests 001  failed" in shown
    assert "tests 002  passed" in shown
    assert "first" in console("runs", folder=project).stdout


def test_terminal_shows_a_table_and_a_summary(tmp_path: Path) -> None:
    drawn, output, code = on_terminal([sys.executable, "-m", "codex_multi_role", *PLAYBOOK], folder=tmp_path)
    assert (code, output) == (0, "")
    end = drawn.rsplit("cycle 2 of 3", 1)[1]
    assert "integrator" in end
    assert "tests 002: " in end
    assert "Done: integrator said DONE" in end
    assert "exit     0: goal reached" in end
