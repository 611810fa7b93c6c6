"""`protect`: what a role changes of it is put back at once, is reported to all, and counts for no test.

Costs: each case is a run with tests, in a workspace that is looked at before and after.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.teams import Record, TeamFolder, read, say, with_flow
from tests.support.tests_here import real_pytest, tests_here
from tests.support.tools import shell
from tests.support.workspaces import write_files

__all__ = ["real_pytest", "tests_here"]

pytestmark = [pytest.mark.usefixtures("scripted_codex", "tests_here"), pytest.mark.real]

WRITER: Record = {"behaviors": {"apply_files": True}, "prompt_flags": {"allow_write": True}}
FINISHER: Record = {"behaviors": {"can_finish": True}}
RED = "import program\n\ndef test_it():\n    assert program.value == 1\n"
GREEN = "def test_it():\n    pass\n"


def team(folder: Path, writer: list[Record], *, flow: Record | None = None, **role: object) -> TeamFolder:
    roles = {"writer": {**WRITER, **role}, "reader": FINISHER}
    team = TeamFolder(folder, roles, {"writer": writer, "reader": [say(status="DONE")] * 5})
    write_files(team.workspace, {"tests/test_it.py": RED})
    return with_flow(team, flow) if flow else team


CHEAT = shell("echo 'def test_it(): pass' > tests/test_it.py; echo x > tests/conftest.py; echo y > made.txt")
CHEATED = ["tests/conftest.py", "tests/test_it.py"]


@pytest.mark.usefixtures("real_codex", "real_pytest")
def test_changed_protected_files_are_restored_and_reported(tmp_path: Path) -> None:
    """The role that changed them and the roles that read its result are informed."""
    steps = [{"id": "all", "ask": "*", "limits": {"visits": 2}, "next": [{"when": "cycle < 2", "to": "all"}]}]
    made = team(tmp_path, [CHEAT, say()], flow={"steps": steps, "protect": ["tests/**"]})
    report = made.run(flow="own", run_tests=True)
    turn = report.folder / "writer/turn_001"
    assert (made.workspace / "tests/test_it.py").read_text() == RED
    assert not (made.workspace / "tests/conftest.py").exists()
    assert read(turn / "turn.json")["protected_restored"] == CHEATED
    assert "tests/test_it.py" in (turn / "protected.patch").read_text()
    assert "made.txt" in (turn / "changes.patch").read_text()
    assert "tests/" not in (turn / "changes.patch").read_text()
    assert [(event["role"], event["turn"], event["paths"]) for event in made.of_type("protected_restored")] == [
        ("writer", 1, CHEATED)
    ]
    result = read(report.folder / "tests/001/result.json")
    assert (result["status"], result["protected_restored"]) == ("failed", CHEATED)
    assert report.outcome == "done"  # the module could not be imported before either
    assert "protected_restored" in (report.folder / "reader/turn_001/prompt.txt").read_text()


def test_submitted_protected_files_are_skipped_with_reason(tmp_path: Path) -> None:
    files = [{"path": path, "content": GREEN} for path in ("tests/test_it.py", "./tests/new.py", "program.py")]
    made = team(tmp_path, [say(files=files)], protect=["tests/**"], prompt_flags={})
    report = made.run(run_tests=True)
    applied = read(report.folder / "writer/turn_001/applied_files.json")
    assert [entry.get("reason") for entry in applied] == ["protected", "protected", None]
    assert (made.workspace / "tests/test_it.py").read_text() == RED
    result = read(report.folder / "tests/001/result.json")
    assert (result["status"], result["protected_restored"]) == ("failed", ["./tests/new.py", "tests/test_it.py"])


@pytest.mark.usefixtures("real_codex")
def test_role_that_is_not_kept_from_them_may_change_them(tmp_path: Path) -> None:
    made = team(tmp_path, [CHEAT])
    made.roles["reader"]["protect"] = ["tests/**"]
    made.write_catalog()
    made.run()
    assert (made.workspace / "tests/conftest.py").exists()
    assert not made.of_type("protected_restored")


@pytest.mark.usefixtures("real_pytest")
def test_tests_that_are_rewritten_while_they_run_are_not_green(tmp_path: Path) -> None:
    code = "import pathlib\npathlib.Path('tests/test_it.py').write_text('def test_it(): pass')\n"
    first = {"path": "test_a.py", "content": f"{code}\ndef test_a():\n    pass\n"}
    made = team(tmp_path, [say(files=[first])], flow={"steps": [{"id": "go", "ask": "*"}], "protect": ["tests/**"]})
    (made.workspace / "tests/test_it.py").write_text(GREEN)
    report = made.run(flow="own", run_tests=True)
    result = read(report.folder / "tests/001/result.json")
    assert result["status"] == "failed", result
    assert result["reason"] == "protected files were changed while it ran: tests/test_it.py"
    assert (made.workspace / "tests/test_it.py").read_text() == GREEN


def test_protected_change_between_sessions_is_undone(tmp_path: Path) -> None:
    """The change is undone before the tests run."""
    plays = [say(files=[{"path": "program.py", "content": "value = 0\n"}])]
    flow = {"steps": [{"id": "go", "ask": "*"}, {"id": "again", "ask": "reader"}], "protect": ["tests/**"]}
    made = team(tmp_path, plays, flow=flow)
    made.write_plays(reader=[{"fault": {"status": 400}}, say(status="CONTINUE"), say(status="CONTINUE")])
    flow["steps"].append({"id": "look", "check": "tests"})  # type: ignore[attr-defined]
    with_flow(made, flow)
    assert made.run(flow="own", run_tests=True).exit_code == 3
    (made.workspace / "tests/test_it.py").write_text(GREEN)
    made.write_plays(reader=[say(status="CONTINUE"), say(status="CONTINUE")])
    report = made.resume(playbook=str(made.playbook))
    result = read(report.folder / "tests/002/result.json")
    assert result["protected_restored"] == ["tests/test_it.py"]
    assert result["failed"] + result["errors"] == 1
    assert (made.workspace / "tests/test_it.py").read_text() == RED


@pytest.mark.usefixtures("real_codex")
def test_copy_of_the_workspace_is_protected_before_it_is_merged(tmp_path: Path) -> None:
    steps = [{"id": "go", "ask": "writer", "isolate": "worktree"}]
    made = team(tmp_path, [CHEAT], flow={"steps": steps, "protect": ["tests/**", "local.env"]})
    write_files(made.workspace, {".gitignore": "*.env\n", "local.env": "mine\n"})
    subprocess.run(["git", "init", "-q"], cwd=made.workspace, check=True)
    report = made.run(flow="own", run_tests=True)
    assert made.of_type("copy_merged")[0]["paths"] == ["made.txt"], report
    assert (made.workspace / "tests/test_it.py").read_text() == RED
    assert (made.workspace / "local.env").read_text() == "mine\n"
    assert [event["paths"] for event in made.of_type("protected_restored")] == [CHEATED]
    assert read(report.folder / "tests/001/result.json")["protected_restored"] == CHEATED


@pytest.mark.usefixtures("real_codex")
def test_with_others_at_work_only_what_is_protected_is_put_back(tmp_path: Path) -> None:
    wait = "while [ ! -e {other} ]; do sleep 0.02; done; echo x > {own}; echo pass > tests/test_it.py"
    plays = [
        shell("echo x > a.txt; " + wait.format(other="b.txt", own="a2.txt")),
        shell("echo x > b.txt; " + wait.format(other="a.txt", own="b2.txt")),
    ]
    steps = [{"id": "go", "ask": "writer", "for_each": {"items": ["a", "b"], "concurrency": 2}}]
    made = team(tmp_path, plays, flow={"steps": steps, "protect": ["tests/**"]})
    made.run(flow="own")
    names = sorted(path.name for path in made.workspace.iterdir())
    assert names == ["a.txt", "a2.txt", "b.txt", "b2.txt", "tests"]
    assert (made.workspace / "tests/test_it.py").read_text() == RED


@pytest.mark.long
def test_tampering_is_reported_even_if_answer_needed_repair(tmp_path: Path) -> None:
    """No short test changes files in a turn whose answer is repaired; the tests run after it as well."""
    schema = {"type": "object", "required": ["summary"]}
    cheat = {"steps": [CHEAT["steps"][0], {"text": "no object"}], "repairs": [say()]}
    made = team(tmp_path, [cheat], protect=["tests/**"], output_schema=schema)
    report = made.run(run_tests=True)
    assert read(report.folder / "tests/001/result.json")["protected_restored"] == CHEATED
