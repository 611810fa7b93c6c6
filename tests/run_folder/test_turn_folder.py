"""The folders of roles and turns: of any name, with a number for ever; a kill leaves no turn that seems to run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codex_multi_role import fork, load_run
from codex_multi_role.run_folder import RunFolder, TurnFolder, close_unfinished, list_turns, totals_of
from codex_multi_role.run_folder.folder import OWN_NAMES, instance_in
from tests.support.console import console
from tests.support.scripted_codex import codex_replaced
from tests.support.teams import WRITER, TeamFolder, read, say


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs", "run")


def statuses(run: RunFolder) -> list[tuple[str, int, str]]:
    return [(role, turn.number, turn.result()["status"]) for role, turn in list_turns(run)]


def test_turns_are_numbered_role_by_role(run: RunFolder) -> None:
    created = [TurnFolder.create(run, role).path.relative_to(run.path) for role in ("one", "two", "one")]
    assert [str(path) for path in created] == ["one/turn_001", "two/turn_001", "one/turn_002"]


def test_number_is_never_given_again_even_if_folders_are_missing(run: RunFolder) -> None:
    for _ in range(3):
        TurnFolder.create(run, "one")
    shutil.rmtree(run.path / "one/turn_002")
    assert TurnFolder.create(run, "one").number == 4
    (run.path / "one/turn_next").mkdir()
    assert TurnFolder.create(run, "one").number == 5


def test_turns_are_listed_by_role_and_number_beyond_1000(run: RunFolder) -> None:
    for role, number in (("two", 1), ("one", 1000), ("one", 101), ("one", 999)):
        TurnFolder.of(run, role, number).path.mkdir(parents=True)
    (run.path / "one/turn_notes").mkdir()
    listed = [(role, turn.number) for role, turn in list_turns(run)]
    assert listed == [("one", 101), ("one", 999), ("one", 1000), ("two", 1)]


def test_turn_before_is_unchanged_when_the_next_is_started(run: RunFolder) -> None:
    first = TurnFolder.create(run, "one")
    first.begin("Do it.", {"attempt": 1})
    first.write_answer("said", "sa|id", "## message")
    first.write_result({"status": "completed"})
    TurnFolder.create(run, "one").begin("Do it again.", {"attempt": 1})
    names = ["assistant_text.txt", "delta_text.txt", "items_text.md", "prompt.txt"]
    assert [(first.path / name).read_text() for name in names] == ["said", "sa|id", "## message", "Do it."]
    assert statuses(run) == [("one", 1, "completed"), ("one", 2, "running")]


def test_killed_turn_is_closed_and_keeps_its_known_data(run: RunFolder) -> None:
    done, running, bare = (TurnFolder.create(run, "one") for _ in range(3))
    done.begin("1", {})
    done.write_result({"status": "completed", "thread_id": "t"})
    running.begin("2", {"thread_id": "t", "attempt": 2})
    assert close_unfinished(run) == 2
    assert statuses(run) == [("one", 1, "completed"), ("one", 2, "interrupted"), ("one", 3, "interrupted")]
    assert running.result() == {
        "status": "interrupted",
        "outcome": "killed",
        "reason": "the run was killed during this turn",
        "thread_id": "t",
        "attempt": 2,
    }
    assert bare.result()["reason"] == "the run was killed during this turn"
    assert close_unfinished(run) == 0
    assert TurnFolder.create(run, "one").number == 4


def test_handoff_is_stored_as_it_came(run: RunFolder) -> None:
    turn = TurnFolder.create(run, "one")
    handoff = {"summary": "füns", "tasks": [{"id": 1}], "analysis_md": None}
    assert turn.handoff() is None
    assert turn.write_handoff(handoff) == handoff
    assert turn.handoff() == handoff
    assert not (turn.path / "analysis.md").exists()


def test_long_prose_moves_to_a_file_of_its_own(run: RunFolder) -> None:
    turn = TurnFolder.create(run, "one")
    original = {"summary": "s", "analysis_md": "# Why\n"}
    handed_on = turn.write_handoff(original)
    assert handed_on == {"summary": "s", "analysis_md_path": "one/turn_001/analysis.md"}
    assert (run.path / handed_on["analysis_md_path"]).read_text() == "# Why\n"
    assert turn.passed_on(handed_on)["analysis_md_path"] == str(run.path.absolute() / "one/turn_001/analysis.md")
    assert turn.passed_on({"analysis_md_path": "/etc/passwd"}) == {"analysis_md_path": "/etc/passwd"}
    assert original == {"summary": "s", "analysis_md": "# Why\n"}
    assert turn.handoff() == handed_on


def test_turn_json_that_was_never_written_is_an_empty_one(run: RunFolder) -> None:
    turn = TurnFolder.create(run, "one")
    assert turn.result() == {}
    for text in ("{", "[]", "[" * 100_000):
        (turn.path / "turn.json").write_text(text)
        assert turn.result() == {}


def test_totals_sum_own_turns_and_use_latest_worked_time(run: RunFolder) -> None:
    """Inherited turns do not count."""
    nothing = {"turns": 0, "repairs": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0, "unpriced_turns": 0}
    assert totals_of(run, 1.5) == {**nothing, "seconds": 1.5}
    told: list[dict[str, object]] = [
        {"tokens": {"input": 10, "output": 1}, "cost": 0.1, "repair_of": None, "worked_seconds": 2.5},
        {"tokens": {"input": 20, "output": 2}, "repair_of": 1, "worked_seconds": 7.25},
        {"tokens": {"input": 40, "output": 4}, "repair_of": 1, "worked_seconds": 99.0, "inherited": True},
        {},
    ]
    for result in told:
        TurnFolder.create(run, "one").write_result(result)
    own = {"turns": 3, "repairs": 1, "input_tokens": 30, "output_tokens": 3, "cost": None, "unpriced_turns": 2}
    assert totals_of(run, 1.5) == {**own, "seconds": 7.25}
    assert totals_of(run, 8.0) == {**own, "seconds": 8.0}


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
