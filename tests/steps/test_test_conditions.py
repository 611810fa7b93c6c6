"""The same tree is tested once: a result is taken over only if nothing that it depends on has changed."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_multi_role import fork
from tests.support.long_run import by_default
from tests.support.teams import Record, TeamFolder, read, say, with_flow

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

BOTH: Record = {"behaviors": {"apply_files": True, "can_finish": True}}
READS = """\
from pathlib import Path


def test_one():
    from code_of import one

    assert one() == 1


def test_fixture():
    assert Path("ignored.txt").read_text() == "as it was"
"""
RIGHT = {"path": "code_of.py", "content": "def one():\n    return 1 + 0\n"}


def project(folder: Path, *turns: Record) -> TeamFolder:
    """One role in a project with a Python of its own and an ignored file that a test reads."""
    team = TeamFolder(folder, {"one": BOTH}, {"one": [*turns]})
    files = {"code_of.py": "def one():\n    return 1\n", "test_one.py": READS, "ignored.txt": "as it was"}
    for name, text in {**files, ".gitignore": "ignored.txt\n.venv\n"}.items():
        (team.workspace / name).write_text(text)
    packages = environment_in(team.workspace)
    (packages / "library-1.0.dist-info").mkdir()
    return team


def environment_in(workspace: Path) -> Path:
    """An environment with what this Python has; returns the folder of its packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", workspace / ".venv"], check=True)
    (packages,) = (workspace / ".venv").glob("lib/python*/site-packages")
    (packages / "inherited.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    return packages


def taken_over(team: TeamFolder) -> list[str]:
    """Of each run of the tests in the last run or resume, in order, where its result is from; empty if it ran."""
    return [each["same_as"] for each in team.events if each["type"] in ("baseline_measured", "tests_ended")]


def install_another_version(workspace: Path) -> None:
    (packages,) = (workspace / ".venv").glob("lib/python*/site-packages")
    (packages / "library-1.0.dist-info").rename(packages / "library-2.0.dist-info")


EDITS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "another version is installed": install_another_version,
    "an ignored file has changed": lambda workspace: (workspace / "ignored.txt").write_text("other"),
    "a file has changed": lambda workspace: (workspace / "code_of.py").write_text("def one():\n    return 2\n"),
}


@pytest.mark.parametrize("name", by_default([*EDITS][:3], EDITS))
def test_second_run_takes_the_result_of_the_first_over(tmp_path: Path, name: str) -> None:
    team = project(tmp_path, say(status="DONE", files=[RIGHT]))
    assert team.run(run_tests=True, run_id="first").exit_code == 0
    assert taken_over(team) == ["", ""]
    EDITS[name](team.workspace)
    team.run(run_tests=True, run_id="second")
    assert taken_over(team)[0] == ("first/tests/001" if name == "nothing" else "")
    baseline = read(team.runs / "second/baseline/result.json")
    assert baseline["failed"] == (1 if "file has" in name else 0)


@pytest.mark.parametrize("changed", [{"test_sandbox": False}, {"pytest_cmd": "pytest -q"}])
def test_result_of_another_sandbox_or_command_is_not_used(tmp_path: Path, changed: Record) -> None:
    team = project(tmp_path, say(status="DONE"))
    team.run(run_tests=True, run_id="first")
    team.run(run_tests=True, run_id="second", **changed)
    team.run(run_tests=True, run_id="third", **changed)
    assert taken_over(team) == ([""] if "test_sandbox" in changed else ["second/baseline"])


def test_variable_of_the_user_is_a_condition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = project(tmp_path, say(status="DONE"))
    team.run(run_tests=True)
    monkeypatch.setenv("OF_THE_TESTS", "1")
    team.run(run_tests=True)
    assert taken_over(team) == [""]


def test_check_that_is_tried_again_always_runs(tmp_path: Path) -> None:
    team = project(tmp_path, say())
    (team.workspace / "ignored.txt").write_text("wrong")
    test: Record = {"check": "tests", "retry": {"attempts": 2, "backoff_seconds": 0}, "on_bad": "continue"}
    again: Record = {
        "id": "again",
        "check": "tests",
        "next": [{"when": "steps.again.failed + steps.first.failed > 0", "end": "seen"}],
    }
    with_flow(team, {"steps": [{"ask": "one"}, {"id": "first", **test}, again]})
    team.run(flow="own", run_tests=True, baseline=False)
    assert taken_over(team) == ["", "", "tests/002"]


def test_fork_tests_the_state_before_in_its_own_folder(tmp_path: Path) -> None:
    """Its folder lacks what git ignores; the first turn was one of the run that it was forked from."""
    wrong = {"path": "code_of.py", "content": "def one():\n    return 2\n"}
    team = project(tmp_path, say(files=[RIGHT]), say(status="DONE", files=[wrong]))
    team.run(run_tests=True, cycles=2, run_id="first")
    team.events.clear()
    report = fork(
        "first", runs_dir=team.runs, start="team:2", changes={"run_id": "second"}, on_event=team.events.append
    )
    (baseline,) = team.of_type("baseline_measured")
    assert (baseline["passed"], baseline["failed"], baseline["same_as"]) == (1, 1, "")
    judged = read(team.runs / "second/tests/002/result.json")
    assert judged["new_failures_tests"] == ["test_one.py::test_one"]
    assert judged["still_failing_tests"] == ["test_one.py::test_fixture"]
    workspace = Path(read(team.runs / "second/run.json")["workspace"])
    assert (report.exit_code, (workspace / "code_of.py").read_text()) == (1, wrong["content"])


def test_copies_have_a_baseline_of_their_own(tmp_path: Path) -> None:
    """A copy lacks what git ignores, so that a test there has failed before as well."""
    team = project(tmp_path, say(files=[RIGHT]), say(files=[RIGHT]))
    step: Record = {"ask": "one", "isolate": "worktree", "merge": "none", "for_each": ["a", "b"], "concurrency": 2}
    with_flow(team, {"steps": [step]})
    team.run(flow="own", run_tests=True)
    first, in_copy = team.of_type("baseline_measured")
    assert (first["failed"], in_copy["failed"], in_copy["in_copy"]) == (0, 1, True)
    assert [each["new_failures"] for each in team.of_type("tests_ended")] == [0, 0, 0]
    assert taken_over(team)[-1] == "baseline"  # of the workspace, which has not changed
    assert not [*(team.runs / "latest/worktrees").glob("baseline*/*")]
