"""The commands that back up and restore the runs of many machines, tried while a worker works on them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest

from codex_multi_role.extensions.machines.store.restoring import restore_run
from codex_multi_role.extensions.machines.workers.queued_runs import RunState
from codex_multi_role.run_folder import RunFolder, list_turns
from tests.docs.pages import OPERATION, blocks
from tests.support.databases import DatabaseServer, running_server
from tests.support.databases import execute as create_database
from tests.support.shared_runs import SharedRuns
from tests.support.teams import WRITER, Record, TeamFolder, say, with_flow

pytestmark = [pytest.mark.extensions, pytest.mark.long]
OLD, NEW, SERVER_OF_NEW = (
    "postgresql://team@db.example.org/runs",
    "postgresql://team@db2.example.org/runs",
    "postgresql://team@db2.example.org/postgres",
)
STORE, BACKUP, NEW_STORE = "/mnt/team/store", "/mnt/backup", "/mnt/team2/store"
UNFINISHED = re.compile(r"cp: cannot \w+ '.*/\.[^/]*'.*: No such file or directory")
"""What `cp` says of a file that a worker was writing."""
CYCLES = 5
SECONDS = 120


@pytest.fixture
def servers() -> Iterator[tuple[DatabaseServer, DatabaseServer]]:
    with running_server() as old, running_server() as new:
        yield old, new


def test_restored_runs_continue_elsewhere(
    tmp_path: Path, servers: tuple[DatabaseServer, DatabaseServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run has ended, one is parked, one works and one waits. Nothing of the old place is left afterwards."""
    old, new = servers
    monkeypatch.setenv("PATH", os.pathsep.join([str(old.programs), os.environ["PATH"]]))
    backup, restore, _ = (block.commands for block in blocks(OPERATION) if block.language == "sh")
    create_database(old.url, "CREATE DATABASE runs")
    here = tmp_path / "old"
    (tmp_path / "backup").mkdir()
    (tmp_path / "new").mkdir()
    url, new_url = (server.url.replace("/postgres?", "/runs?") for server in servers)
    places = {
        SERVER_OF_NEW: shlex.quote(new.url),
        NEW: shlex.quote(new_url),
        OLD: shlex.quote(url),
        STORE: str(here / "store"),
        BACKUP: str(tmp_path / "backup"),
        NEW_STORE: str(tmp_path / "new/store"),
    }
    shared = at_work(here, url)
    execute(backup, places, tmp_path)
    shared.kill("a")
    shared.close()
    old.stop()
    (here / "store").rename(tmp_path / "lost")
    execute(restore, places, tmp_path)
    continues(SharedRuns(tmp_path / "new", new_url), tmp_path)


def test_restored_file_continues_elsewhere(tmp_path: Path) -> None:
    """The same with a database in a file."""
    *_, commands = (block.commands for block in blocks(OPERATION) if block.language == "sh")
    (here := tmp_path / "old").mkdir()
    (tmp_path / "backup").mkdir()
    places = {"/home/you": str(here), STORE: str(here / "store"), BACKUP: str(tmp_path / "backup")}
    shared = at_work(here, f"sqlite:///{here}/queue.sqlite")
    execute([*commands, f"cp -a {STORE} {BACKUP}/store"], places, tmp_path)
    shared.kill("a")
    shared.close()
    here.rename(tmp_path / "lost")
    continues(SharedRuns(tmp_path / "new", f"sqlite:///{tmp_path}/backup/queue.sqlite"), tmp_path)


def at_work(folder: Path, url: str) -> SharedRuns:
    """A worker that has ended one run, parked another, and is at work on the third."""
    shared = SharedRuns(folder, url)
    steps = [{"id": "plan", "ask": "one"}, {"id": "gate", "review": "Release it?"}, {"id": "end", "ask": "one"}]
    shared.submit(with_flow(team(folder / "asks", 2), {"steps": steps}).options(flow="own"), "parked")
    shared.submit(team(folder / "short", 1).options(), "done")
    shared.submit(team(folder / "short", 1).options(), "waiting", labels=("gpu",))
    shared.submit(team(folder / "long", CYCLES, seconds=3).options(cycles=CYCLES), "working")
    shared.start("a", "--concurrency", "3")
    shared.wait_for(RunState.ENDED, "done")
    shared.wait_for(RunState.PARKED, "parked")
    shared.wait(lambda: shared.run("working").manifest and completed(shared, "working", folder / "seen"))
    return shared


def team(folder: Path, turns: int, seconds: float = 0) -> TeamFolder:
    plays = [
        {**say(f"step {number}", files=[{"path": f"{number}.txt", "content": f"{number}\n"}]), "delay_seconds": seconds}
        for number in range(1, turns + 1)
    ]
    return TeamFolder(folder, {"one": WRITER}, {"one": plays})


def execute(commands: list[str], places: dict[str, str], folder: Path) -> None:
    """Give the commands with the addresses of this test instead of those of the page."""
    for command in commands:
        done = give(reduce(lambda text, there: text.replace(there, places[there]), places, command), folder)
        lines = done.stderr.splitlines()
        assert done.returncode == 0 or (lines and all(map(UNFINISHED.fullmatch, lines))), f"{command}\n{done.stderr}"


def give(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which closes its connections to the server."""
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def continues(shared: SharedRuns, folder: Path) -> None:
    """All four runs end, and no turn that was finished before the backup is asked again."""
    before = completed(shared, "working", folder / "at-backup")
    shared.start("b", "--concurrency", "2", "--labels", "gpu")
    shared.wait_for(RunState.ENDED, "working", "waiting")
    approved = give(f"codex-multi-role approve parked --database-url {shlex.quote(shared.url)}", folder)
    assert approved.returncode == 0, approved.stderr
    shared.wait_for(RunState.ENDED, "parked")
    after = completed(shared, "working", folder / "at-end")
    assert 1 <= len(before) < len(after) == CYCLES
    assert after | before == after, "the turns of the backup are the same ones"
    ended = {run_id: (state, code) for run_id, state, code in shared.results()}
    assert ended == {"parked": ("ended", 0), **dict.fromkeys(("done", "waiting", "working"), ("ended", 1))}
    assert [shared.run(name).attempt for name in ("done", "working", "parked")] == [1, 2, 2]
    shared.close()


def completed(shared: SharedRuns, run_id: str, folder: Path) -> dict[int, Record]:
    """The record of each completed turn, by its place in the journal; no place has two."""
    restore_run(shared.store, shared.run(run_id).manifest or "", folder)
    records = [turn.result() for _, turn in list_turns(RunFolder(folder))]
    done = [each for each in records if each["status"] == "completed"]
    found = {each["journal_step"]: each for each in done}
    assert len(found) == len(done)
    return found
