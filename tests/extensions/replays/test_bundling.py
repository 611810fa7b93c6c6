"""Making a bundle: the same bytes each time, and a clear reason for each run that no other machine could do again."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays import bundling
from codex_multi_role.extensions.replays.bundling import make_bundle, make_verified_bundle
from codex_multi_role.extensions.replays.comparing import DIFFERS, ComparedLine
from codex_multi_role.extensions.replays.verifying import verify_bundle
from codex_multi_role.run_folder import RunFolder
from tests.support.bundles import STEPS, bundle_of, shop_team
from tests.support.histories import Files, Link, Program, commit_all, write

pytestmark = pytest.mark.real


def run_of(bundle: Path) -> RunFolder:
    return RunFolder((bundle.parent / "runs/latest").resolve())


@pytest.mark.long(
    "extensions/replays/test_bundling.py::test_bundle_of_a_run_has_the_same_bytes_each_time",
    "extensions/replays/test_bundle_commands.py::test_run_is_bundled_and_verified_elsewhere",
)
def test_line_ends_links_and_recording_keep_a_bundle_the_same(tmp_path: Path) -> None:
    """Its recording, which is in the workspace, is no part of the work; the bundle holds it once."""
    team = shop_team(tmp_path)
    crlf: Files = {
        ".gitattributes": "* text eol=crlf\n",
        "unix.txt": "a\n",
        "dos.txt": "a\r\n",
        ".gitignore": "*.log\n",
    }
    write(team.workspace, {**crlf, "tool.sh": Program("#!/bin/sh\n"), "link": Link("../else"), "x.log": b"\0"})
    report = team.run(flow="own", record=team.workspace / "run.ndjson")
    made = bundle_of(report.folder)
    first = made.path.read_bytes()
    assert bundle_of(report.folder).path.read_bytes() == first
    assert made.size == len(first)
    with zipfile.ZipFile(made.path) as archive:
        assert {"claims.json", "recording.ndjson", "states.pack", "team/catalog.yaml"} <= {*archive.namelist()}
    assert len(made.claims.observed.changes) == 2
    assert verify_bundle(made.path, {}).exit_code == 0


@pytest.mark.long(
    "extensions/replays/test_bundling.py::test_differing_run_is_not_bundled",
    "extensions/replays/test_forgeries.py::test_forged_bundle_is_refused",
)
def test_run_that_goes_another_way_again_is_refused(tmp_path: Path) -> None:
    by_chance = {"id": "now", "check": "command", "with": {"argv": ["sh", "-c", "date +%s%N > when.txt"]}}
    team = shop_team(tmp_path, [*STEPS[:1], by_chance, *STEPS[2:]])
    folder = RunFolder(team.run(flow="own", record=tmp_path / "run.ndjson").folder)
    with pytest.raises(UsageError, match=r"does not go the same way again: .*when\.txt"):
        make_verified_bundle(folder, tmp_path / "run.bundle")
    assert not (tmp_path / "run.bundle").exists()


def test_bundle_of_a_run_has_the_same_bytes_each_time(shop_bundle: Path, tmp_path: Path) -> None:
    made = make_bundle(run_of(shop_bundle), tmp_path / "again.bundle")
    assert made.path.read_bytes() == shop_bundle.read_bytes()


def test_differing_run_is_not_bundled(shop_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = ComparedLine(DIFFERS, "file when.txt: content differs")
    monkeypatch.setattr(bundling, "verify_bundle", lambda *_, **__: SimpleNamespace(lines=[line]))
    with pytest.raises(UsageError, match=r"does not go the same way again: .*when\.txt"):
        make_verified_bundle(run_of(shop_bundle), tmp_path / "run.bundle")
    assert not (tmp_path / "run.bundle").exists()


def test_run_that_cannot_be_repeated_is_refused(tmp_path: Path) -> None:
    team, recording = shop_team(tmp_path), tmp_path / "run.ndjson"
    folder = RunFolder(team.run(flow="own", record=recording).folder)
    whole = recording.read_text()

    def reason() -> str:
        with pytest.raises(UsageError) as refused:
            make_bundle(folder, tmp_path / "run.bundle")
        assert not (tmp_path / "run.bundle").exists()
        return str(refused.value)

    recording.write_text(whole[: whole.rindex('{"type": "ended"')])
    assert "has not ended" in reason()
    recording.write_text(whole.replace(folder.run_id, "another"))
    assert "is the recording of run another" in reason()
    recording.unlink()
    assert "the recording of run" in reason()
    recording.write_text(whole)
    (folder.catalog_path / "reloaded_001").mkdir()
    assert "were changed while it ran" in reason()
    record = folder.record()
    folder.write_record({**record, "options": {**record["options"], "record": None}})
    assert "was not recorded" in reason()


@pytest.mark.long
def test_killed_and_resumed_run_is_verified(tmp_path: Path) -> None:
    """The turn in which it was killed was done again, and counts once."""
    team, recording = shop_team(tmp_path), tmp_path / "run.ndjson"
    team.plays["writer"][1]["delay_seconds"] = 1.5
    team.write_plays()
    child = team.start("--flow", "own", "--record", str(recording))
    deadline = time.monotonic() + 60
    while len(list(team.runs.glob("*/writer/turn_002/turn.json"))) < 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    child.kill()
    child.communicate(timeout=60)
    report = team.resume()
    assert report.exit_code == 0
    made = bundle_of(report.folder)
    assert [(turn.role, turn.turn) for turn in made.claims.observed.turns] == [
        ("writer", 1),
        ("writer", 2),
        ("judge", 1),
    ]
    result = verify_bundle(made.path, {})
    assert [line.text for line in result.lines if line.status == "differs"] == []


@pytest.mark.long
def test_workspace_with_nested_repository_is_refused(tmp_path: Path) -> None:
    team = shop_team(tmp_path)
    (nested := team.workspace / "vendor").mkdir()
    commit_all(nested)
    report = team.run(flow="own", record=tmp_path / "run.ndjson")
    with pytest.raises(UsageError, match="has nested git repositories: vendor"):
        bundle_of(report.folder)
