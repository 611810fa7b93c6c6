"""Wrong files, missing programs, unwritable folders, full disks, kills at bad moments: a clear message, nothing lost.

What is wrong before a run leaves nothing behind (exit 2); what goes wrong in one leaves all it did (exit 3), and
`resume` continues once it is fixed.

Costs: each case is a run that meets what is wrong, and often its resumption.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from codex_multi_role import RunReport, run
from codex_multi_role.engine import journal_file
from codex_multi_role.errors import DefinitionError, StorageError, UsageError
from codex_multi_role.run_folder import Record, RunFolder, list_turns
from tests.support.console import DEADLINE_SECONDS, completed, console, environment
from tests.support.disks import Disk, small_disk
from tests.support.preloaded import Preloaded
from tests.support.processes import largest_file, running, watched
from tests.support.recorded_runs import make_run
from tests.support.teams import TeamFolder, read, say
from tests.support.workspaces import files_of, write_files

pytestmark = pytest.mark.usefixtures("scripted_codex")

contents = partial(files_of, without=("owner.json",))
"""Every file below a folder, without those of a lock that was held for a moment."""
FULL = "No space left on device"
DISK_MEGABYTES = 64
RESUME = (sys.executable, "-m", "codex_multi_role", "resume", "mine")
ONE = "version: 1\nroles:\n- {name: one, prompt_text: x}\n"


def team_of_three(folder: Path, pause_seconds: float = 0) -> TeamFolder:
    """Role two thinks for ``pause_seconds``."""
    plays = {name: [say(f"{name} {cycle}") for cycle in (1, 2)] for name in ("one", "two", "three")}
    plays["two"][0]["delay_seconds"] = pause_seconds
    return TeamFolder(folder, {"one": {}, "two": {}, "three": {}}, plays)


def history(folder: Path) -> list[str]:
    return [entry["role"] for entry in read(folder / "controller_state.json")["history"]]


def message_of(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that says what is wrong."""
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in done.stderr
    return line


# Wrong before a run: exit 2, and nothing is left behind.

USES: list[tuple[list[str], dict[str, str], str, str]] = [
    (["--roles", "typo"], {}, 'unknown key "naem"; did you mean "name"?', "Known keys"),
    (["--workspace", "gone"], {}, "the workspace gone does not exist", "mkdir -p gone"),
    (["--workspace", "file"], {}, "Directory 'file' is a file", "--help"),
    (["--workspace", "x" * 300], {}, "cannot be reached: File name too long", ""),
    (["--runs-dir", "file"], {}, "Directory 'file' is a file", "--help"),
    (["--codex-bin", "no-program"], {}, "no-program is not an executable file", "--codex-bin"),
    ([], {"CODEX_MULTI_ROLE_CODEX_BIN": "/gone/codex"}, "/gone/codex is not an executable file", "bundled"),
    (["--playbook", "broken.yaml"], {}, "broken.yaml:2:16: roles.one[0]: ", ""),
]


@pytest.mark.parametrize(("arguments", "variables", "words", "hint"), USES, ids=lambda value: str(value)[:30])
def test_invalid_environment_is_reported_in_one_line(
    tmp_path: Path, arguments: list[str], variables: dict[str, str], words: str, hint: str
) -> None:
    """Examples are a missing program and an invalid folder. No files are created."""
    for name in ("file", "no-program"):
        (tmp_path / name).write_text("x")
    write_files(tmp_path, {"typo/catalog.yaml": ONE.replace("name", "naem")})
    (tmp_path / "broken.yaml").write_text("name: x\nroles: {one: [{jsno: {}}]}\n")
    before = contents(tmp_path)
    playbook = [] if "--playbook" in arguments else ["--playbook", "roman-numerals"]
    done = console("--goal", "x", *playbook, *arguments, folder=tmp_path, variables=variables)
    assert done.returncode == 2
    assert words in message_of(done)
    assert hint in done.stderr
    assert (contents(tmp_path), sorted(path.name for path in tmp_path.iterdir())) == (
        before,
        ["broken.yaml", "file", "no-program", "typo"],
    )


def test_resume_that_cannot_begin_changes_nothing(tmp_path: Path) -> None:
    team = team_of_three(tmp_path)
    report = team.run()
    before = contents(report.folder)
    with pytest.raises(UsageError, match="cycles must be at least 1"):
        team.resume(cycles=0)
    with pytest.raises(DefinitionError, match="cannot be read"):
        team.resume(playbook=str(tmp_path / "gone.yaml"))
    team.workspace.rename(tmp_path / "moved")
    with pytest.raises(UsageError, match=f"the workspace {team.workspace} does not exist"):
        team.resume(cycles=2)
    team.workspace.write_text("x")
    with pytest.raises(UsageError, match=f"the workspace {team.workspace} is not a folder"):
        team.resume(cycles=2)
    assert contents(report.folder) == before
    assert team.resume(cycles=2, workspace=tmp_path / "moved").totals["turns"] == 6


# Folders that cannot be written, disks that are full.


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    (tmp_path / "disk").mkdir()
    try:
        with small_disk(tmp_path / "disk", DISK_MEGABYTES) as disk:
            yield disk
    except OSError as error:
        pytest.skip(f"this system gives no disk of one's own: {error}")


def on_disk(disk: Disk, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    with start_on_disk(disk, *command, **variables) as process:
        try:
            stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
        finally:
            process.kill()
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def start_on_disk(disk: Disk, *command: str, **variables: str) -> subprocess.Popen[str]:
    """As `Disk.inside` does, preloaded."""
    argv, folder, pipe = disk.translated(*command), disk.mounted_at / disk.name, subprocess.PIPE
    return Preloaded(
        argv, cwd=folder, env=environment(**variables), stdout=pipe, stderr=pipe, text=True, within=disk.holder
    )


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write in, root neither")
def test_runs_that_cannot_be_recorded_are_not_started(tmp_path: Path) -> None:
    done = console("--playbook", "roman-numerals", "--runs-dir", "/proc/runs", folder=tmp_path)
    assert done.returncode == 3
    assert "cannot write /proc/runs: " in message_of(done)
    assert "fix the permissions" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_read_only_disk_is_refused_for_workspace_and_runs(disk: Disk) -> None:
    """No short test has a disk that is read-only."""
    team = team_of_three(disk.folder)
    disk.make_read_only()
    done = on_disk(disk, *team.command("--runs-dir", "/proc/runs"))
    assert (done.returncode, message_of(done)) == (2, "error: the workspace workspace cannot be written")
    done = on_disk(disk, *team.command("--workspace", "/tmp"))
    assert done.returncode == 3
    assert message_of(done).endswith("/runs: Read-only file system")


@pytest.mark.long
def test_unwritable_codex_home_is_reported_by_run_and_doctor(tmp_path: Path, disk: Disk) -> None:
    """Its disk is read-only or full."""
    team = team_of_three(tmp_path)
    home = disk.folder / "codex_home"
    home.mkdir()
    [home_there] = disk.translated(str(home))
    program = [sys.executable, "-m", "codex_multi_role"]
    run_it = ["run", "--goal", "x", "--roles", str(tmp_path / "roles"), "--workspace", str(team.workspace)]

    def told_by_run(words: str) -> None:
        done = on_disk(disk, *program, *run_it, "--runs-dir", str(team.runs), CODEX_HOME=home_there)
        assert (done.returncode, message_of(done).endswith(f"/codex_home cannot be written: {words}")) == (2, True)
        assert "name another one with CODEX_HOME" in done.stderr
        assert not team.runs.exists()

    def told_by_doctor(words: str) -> None:
        done = on_disk(disk, *program, "doctor", "--json", CODEX_HOME=home_there)
        (login,) = [each for each in json.loads(done.stdout) if each["name"] == "login"]
        assert (done.returncode, login["ok"], login["detail"].endswith(words)) == (2, False, True)
        assert "name another one with CODEX_HOME" in login["advice"]

    disk.fill()
    told_by_run(FULL)
    told_by_doctor(FULL)
    disk.free()
    disk.make_read_only()
    told_by_run("Read-only file system")
    assert list(home.iterdir()) == []


@pytest.mark.long
def test_full_disk_at_start_hides_no_earlier_run(tmp_path: Path, disk: Disk) -> None:
    """The failed start changes no earlier run and costs nothing. Once there is space, a new run can start."""
    team = team_of_three(disk.folder)
    make_run(tmp_path / "made", "first")
    shutil.copytree(tmp_path / "made", team.runs, symlinks=True)
    (team.runs / "latest").unlink(missing_ok=True)
    (team.runs / "latest").symlink_to("first")
    before = contents(team.runs / "first")
    disk.fill()
    done = on_disk(disk, *team.command("--run-id", "second"))
    assert done.returncode == 3
    assert message_of(done).endswith(FULL)
    assert "Free some space" in done.stderr
    assert contents(team.runs / "first") == before
    assert (team.runs / "latest").readlink() == Path("first")
    disk.free()
    assert on_disk(disk, *team.command("--run-id", "third")).returncode == 1


@pytest.mark.long
def test_disk_that_fills_in_the_middle_of_a_run_loses_nothing(disk: Disk) -> None:
    """No short test fills the disk of a whole run."""
    team = team_of_three(disk.folder, pause_seconds=1)
    started = start_on_disk(disk, *team.command("--json", "--run-id", "mine"))
    with watched(started, until=("turn_started", "two")) as process:
        disk.fill()
        process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 3
    folder = team.runs / "mine"
    assert read(folder / "one/turn_001/handoff.json") == {"summary": "one 1"}
    disk.fill()
    done = on_disk(disk, *RESUME)
    assert (done.returncode, message_of(done).endswith(FULL)) == (3, True)
    disk.free()
    done = on_disk(disk, *RESUME)
    assert (done.returncode, history(folder)) == (1, ["one", "two", "three"])
    assert [path.name for path in sorted((folder / "one").glob("turn_*"))] == ["turn_001"]
    assert read(folder / "run.json")["outcome"] == "cycles_used_up"
    told = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines() if line.endswith("}")]
    assert [event["resumed"] for event in told if event["type"] == "run_started"] == [False, True]


def test_journal_that_cannot_grow_ends_run_and_resume_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = team_of_three(tmp_path)
    team.write_plays(two=[say("two " * 3_000)] * 2)
    open_file, opened = journal_file._opened, list[sqlite3.Connection]()

    def kept(path: Path) -> sqlite3.Connection:
        opened.append(open_file(path))
        return opened[-1]

    def stop_growth(event: Record) -> None:
        if (event["type"], event.get("role")) == ("turn_started", "two"):
            opened[0].execute("PRAGMA max_page_count=1")  # SQLite allows as many as there are

    with monkeypatch.context() as patch:
        patch.setattr(journal_file, "_opened", kept)
        report = run(team.options(), stop_growth)
    assert (report.status, report.exit_code, history(report.folder)) == ("failed", 3, ["one"])
    assert report.reason == "the journal failed at two turn: database or disk is full"
    assert team.resume().outcome == "cycles_used_up"
    assert [turn[0] for turn in team.turns()] == ["three"]


def test_definitions_that_cannot_be_saved_end_run_before_start(tmp_path: Path) -> None:
    team = team_of_three(tmp_path)
    team.run(run_id="first")
    with largest_file(100), pytest.raises(StorageError, match=r"cannot write .*/second/catalog/.*: File too large"):
        team.run(run_id="second")
    assert RunFolder.find(team.runs, "latest").run_id == "first"
    assert not (team.runs / "second").exists()


# Killed, damaged, or busy runs.


def test_damaged_run_json_is_named_and_the_rest_is_left_alone(tmp_path: Path) -> None:
    team = team_of_three(tmp_path)
    folder = team.run(run_id="mine").folder
    whole = (folder / "run.json").read_text()
    for text in ("", '{"run_id": "mi', "[]"):
        (folder / "run.json").write_text(text)
        before = contents(folder)
        done = console("resume", "mine", folder=tmp_path)
        assert done.returncode == 2
        assert f"{folder}/run.json cannot be read: " in message_of(done)
        assert "restore run.json from a copy" in done.stderr
        assert contents(folder) == before
    (folder / "run.json").write_text(whole)
    assert team.resume(cycles=2).totals["turns"] == 6


def damaged(journal: bytes) -> Iterator[bytes]:
    yield b"this is no database" * 1000
    yield journal[: len(journal) // 2]
    yield journal[:4096] + b"\xff" * (len(journal) - 4096)


def test_damaged_journal_is_named_and_a_copy_of_it_works(tmp_path: Path) -> None:
    team = team_of_three(tmp_path)
    folder = RunFolder(team.run().folder)
    state, whole = read(folder.state_path), folder.journal_path.read_bytes()
    for journal in damaged(whole):
        folder.journal_path.write_bytes(journal)
        done = console("resume", "latest", "--cycles", "2", folder=tmp_path)
        assert (done.returncode, folder.record()["outcome"]) == (3, "storage_failed")
        assert f"the journal {folder.journal_path} cannot be opened" in done.stderr
        assert (len(list(list_turns(folder))), read(folder.state_path)) == (3, state)
    folder.journal_path.write_bytes(whole)
    assert team.resume(cycles=2).outcome == "cycles_used_up"
    assert history(folder.path) == ["one", "two", "three"] * 2


@pytest.mark.real
def test_second_resume_is_refused_and_does_not_disturb_the_first(tmp_path: Path) -> None:
    team = team_of_three(tmp_path)
    wait = {"cmd": "until [ -e refused ]; do sleep 0.05; done", "yield_time_ms": 30_000}
    team.plays["two"][0] = {"steps": [{"call": "exec_command", "arguments": wait}, say("two 1")]}
    team.write_plays()
    with running(team, "--run-id", "mine", until=("turn_started", "two")) as process:
        done = console("resume", "mine", folder=tmp_path)
        (team.workspace / "refused").touch()
        process.communicate(timeout=DEADLINE_SECONDS)
    assert done.returncode == 2
    assert message_of(done) == f"error: run mine is being worked on by process {process.pid}"
    assert "Wait for it to end" in done.stderr
    assert (process.returncode, history(team.runs / "mine")) == (1, ["one", "two", "three"])


def test_folders_may_have_any_name(tmp_path: Path) -> None:
    name = '-dash ünï it\'s "q" back\\slash new\nline $HOME`x`'
    report: RunReport = TeamFolder(tmp_path / name, {"one": {}}, {"one": [say()]}).run()
    assert report.outcome == "cycles_used_up"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.real
@pytest.mark.parametrize("limit", [16, *(pytest.param(each, marks=pytest.mark.long) for each in (20, 28, 32, 36))])
def test_too_few_file_descriptors_are_named_whoever_lacks_them(tmp_path: Path, limit: int) -> None:
    """The journal, git or Codex, at its start or in a turn: each reports it in other words, or not at all."""
    command = team_of_three(tmp_path).command()
    limited = ["sh", "-c", 'ulimit -n "$0" && exec "$@"', str(limit), *command]
    done = completed(limited, tmp_path, environment())
    assert done.returncode in (2, 3), done.stderr
    assert "raise the limit (`ulimit -n`)" in done.stderr
