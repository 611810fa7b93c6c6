"""The options of `run`, and which of them `resume` and `fork` change; what a dry run prints; a fork from the shell."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from codex_multi_role.cli.options import CHANGEABLE, FORKABLE
from codex_multi_role.cli.resume import changes_of, fork, resume
from codex_multi_role.cli.run import run, run_options
from codex_multi_role.errors import UsageError
from codex_multi_role.option_keywords import ForkKeywords
from codex_multi_role.run_options import OPTIONS, RunOptions
from tests.support.catalogs import write_team
from tests.support.console import console
from tests.support.teams import TeamFolder, say

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


def test_goal_comes_from_a_file_or_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("goal.md").write_text("\ufeffMake it: ümlaut\n\n", encoding="utf-8")
    assert options_of("--goal-file", "goal.md").goal == "Make it: ümlaut"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe\n")))
    assert options_of("--goal-file", "-").goal == "from a pipe"


@pytest.mark.parametrize(
    ("content", "more", "problem"),
    [
        (b" \n", (), "--goal-file: goal.md:? is empty"),
        (b"\xff\xfe", (), "--goal-file: goal.md:? not UTF-8 text"),
        (b"x", ("--goal", "x"), "given twice: --goal and --goal-file"),
        (b"x", ("-i", "a=1", "-i", "a=2"), "--input a is given twice"),
    ],
)
def test_no_goal_two_goals_and_two_inputs_are_refused(content: bytes, more: tuple[str, ...], problem: str) -> None:
    Path("goal.md").write_bytes(content)
    with pytest.raises(UsageError, match=problem):
        options_of("--goal-file", "goal.md", *more)


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
    """Without one, the goal is left to the user and the flow."""
    Path("mine.yaml").write_text(PLAYBOOK)
    suggested = options_of("--playbook", "mine.yaml")
    assert (suggested.goal, suggested.cycles) == ("from the playbook", 5)
    given = options_of("--playbook", "mine.yaml", "--goal", "mine", "--cycles", "3")
    assert (given.goal, given.cycles) == ("mine", 3)
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


REMEMBERED = {"cycles": 3, "inputs": {"a": "1", "b": "2"}, "config": ["model=x", "other=y"]}
FORKED = {"flow": "own", "cycles": 3, "inputs": {"a": "1"}, "config": ["model=x"]}


def changes(*arguments: str) -> ForkKeywords:
    with resume.make_context("resume", ["latest", *arguments]) as context:
        return changes_of(context, REMEMBERED)


def changes_of_fork(*arguments: str) -> ForkKeywords:
    with fork.make_context("fork", ["latest", "--from", "plan", *arguments]) as context:
        return changes_of(context, FORKED, FORKABLE)


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
