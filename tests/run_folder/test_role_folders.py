"""A role may have the name of anything that a run's folder has itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role import fork, load_run
from codex_multi_role.run_folder import RunFolder, TurnFolder, list_turns
from codex_multi_role.run_folder.folder import OWN_NAMES, instance_in
from tests.support.console import console
from tests.support.scripted_codex import codex_replaced
from tests.support.teams import WRITER, TeamFolder, read, say

NAMES = ("tests", "checks", "items", "reviews", "catalog", "baseline")


@pytest.mark.parametrize("name", [*sorted(OWN_NAMES), "Tests", "journal.sqlite-wal", "role-tests", "Role-role-items"])
def test_own_name_gives_the_role_another_folder(tmp_path: Path, name: str) -> None:
    path = RunFolder(tmp_path).role_path(name)
    assert path.name == f"role-{name}"
    assert instance_in(path.name) == name


@pytest.mark.parametrize("name", ["planner", "tests.2", "tester", "role-model", "role-", "cataloger"])
def test_any_other_name_is_the_folder_of_the_role(tmp_path: Path, name: str) -> None:
    assert RunFolder(tmp_path).role_path(name).name == name
    assert instance_in(name) == name


def test_role_of_an_older_run_keeps_its_folder(tmp_path: Path) -> None:
    (tmp_path / "baseline").mkdir()
    (tmp_path / "baseline/stderr.log").touch()
    run = RunFolder(tmp_path)
    TurnFolder.create(run, "baseline")
    assert [(role, turn.path.relative_to(tmp_path)) for role, turn in list_turns(run)] == [
        ("baseline", Path("baseline/turn_001"))
    ]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> TeamFolder:
    """Two cycles, the second one after a resume; ``tests`` writes a file, and tests run."""
    plays = {name: [say(f"{name} 1"), say(f"{name} 2")] for name in NAMES}
    plays["tests"] = [say("wrote", files=[{"path": "a.txt", "content": f"{each}\n"}]) for each in "12"]
    team = TeamFolder(tmp_path_factory.mktemp("team"), dict.fromkeys(NAMES, WRITER), plays)
    with codex_replaced():
        assert team.run(cycles=1, run_tests=True).outcome == "cycles_used_up"
        assert team.resume(cycles=2).outcome == "cycles_used_up"
    return team


@pytest.mark.extensions
@pytest.mark.real
def test_run_of_such_roles_resumes_in_their_folders(team: TeamFolder) -> None:
    run = load_run("latest", runs_dir=team.runs)
    assert {path.parent.name for path in run.folder.glob("*/turn_002")} == {f"role-{name}" for name in NAMES}
    assert [(turn.role, turn.number) for turn in run.turns] == [(name, n) for n in (1, 2) for name in NAMES]
    state = read(run.folder / "controller_state.json")
    assert state["latest_json_by_role"]["checks"]["summary"] == "checks 2"
    assert len(state["history"]) == 2 * len(NAMES)
    assert "baseline 2" in run.folder.joinpath("report.html").read_text()


@pytest.mark.real
def test_all_that_a_run_has_itself_is_known(team: TeamFolder) -> None:
    found = {path.name for path in load_run("latest", runs_dir=team.runs).folder.iterdir()}
    own = {name for name in found - {f"role-{name}" for name in NAMES} if not name.startswith((".", "journal.sqlite"))}
    assert own - OWN_NAMES == set()


@pytest.mark.real
@pytest.mark.extensions
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("show", "items 2"),
        ("report", "report.html"),
        ("blame a.txt", "tests"),
        ("diff --role tests", "+2"),
        ("rerun --dry-run", "12 turns taken over, 0 asked"),
    ],
)
def test_command_finds_the_turns_of_such_roles(team: TeamFolder, command: str, shown: str) -> None:
    done = console(*command.split(), folder=team.folder)
    assert shown in done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.real
def test_fork_takes_over_the_turns_of_such_roles(team: TeamFolder) -> None:
    with codex_replaced():
        forked = fork("latest", runs_dir=team.runs, start="team:2")
    turns = load_run(forked.run_id, runs_dir=team.runs).turns
    assert [turn.number for turn in turns if turn.role == "catalog"] == [1, 2]
