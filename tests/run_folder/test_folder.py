"""A run's folder: how it is made, named and found again."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from codex_multi_role.errors import RunNotFound, StorageError, UsageError
from codex_multi_role.run_folder import RunFolder, list_runs
from codex_multi_role.run_folder.folder import RECORD_SCHEMA


def make_run(runs: Path, run_id: str | None = None, started_at: str = "2026-01-31T10:15:00.000+00:00") -> RunFolder:
    folder = RunFolder.create(runs, run_id)
    folder.write_record({"run_id": folder.run_id, "started_at": started_at})
    return folder


def found(runs: Path, reference: str) -> str:
    return RunFolder.find(runs, reference).run_id


def test_run_is_named_by_its_time_and_never_twice_in_one_second(tmp_path: Path) -> None:
    ids = {RunFolder.create(tmp_path).run_id for _ in range(50)}
    assert len(ids) == 50
    assert all(re.fullmatch(r"\d{8}_\d{6}_[0-9a-f]{8}", run_id) for run_id in ids)


def test_runs_that_start_at_the_same_time_do_not_interfere(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = {run.run_id for run in pool.map(lambda _: make_run(tmp_path / "runs"), range(32))}
    assert len(ids) == 32
    assert {run.run_id for run in list_runs(tmp_path / "runs")} == ids
    assert found(tmp_path / "runs", "latest") in ids
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {*ids, "latest", ".gitignore"}


@pytest.mark.parametrize("run_id", ["a", "20260131_101500", "a.b-c_D", "x" * 100])
def test_run_can_be_given_a_name(tmp_path: Path, run_id: str) -> None:
    assert make_run(tmp_path, run_id).path == tmp_path / run_id


@pytest.mark.parametrize(
    "run_id", ["latest", ".hidden", "-c", "../out", "a/b", "a b", "a\n", "é", "x" * 101, "a\0", ".", ".."]
)
def test_invalid_run_id_is_refused_and_nothing_is_created(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(UsageError, match="cannot be a run id"):
        RunFolder.create(tmp_path / "runs", run_id)
    assert list(tmp_path.iterdir()) == []


def test_name_that_is_taken_is_refused_with_the_way_on(tmp_path: Path) -> None:
    make_run(tmp_path, "mine").state_path.write_text("kept")
    with pytest.raises(UsageError, match="run mine already exists") as caught:
        RunFolder.create(tmp_path, "mine")
    assert "show mine" in caught.value.hint
    assert (tmp_path / "mine/controller_state.json").read_text() == "kept"


@pytest.mark.parametrize(
    ("folder", "there", "ignored"),
    [
        ("runs", {}, "*\n"),
        (".", {}, "*\n"),
        (".", {".gitignore": "*.pyc\n"}, "*.pyc\n"),
        (".", {"setup.py": ""}, ""),
    ],
    ids=["made by us", "empty", "with a file of its own", "a project"],
)
def test_git_ignores_only_a_folder_that_is_ours(
    tmp_path: Path, folder: str, there: dict[str, str], ignored: str
) -> None:
    for name, text in there.items():
        (tmp_path / name).write_text(text)
    make_run(tmp_path / folder)
    file = tmp_path / folder / ".gitignore"
    assert (file.read_text() if file.exists() else "") == ignored


def test_runs_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match=f"cannot write {tmp_path}/file/runs: Not a directory"):
        RunFolder.create(tmp_path / "file/runs")


def test_latest_is_the_run_that_began_last(tmp_path: Path) -> None:
    make_run(tmp_path, "first")
    make_run(tmp_path, "second")
    assert (found(tmp_path, "latest"), (tmp_path / "latest").readlink()) == ("second", Path("second"))
    RunFolder.find(tmp_path, "first").write_record({"resumed": True})
    assert found(tmp_path, "latest") == "second"


def test_run_that_never_started_is_neither_latest_nor_listed(tmp_path: Path) -> None:
    """The error for its name says that it has no run.json."""
    make_run(tmp_path, "first")
    RunFolder.create(tmp_path, "killed_as_it_began")
    assert found(tmp_path, "latest") == "first"
    assert [run.run_id for run in list_runs(tmp_path)] == ["first"]
    with pytest.raises(RunNotFound, match=r"run killed_as_it_began in .* has no run\.json"):
        RunFolder.find(tmp_path, "killed_as_it_began")


def test_latest_never_stands_for_another_run(tmp_path: Path) -> None:
    make_run(tmp_path, "one_more")
    gone = make_run(tmp_path, "one")
    gone.record_path.unlink()
    with pytest.raises(RunNotFound, match='no run "latest"'):
        RunFolder.find(tmp_path, "latest")


def dangling_link(link: Path) -> None:
    link.unlink()
    link.symlink_to("/nowhere/old_run")


def text_file(link: Path) -> None:
    link.unlink()
    link.write_text("oldest")


def whole_copy(link: Path) -> None:
    target = link.resolve()
    link.unlink()
    shutil.copytree(target, link)


@pytest.mark.parametrize("copied", [Path.unlink, dangling_link, text_file, whole_copy])
def test_copy_without_its_link_has_a_latest_run(tmp_path: Path, copied: Callable[[Path], None]) -> None:
    make_run(tmp_path, "a_newest", "2026-02-02T00:00:00.000+00:00")
    make_run(tmp_path, "z_oldest", "2026-02-01T00:00:00.000+00:00")
    copied(tmp_path / "latest")
    assert found(tmp_path, "latest") == "a_newest"
    assert [run.run_id for run in list_runs(tmp_path)] == ["z_oldest", "a_newest"]
    make_run(tmp_path, "next", "2026-02-03T00:00:00.000+00:00")
    assert found(tmp_path, "latest") == "next"
    assert not [*tmp_path.glob(".latest.*")]


def test_runs_folder_in_which_no_database_opens_is_refused(tmp_path: Path) -> None:
    """SQLite's paths are limited, and Codex takes only UTF-8. Nothing is created."""
    for name, problem in (("d" * 250, "at most 300"), (os.fsdecode(b"not\xffutf8"), "is not UTF-8")):
        with pytest.raises(UsageError, match=problem):
            RunFolder.create(tmp_path / ("x" * 100) / name)
    assert [*tmp_path.iterdir()] == []


def test_run_is_found_by_its_id_or_the_beginning_of_it(tmp_path: Path) -> None:
    for run_id in ("20260131_1", "20260131_10", "20260201_1"):
        make_run(tmp_path, run_id)
    assert found(tmp_path, "20260131_1") == "20260131_1"
    assert found(tmp_path, "202602") == "20260201_1"
    with pytest.raises(RunNotFound, match=r"2 runs begin with '2026013' in .*") as caught:
        RunFolder.find(tmp_path, "2026013")
    assert "codex-multi-role runs" in caught.value.hint


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("20260232_1", 'no run "20260232_1" in .*; did you mean "20260131_1"'),
        ("lastest", 'did you mean "latest"'),
        ("", 'no run ""'),
        ("zzz", 'no run "zzz" in [^;]*$'),
        ("..", "no run"),
        ("20260131_1/catalog", "no run"),
    ],
)
def test_name_that_no_run_has_is_answered_with_the_nearest(tmp_path: Path, reference: str, words: str) -> None:
    (make_run(tmp_path, "20260131_1").path / "catalog").mkdir()
    with pytest.raises(RunNotFound, match=words):
        RunFolder.find(tmp_path, reference)


def test_where_there_are_no_runs_none_is_found(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "nowhere") == []
    with pytest.raises(RunNotFound, match=r"there are no runs in /.*/nowhere"):
        RunFolder.find(tmp_path / "nowhere", "latest")


def test_run_is_found_in_full_whatever_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path / "runs", "mine")
    monkeypatch.chdir(tmp_path)
    assert RunFolder.find(Path("runs"), "mine").path == tmp_path / "runs/mine"
    assert RunFolder.create(Path("runs"), "other").path == tmp_path / "runs/other"


def test_runs_are_listed_once_by_start_time(tmp_path: Path) -> None:
    """Their names and last changes do not affect the order, and a link is no other run."""
    make_run(tmp_path, "b", "2026-01-01T00:00:00.000+00:00")
    run = make_run(tmp_path, "a", "2026-01-02T00:00:00.000+00:00")
    make_run(tmp_path, "c", "2026-01-01T12:00:00.000+00:00")
    (tmp_path / "alias").symlink_to(run.path)
    assert [run.run_id for run in list_runs(tmp_path)] == ["b", "c", "a"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"a": \ud800}'])
def test_unreadable_run_json_is_named_and_hides_no_other_run(tmp_path: Path, text: str) -> None:
    make_run(tmp_path, "good")
    bad = make_run(tmp_path, "bad")
    bad.record_path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(RunNotFound, match=f"{bad.record_path} cannot be read") as caught:
        bad.record()
    assert "copy" in caught.value.hint
    assert {run.run_id for run in list_runs(tmp_path)} == {"good", "bad"}


def test_run_of_a_later_version_names_the_version(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "first")
    folder.write_record({"schema": RECORD_SCHEMA + 1, "versions": {"codex_multi_role": "2.3"}})
    with pytest.raises(RunNotFound, match=r"first/run\.json cannot be read: it is of a later version") as caught:
        folder.record()
    assert caught.value.hint == "Use codex-multi-role 2.3 or later."


def test_numbers_continue_after_highest_and_are_unique(tmp_path: Path) -> None:
    run = make_run(tmp_path, "run")
    (run.path / "tests/009").mkdir(parents=True)
    (run.path / "tests/latest").mkdir()
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: run.new_tests_folder(), range(16)))
    assert sorted(folder.name for folder in folders) == [f"{number:03d}" for number in range(10, 26)]
    (run.path / "tests/1000").mkdir()
    assert run.new_tests_folder().name == "1001"
