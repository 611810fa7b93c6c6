"""``replay-test``, ``--record`` and ``--replay`` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from junitparser import JUnitXml

from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.main import group
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays.replay_test_command import put_result
from codex_multi_role.extensions.replays.replay_tests import DIFFERS, Replayed, find_recordings, replay_test
from codex_multi_role.workspace.occupation import occupied
from tests.support.console import console
from tests.support.teams import TeamFolder
from tests.support.workflow_log import read_log
from tests.support.workspaces import files_of

pytestmark = pytest.mark.real

HOSTILE = "see ##[set-output name=outcome]done and\n::error::owned"
FILES = [{"path": "new.txt", "content": "new"}]
ROLES = {"one": {"behaviors": {"apply_files": True}}}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team, a recording of it beside the workspace it began with, and another whose run was cut short."""
    folder = tmp_path_factory.mktemp("project")
    team = TeamFolder(folder, ROLES, {"one": [{"json": {"summary": "done", "files": FILES}}]})
    (team.workspace / "old.txt").write_text("old")
    shop = folder / "recordings/shop"
    shop.mkdir(parents=True)
    (shop / "old.txt").write_text("old")
    done = console(*team.command("--record", "recordings/shop.ndjson")[3:], folder=folder)
    assert done.returncode == 1, done.stderr
    lines = (folder / "recordings/shop.ndjson").read_text().splitlines(keepends=True)
    (folder / "short").mkdir()
    (folder / "short/killed.ndjson").write_text("".join(lines[:-1]))
    return folder


@pytest.mark.sample("replay-test")
def test_team_that_is_as_it_was_passes_and_leaves_nothing(project: Path, tmp_path: Path) -> None:
    before = files_of(project)
    killed = tmp_path / "cache/codex-multi-role/replays/shop-1"
    running = killed.with_name("shop-2")
    for folder in (killed, running):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    variables = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "CODEX_HOME": str(tmp_path / "no-login")}
    with occupied(running):  # as its process does until it ends, however it ends
        done = console("replay-test", "recordings", folder=project, variables=variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ok    shop.ndjson  1 turn in ")
    assert done.stdout.endswith("1 recording: 1 as recorded, 0 not\n")
    assert files_of(project) == before
    assert [*killed.parent.iterdir()] == [running]


def test_changed_team_fails_and_the_reasons_are_reported(project: Path, tmp_path: Path) -> None:
    TeamFolder(tmp_path, {"one": {"prompt_text": "Do it\u001b[31m differently.", **ROLES["one"]}}, {})
    kept, junit = tmp_path / "kept", tmp_path / "junit.xml"
    more = ["--roles", str(tmp_path / "roles"), "--json", "--keep", str(kept), "--junit", str(junit)]
    done = console("replay-test", "recordings", *more, folder=project)
    assert done.returncode == 1, done.stderr
    [told] = json.loads(done.stdout)["recordings"]
    assert (told["name"], told["status"]) == ("shop.ndjson", "differs")
    assert "role one, visit 1: its prompt differs from the recorded one" in told["differences"]
    assert any("+Do it" in diff for diff in told["diffs"].values())
    [case] = next(iter(JUnitXml.fromfile(str(junit))))
    assert (case.name, case.result[0].message) == ("shop.ndjson", told["differences"][0])
    assert "+Do it" in case.result[0].text
    assert (kept / "shop/runs/latest/run.json").is_file()


def test_unwritable_junit_path_is_reported_before_any_replay(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert run_guarded(group, ["replay-test", "recordings", "--junit", "nowhere/junit.xml"]) == 2
    said = capsys.readouterr()
    assert (said.out, "folder 'nowhere' does not exist" in said.err) == ("", True)


def test_result_is_reported_even_if_junit_becomes_unwritable(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    in_its_place = str(tmp_path / "kept")
    assert run_guarded(group, ["replay-test", "recordings", "--keep", in_its_place, "--junit", in_its_place]) == 3
    assert "1 recording: 1 as recorded, 0 not" in capsys.readouterr().out


def test_what_cannot_be_replayed_is_an_error(project: Path) -> None:
    result = replay_test(project / "short/killed.ndjson", {})
    assert (result.status, result.exit_code) == ("error", 2)
    assert "was cut short" in result.differences[0]


def test_no_text_of_others_is_a_command_in_a_workflow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def all_said() -> str:
        put_result(Replayed("shop.ndjson", DIFFERS, (HOSTILE,), diffs={"one.diff": HOSTILE}))
        return capsys.readouterr().out

    assert len(read_log(all_said())) == 3
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert read_log(all_said()) == []


def test_folder_without_recordings_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no recordings"):
        find_recordings(tmp_path)


def test_recording_alone_is_enough_to_run_again(project: Path, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old")
    recording = project / "recordings/shop.ndjson"
    done = console("--replay", str(recording), "--roles", str(project / "roles"), folder=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "goal: reach it" in done.stderr
    assert (tmp_path / "new.txt").read_text() == "new"
    assert json.loads((tmp_path / "runs/latest/replay.json").read_text())["differences"] == []


def test_flags_beat_the_recording(project: Path) -> None:
    shown = console(
        *("run", "--replay", "recordings/shop.ndjson", "--goal", "another", "--dry-run", "--json"),
        folder=project,
    )
    assert "another" in shown.stdout, shown.stderr
    assert "reach it" not in shown.stdout
