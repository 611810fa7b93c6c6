"""``--record`` and ``--replay`` as a user types them: in another folder, with a changed team, in CI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.console import console
from tests.support.teams import TeamFolder
from tests.support.workspaces import write_files

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

FILES = [{"path": "new.txt", "content": "new"}]
ROLES = {"one": {"behaviors": {"apply_files": True}}}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team, a recording of it beside the workspace it began with, and another whose run was cut short."""
    folder = tmp_path_factory.mktemp("project")
    team = TeamFolder(folder, ROLES, {"one": [{"json": {"summary": "done", "files": FILES}}]})
    (team.workspace / "old.txt").write_text("old")
    shop = folder / "recordings/shop"
    write_files(shop, {"old.txt": "old"})
    done = console(*team.command("--record", "recordings/shop.ndjson")[3:], folder=folder)
    assert done.returncode == 1, done.stderr
    lines = (folder / "recordings/shop.ndjson").read_text().splitlines(keepends=True)
    write_files(folder, {"short/killed.ndjson": "".join(lines[:-1])})
    return folder


def test_team_that_changed_does_not_replay(project: Path, tmp_path: Path) -> None:
    TeamFolder(tmp_path / "changed", {"one": {"prompt_text": "Do it differently.", **ROLES["one"]}}, {})
    replay = ("--replay", str(project / "recordings/shop.ndjson"), "--roles", "changed/roles", "--no-run-tests")
    (tmp_path / "old.txt").write_text("old")
    done = console(*replay, folder=tmp_path)
    assert done.returncode == 3
    assert "not as recorded: role one, visit 1: its prompt differs from the recorded one" in done.stderr
    record = json.loads((tmp_path / "runs/latest/run.json").read_text())
    assert (record["outcome"], record["exit_code"]) == ("not_as_recorded", 3)


@pytest.mark.parametrize("match", [(), ("--replay-match", "nearest")], ids=["strict", "nearest"])
def test_other_result_fails_the_replay(project: Path, tmp_path: Path, match: tuple[str, ...]) -> None:
    """The turns are equal, and what they leave is not; `nearest` passes over a workspace that began differently."""
    (tmp_path / "new.txt").write_text("new")
    replay = ("--replay", str(project / "recordings/shop.ndjson"), "--roles", str(project / "roles"), *match)
    done = console(*replay, folder=tmp_path)
    assert done.returncode == 3
    assert "file new.txt: changed in the recording, not now" in done.stderr
    assert json.loads((tmp_path / "runs/latest/run.json").read_text())["outcome"] == "not_as_recorded"


def test_recording_that_was_cut_short_proves_nothing(project: Path, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old")
    replay = ("--replay", str(project / "short/killed.ndjson"), "--roles", str(project / "roles"))
    done = console(*replay, folder=tmp_path)
    assert done.returncode == 3
    assert "the recording was cut short: its run did not end" in done.stderr


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
