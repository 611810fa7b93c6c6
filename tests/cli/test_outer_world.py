"""What the world around a command may be like: no home, files that never end, limits, names of any length."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.main import group
from codex_multi_role.errors import RunNotFound
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.trees import borrow_objects

LOOKING = (
    ("runs",),
    ("show",),
    pytest.param(("report",), marks=pytest.mark.extensions),
    ("roles", "list"),
    ("flows", "list"),
    ("flows", "validate", "cycles"),
    pytest.param(("config", "show"), marks=pytest.mark.extensions),
    ("run", "--playbook", "roman-numerals", "--dry-run"),
    pytest.param(("init", "team"), marks=pytest.mark.extensions),
)
"""Commands that start no process."""
READERS = (
    pytest.param(("batch",), marks=pytest.mark.extensions),
    ("run", "--goal-file"),
    pytest.param(("run", "x", "--replay"), marks=pytest.mark.extensions),
    ("run", "x", "--prices"),
    ("run", "x", "--playbook"),
)
WRITERS = (
    pytest.param(("report", "-o"), marks=pytest.mark.extensions),
    ("show", "--svg"),
    pytest.param(("run", "x", "--junit"), marks=pytest.mark.extensions),
    pytest.param(("batch", "g", "--output"), marks=pytest.mark.extensions),
)
OF_EXTENSIONS = [pytest.param(each, marks=pytest.mark.extensions) for each in ("rerun",)]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a recorded run, which is the current one."""
    monkeypatch.chdir(tmp_path)
    folder = RunFolder.create(tmp_path / "runs", "one")
    record: dict[str, object] = {
        "goal": "x",
        "flow": "cycles",
        "inputs": {},
        "options": {},
        "workspace": str(tmp_path),
        "status": "ended",
    }
    record |= {"outcome": "done", "reason": "", "exit_code": 0, "totals": {}, "catalog_file": "catalog.yaml"}
    folder.write_record({"run_id": "one", "started_at": "2026-01-31T10:15:00.000+00:00", **record})
    folder.events_path.touch()
    return tmp_path


def no_entry(_: int) -> None:
    raise KeyError


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("home", [None, "", "relative", "/nonexistent", "/dev/null"])
@pytest.mark.parametrize("command", LOOKING)
def test_no_command_needs_a_home(command: tuple[str, ...], home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pwd.getpwuid", no_entry)
    monkeypatch.delenv("HOME") if home is None else monkeypatch.setenv("HOME", home)
    assert run_guarded(group, command) == 0


def special_files(folder: Path) -> list[Path]:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket.yaml")
    os.mkfifo("fifo.yaml")
    (folder / "folder.yaml").mkdir()
    return [Path("socket.yaml"), Path("fifo.yaml"), Path("folder.yaml"), Path("/dev/zero")]


@pytest.mark.parametrize("command", [*READERS, *WRITERS], ids=" ".join)
def test_special_file_is_refused_at_once(
    command: tuple[str, ...], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A FIFO would block, a device never end, and a written file would replace either."""
    (project / "g").write_text('{"goal": "x"}')
    for path in special_files(project):
        before = path.stat()
        assert run_guarded(group, [*command, str(path)]) == 2
        error = capsys.readouterr().err
        assert "a regular file" in error or "is a directory" in error, path
        assert (path.stat().st_mode, path.stat().st_ino) == (before.st_mode, before.st_ino)


@pytest.mark.extensions
def test_goals_may_come_from_a_pipe_that_is_open(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As of a shell's ``<(…)``."""
    reader, writer = os.pipe()
    os.write(writer, b'{"goal": 1}\n')
    os.close(writer)
    assert run_guarded(group, ["batch", f"/dev/fd/{reader}", "--name", "piped"]) == 2
    os.close(reader)
    assert f"/dev/fd/{reader}:1: goal: must be text" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("path", ["n" * 300, "ab/" * 2000], ids=["name", "path"])
@pytest.mark.parametrize(
    "command",
    [*READERS, *WRITERS, ("init",), ("run", "x", "--roles"), ("run", "x", "--workspace")],
    ids=" ".join,
)
def test_name_that_is_too_long_is_wrong_usage(
    command: tuple[str, ...], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(group, [*command, path]) == 2
    assert "unexpected" not in capsys.readouterr().err


@pytest.mark.parametrize("key", ["options", "workspace", "inputs", "flow", "goal"])
@pytest.mark.parametrize(
    "command",
    [
        *("resume", "fork", *OF_EXTENSIONS),
        *(pytest.param(each, marks=pytest.mark.extensions) for each in ("diff", "apply --to .")),
    ],
)
def test_damaged_record_is_wrong_usage(
    command: str, key: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / "runs/one/run.json"
    record = json.loads(path.read_text())
    for damaged in ({each: record[each] for each in record if each != key}, {**record, key: 5}):
        path.write_text(json.dumps(damaged))
        assert run_guarded(group, command.split()) == 2
        assert "unexpected" not in capsys.readouterr().err


def test_damaged_record_is_named_with_its_key(project: Path) -> None:
    folder = RunFolder(project / "runs/one")
    record = folder.record()
    with pytest.raises(RunNotFound, match=r'one/run\.json cannot be read: the key "cycles" is missing'):
        record["options"]["cycles"]
    folder.record_path.write_text(json.dumps({**record, "options": []}))
    with pytest.raises(RunNotFound, match=r'one/run\.json cannot be read: "options" has a value of the wrong type'):
        folder.record()


def test_objects_are_borrowed_from_a_folder_with_a_newline(tmp_path: Path) -> None:
    """Git reads one path per line, unless it is quoted."""
    (there := tmp_path / 'new\nline "quoted"').mkdir()
    (here := tmp_path / "here").mkdir()
    source, target = Git(there / ".git", there), Git(here / ".git", here)
    for git in (source, target):
        git.run("init", "--quiet", "--template=")
    blob = source.run("hash-object", "-w", "--stdin", stdin=b"content").stdout.decode().strip()
    borrow_objects(target.git_dir, [source.git_dir])
    assert target.run("cat-file", "blob", blob).stdout == b"content"
