"""The command ``run``: how its settings become options of the run, and what a dry run prints."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from codex_multi_role.cli.run import parse_inputs, run, run_options
from codex_multi_role.errors import UsageError
from codex_multi_role.run_options import RunOptions
from tests.support.catalogs import write_team
from tests.support.console import console

FLOW = """
steps:
  - ask: thinker
  - {id: measure, check: command, with: {argv: ["true", "{{ steps.thinker.word }}"]}}
  - {id: sure, review: {question: "Really {{ goal }}?", show: "{{ roles.thinker }}"}}
  - {ask: doer, for_each: [a, b], prompt: "Do {{ item }}."}
"""
DRY = ["run", "--roles", "team", "--flow", "once", "--goal", "go", "--dry-run"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def options_of(*arguments: str) -> RunOptions:
    with run.make_context("run", list(arguments)) as context:
        return run_options(context)


def test_settings_become_run_options() -> None:
    options = options_of(
        "--goal", "make it", "-i", "a=1", "-i", "b=x=y", "-c", "model_provider=local", "--no-run-tests"
    )
    assert options == RunOptions(
        goal="make it", inputs={"a": "1", "b": "x=y"}, config=("model_provider=local",), run_tests=False
    )


def test_input_that_comes_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="--input a is given twice"):
        parse_inputs(["a=1", "a=2"])


def test_goal_file_is_read_and_stripped() -> None:
    Path("goal.md").write_text("\ufeffMake it: ümlaut\n\n", encoding="utf-8")
    assert options_of("--goal-file", "goal.md").goal == "Make it: ümlaut"


def test_goal_comes_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe\n")))
    assert options_of("--goal-file", "-").goal == "from a pipe"


@pytest.mark.parametrize(("content", "problem"), [(b" \n", "is empty"), (b"\xff\xfe", "not UTF-8 text")])
def test_goal_file_without_a_goal_is_refused(content: bytes, problem: str) -> None:
    Path("goal.md").write_bytes(content)
    with pytest.raises(UsageError, match=f"--goal-file: goal.md:? {problem}"):
        options_of("--goal-file", "goal.md")


def test_two_goals_are_refused() -> None:
    Path("goal.md").write_text("x")
    with pytest.raises(UsageError, match="given twice: --goal and --goal-file"):
        options_of("--goal", "x", "--goal-file", "goal.md")


def test_more_binding_place_says_the_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("goal.md").write_text("from the goal file")
    Path("codex-multi-role.yaml").write_text("goal: from the settings")
    assert options_of().goal == "from the settings"
    assert options_of("--goal-file", "goal.md").goal == "from the goal file"
    monkeypatch.setenv("CODEX_MULTI_ROLE_GOAL_FILE", "goal.md")
    assert options_of().goal == "from the goal file"
    assert options_of("--goal", "from the flag").goal == "from the flag"


PLAYBOOK = "name: mine\ngoal: from the playbook\ncycles: 5\nroles: {}\n"


def test_playbook_suggests_goal_and_cycles() -> None:
    Path("mine.yaml").write_text(PLAYBOOK)
    suggested = options_of("--playbook", "mine.yaml")
    assert (suggested.goal, suggested.cycles) == ("from the playbook", 5)
    given = options_of("--playbook", "mine.yaml", "--goal", "mine", "--cycles", "3")
    assert (given.goal, given.cycles) == ("mine", 3)


def test_playbook_without_a_goal_sets_no_goal() -> None:
    """The goal is then left to the user and the flow."""
    Path("mine.yaml").write_text("name: mine\nroles: {}\n")
    assert options_of("--playbook", "mine.yaml").goal == ""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_team(tmp_path, once=FLOW)


def test_people_read_the_prompts_and_nothing_is_left_behind(project: Path) -> None:
    done = console(*DRY, folder=project)
    assert done.returncode == 0
    titles = [line for line in done.stdout.splitlines() if line.startswith("=== ")]
    assert titles == [
        "=== 1. thinker: ask thinker ===",
        "=== 2. measure: check command ===",
        "=== 3. sure: review ===",
        "=== 4. doer: ask doer, item 1 of 2 ===",
    ]
    assert "Role: thinker" in done.stdout
    assert '"<thinker.word>"' in done.stdout
    assert "Really go?\n\n<thinker>\n" in done.stdout
    assert "Do a." in done.stdout
    assert done.stderr == "2 prompts in the first pass; nothing was started, written or spent\n"
    assert [path.name for path in project.iterdir()] == ["team"]


def test_machines_read_one_record_a_line(project: Path) -> None:
    done = console(*DRY, "--json", folder=project)
    assert (done.returncode, done.stderr) == (0, "")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(record["type"], record["step"]) for record in records] == [
        ("ask", "thinker"),
        ("check", "measure"),
        ("review", "sure"),
        ("ask", "doer"),
    ]


def test_quiet_only_says_what_is_wrong(project: Path) -> None:
    done = console(*DRY, "--quiet", folder=project)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (project / "team" / "flows" / "once.yaml").write_text("steps:\n  - ask: thinkr\n")
    wrong = console(*DRY, "--quiet", folder=project)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert 'did you mean "thinker"?' in wrong.stderr
