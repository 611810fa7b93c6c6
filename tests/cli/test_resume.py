"""Which options ``resume`` and ``fork`` change, and a fork from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role.cli.options import CHANGEABLE, FORKABLE
from codex_multi_role.cli.resume import changes_for, changes_of, fork, resume
from codex_multi_role.option_keywords import ForkKeywords
from codex_multi_role.run_options import OPTIONS
from tests.support.console import console
from tests.support.teams import TeamFolder, say

REMEMBERED = {"cycles": 3, "inputs": {"a": "1", "b": "2"}, "config": ["model=x", "other=y"]}
FORKED = {"flow": "own", "cycles": 3, "inputs": {"a": "1"}, "config": ["model=x"]}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def changes(*arguments: str) -> ForkKeywords:
    with resume.make_context("resume", ["latest", *arguments]) as context:
        return changes_of(context, REMEMBERED)


def changes_of_fork(*arguments: str) -> ForkKeywords:
    with fork.make_context("fork", ["latest", "--from", "plan", *arguments]) as context:
        return changes_for(context, FORKED)


def test_what_is_given_changes_even_to_the_default() -> None:
    assert changes() == {}
    assert changes("--cycles", "3", "--no-run-tests") == {"cycles": 3, "run_tests": False}
    assert changes_of_fork() == {}
    Path("goal.md").write_text("from a file\n")
    given = changes_of_fork("--goal-file", "goal.md", "--run-id", "second", "--workspace", "w", "--cycles", "3")
    assert given == {"goal": "from a file", "run_id": "second", "workspace": Path("w"), "cycles": 3}


def test_environment_changes_a_run_the_settings_file_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("codex-multi-role.yaml").write_text("cycles: 9\nmodel: z\ngoal: z\nworkspace: here\n")
    monkeypatch.setenv("CODEX_MULTI_ROLE_MODEL", "m")
    assert changes() == changes_of_fork() == {"model": "m"}
    monkeypatch.setenv("CODEX_MULTI_ROLE_GOAL", "from the environment")
    assert changes_of_fork() == {"model": "m", "goal": "from the environment"}


def test_what_may_be_repeated_adds_to_what_the_run_has() -> None:
    """Inputs only to those of the same flow."""
    given = changes("-i", "b=3", "-c", "model=x", "-c", "third=z")
    assert given == {"inputs": {"a": "1", "b": "3"}, "config": ("other=y", "model=x", "third=z")}
    both = {"a": "1", "b": "2"}
    assert changes_of_fork("-i", "b=2", "-c", "other=y") == {"inputs": both, "config": ("model=x", "other=y")}
    assert changes_of_fork("--flow", "another", "-i", "b=2") == {"flow": "another", "inputs": {"b": "2"}}
    assert changes_of_fork("--flow", "own", "-i", "b=2")["inputs"] == both


def test_changes_are_run_options() -> None:
    assert {setting.key for setting in CHANGEABLE} - {"input"} < OPTIONS.keys()
    assert {setting.key for setting in FORKABLE} - {"input", "goal_file"} < OPTIONS.keys()


@pytest.mark.usefixtures("scripted_codex")
def test_fork_from_the_shell(tmp_path: Path) -> None:
    plays = {name: [say(f"{name} {cycle}") for cycle in (1, 2)] for name in ("one", "two")}
    TeamFolder(tmp_path, {"one": {"behaviors": {"apply_files": True}}, "two": {}}, plays)
    first = ["--goal", "reach it", "--playbook", "playbook.yaml", "--workspace", "workspace", "--no-run-tests"]
    assert console("run", *first, "--cycles", "2", "--run-id", "first", folder=tmp_path).returncode == 1
    unsaid = console("fork", "first", folder=tmp_path)
    assert (unsaid.returncode, unsaid.stderr) == (
        2,
        "error: missing --from STEP[:VISIT]\nhint: Steps of this run: team:1, team:2.\n",
    )
    done = console("fork", "fir", "--from", "team", "--goal", "another", "--run-id", "second", folder=tmp_path)
    assert done.returncode == 1
    assert "changed: goal=another, run_id=second" in done.stderr
    assert "forked from first before team:2; the workspace" in done.stderr
    assert (tmp_path / "workspace.fork-second").is_dir()
    shown = console("show", "latest", folder=tmp_path).stdout.splitlines()
    assert "fork       of first, before team:2" in shown
    turns = [line.split("turn ")[1].split(", ")[:2] for line in shown if "turn " in line]
    assert [(number, said == "inherited") for number, said in turns] == [
        ("1", True), ("1", True), ("2", False), ("2", False),
    ]  # fmt: skip
    events = console("fork", "first", "--from", "team", "--json", folder=tmp_path).stdout.splitlines()
    assert [json.loads(line)["type"] for line in events][:2] == ["run_started", "run_forked"]
