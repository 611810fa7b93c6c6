"""A run whose machine is lost continues on another one, in other folders, after its last recorded step.

Costs: runs in processes of their own, killed and continued from the store.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import pytest

from codex_multi_role import RunReport
from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.store.restoring import SavedState, fill_workspace, restore_run
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.extensions.machines.store.workspace_sources import bundle_workspace, make_workspace
from codex_multi_role.lifecycle import running
from codex_multi_role.lifecycle.placement import Placement
from codex_multi_role.option_keywords import ResumeKeywords
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace.manifest import Manifest
from codex_multi_role.workspace.worktrees import Trees
from tests.support.preloaded import started
from tests.support.teams import WRITER, Record, TeamFolder, read, say, with_flow, with_traceback
from tests.support.workspaces import commit_all, git, write_files

pytestmark = pytest.mark.real

Plays = dict[str, list[Record]]
RUN_ID = "saved"
PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from codex_multi_role import RunOptions
from codex_multi_role.lifecycle import running
from codex_multi_role.lifecycle.placement import Placement
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store

record, store, last = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
options = RunOptions.from_record(record)
saver = RunSaver(Store.open(store), RunFolder(options.place.runs_dir / options.place.run_id), 1)
saves = 0

def save(take_trees):
    global saves
    saves += 1
    if saves > last:
        os.kill(os.getpid(), signal.SIGKILL)
    print(saver.save(take_trees), flush=True)

running.run(options, placement=Placement(save=save))
print(saver.save(), flush=True)
"""


@dataclass(frozen=True)
class Machines:
    """A team that starts on one machine, the folder ``team.folder``, and continues on another."""

    team: TeamFolder
    other: Path
    address: str = ""

    @property
    def store(self) -> str:
        return self.address or str(self.other.parent / "store")

    @property
    def database_url(self) -> str:
        return f"sqlite:///{self.other.parent}/shared.sqlite"

    def start(self, last: int, **options: Any) -> list[str]:
        """Run until the process is killed when it has saved ``last`` times; returns the manifests.

        That is just before the next save.
        """
        given = self.team.options(run_id=RUN_ID, database_url=self.database_url, **options)
        argv = [sys.executable, "-c", PROGRAM, json.dumps(given.as_record()), self.store, str(last)]
        process = started(argv, cwd=self.team.folder, stdout=subprocess.PIPE)
        printed, _ = process.communicate(timeout=120)
        assert process.returncode in (0, -signal.SIGKILL)
        return printed.split()

    def lose(self) -> None:
        """The first machine is gone with all its files."""
        self.team.folder.rename(self.other.parent / "lost")

    def restore(self, manifest: str, make_workspace: Callable[[Path], object] = Path.mkdir) -> SavedState:
        """Bring the run and its workspace to the other machine."""
        folder, workspace = RunFolder(self.other / "elsewhere" / RUN_ID), self.other / "files"
        shutil.rmtree(workspace, ignore_errors=True)
        workspace.parent.mkdir(parents=True, exist_ok=True)
        make_workspace(workspace)
        state = restore_run(Store.open(self.store), manifest, folder.path)
        fill_workspace(state, folder, workspace)
        return state

    def resume(
        self, manifest: str, on_event: Callable[[Record], None] | None = None, **changes: Unpack[ResumeKeywords]
    ) -> RunReport:
        """Continue on the other machine as the second attempt, and save there."""
        folder = RunFolder(self.other / "elsewhere" / RUN_ID)
        saver = RunSaver(Store.open(self.store), folder, 2, manifest)
        report = running.resume(
            RUN_ID,
            runs_dir=folder.path.parent,
            changes={"workspace": self.other / "files", **changes},
            on_event=on_event,
            placement=Placement(save=saver.save),
        )
        return with_traceback(report)


def writes(path: str, content: str) -> Record:
    return say(f"wrote {path}", files=[{"path": path, "content": content}])


def machines(folder: Path) -> Machines:
    """Two roles, of which one writes a file in each of two cycles."""
    plays: Plays = {"one": [writes("a.txt", "first\n"), writes("sub/b.txt", "second\n")], "two": [say("x"), say("y")]}
    (folder / "here").mkdir()
    return Machines(TeamFolder(folder / "here", {"one": WRITER, "two": {}}, plays), folder / "there")


def test_run_continues_in_other_folders_at_other_paths(tmp_path: Path) -> None:
    both = machines(tmp_path)
    (both.team.workspace / "kept.txt").write_text("was there before\n")
    saved = both.start(last=4, cycles=2)
    assert len(saved) == 4
    both.lose()
    assert both.restore(saved[-1]).attempt == 1
    events: list[Record] = []
    report = both.resume(saved[-1], events.append)
    assert report.totals["turns"] == 4
    files = {path.name: path.read_text() for path in (both.other / "files").rglob("*.txt")}
    assert files == {"kept.txt": "was there before\n", "a.txt": "first\n", "b.txt": "second\n"}
    assert [event["resumed"] for event in events if event["type"] == "role_started"]
    taken = [event["role"] for event in events if event["type"] == "turn_started"]
    assert taken == ["one", "two"]


def in_copies(folder: Path) -> Machines:
    """Two items at once, each in its own copy, with an answer that must be repaired; then their copies are merged."""
    plays: Plays = {"writer": [writes("a.txt", "A\n"), writes("b.txt", "B\n")], "last": [say()]}
    (folder / "here").mkdir()
    team = TeamFolder(folder / "here", {"writer": WRITER, "last": {}}, plays)
    write_files(team.workspace, {"shared.txt": "shared\n", ".gitignore": "ignored.txt\n"})
    merged = "steps.write.results | map(attribute='merge.status') | list == ['merged', 'merged']"
    write = {"id": "write", "ask": "writer", "isolate": "worktree", "for_each": {"items": ["a", "b"], "concurrency": 1}}
    end = [{"when": merged, "end": "both"}, {"end": "not_both", "exit": 1}]
    return Machines(with_flow(team, {"steps": [write, {"id": "last", "ask": "last", "next": end}]}), folder / "there")


@pytest.mark.long
@pytest.mark.parametrize("is_repository", [False, True])
@pytest.mark.parametrize("last", [3, 7])
def test_isolated_items_continue_in_their_copies(last: int, is_repository: bool, tmp_path: Path) -> None:
    """Only here items have copies of the workspace, which are moved as well."""
    both, make = in_copies(tmp_path), Path.mkdir
    store = Store.open(both.store)
    if is_repository:
        commit_all(both.team.workspace)
    source = bundle_workspace(store, both.team.workspace).source
    saved = both.start(last, flow="own")
    both.lose()
    for _ in range(2):  # the second time over what the first one left
        both.restore(saved[-1], lambda target: make_workspace(source, store, target) if is_repository else make(target))
    report = both.resume(saved[-1])
    assert report.outcome == "both"
    assert report.totals["turns"] == 3
    files = both.other / "files"
    assert [(files / name).read_text() for name in ("a.txt", "b.txt", "shared.txt")] == ["A\n", "B\n", "shared\n"]
    copies = Manifest(report.folder / "worktrees")
    assert {copy.state for copy in copies} == {"merged"}
    if is_repository:
        listed = git(files, "worktree", "list")
        assert str(tmp_path / "here") not in listed


@pytest.mark.long
def test_copies_are_prepared_again_elsewhere(tmp_path: Path) -> None:
    """Only here a setup ran: what it made is in no snapshot and not merged, but made again where work continues."""
    both = in_copies(tmp_path)
    saved = both.start(2, flow="own", workspace_setup="echo made > made.txt")
    both.lose()
    both.restore(saved[-1])
    report = both.resume(saved[-1])
    assert report.outcome == "both"
    copies = Manifest(report.folder / "worktrees")
    assert all((copies.place / copy.path / "made.txt").exists() for copy in copies if not copy.removed_at)
    assert not (both.other / "files/made.txt").exists()


@pytest.mark.extensions
@pytest.mark.long
def test_run_in_its_own_worktree_continues_in_a_clone(tmp_path: Path) -> None:
    """Only here a run has a worktree, and continues in a clone; the branch can be exported from it."""
    from codex_multi_role.extensions.results.exporting import export_branch, start_of
    from codex_multi_role.extensions.results.run_history import history_of

    both = machines(tmp_path)
    (both.team.workspace / "kept.txt").write_text("committed\n")
    commit_all(both.team.workspace)
    store = Store.open(both.store)
    source = bundle_workspace(store, both.team.workspace).source
    saved = both.start(last=4, cycles=2, worktree=True)
    both.lose()
    both.restore(saved[-1], lambda target: make_workspace(source, store, target))
    report = both.resume(saved[-1])
    assert report.totals["turns"] == 4
    history = history_of(RunFolder(report.folder))
    made = export_branch(history, "agents/run", *start_of(history, None))
    listed = git(both.other / "files", "ls-tree", "-r", "--name-only", made.tip).split()
    assert listed == ["a.txt", "kept.txt", "sub/b.txt"]
    assert len(made.commits) == 2


@pytest.mark.long
def test_definitions_in_the_workspace_stay_off_limits_elsewhere(tmp_path: Path) -> None:
    """Only here the definitions of a run that moves are among its files."""
    both = machines(tmp_path)
    both.team.plays["one"][1] = writes("roles/catalog.yaml", "version: 1\n")
    both.team.plays["one"][1]["json"]["files"].append({"path": "team/catalog.yml", "content": "version: 1\n"})
    both.team.write_plays()
    shutil.move(both.team.folder / "roles", both.team.workspace / "team")
    (both.team.workspace / "team/catalog.yaml").rename(both.team.workspace / "team/catalog.yml")
    saved = both.start(last=4, cycles=2, roles=both.team.workspace / "team")
    both.lose()
    both.restore(saved[-1])
    before = (both.other / "files/team/catalog.yml").read_text()
    report = both.resume(saved[-1])
    assert report.totals["turns"] == 4
    assert read(report.folder / "run.json")["roles_source"] == str(both.other / "files/team/catalog.yml")
    applied = read(report.folder / "one/turn_002/applied_files.json")
    assert [(each["status"], each["reason"]) for each in applied] == [("SKIPPED", "unsafe path")] * 2
    assert (both.other / "files/team/catalog.yml").read_text() == before


@pytest.mark.long
def test_failing_save_halts_the_run_before_the_step_is_recorded(tmp_path: Path) -> None:
    """Only here a save fails in the middle of a run."""
    both = machines(tmp_path)
    calls: list[int] = []

    def save(take_trees: Callable[[], Trees]) -> None:
        calls.append(len(take_trees()))
        if len(calls) == 2:
            raise StorageError("the store is full", "Free some space.")

    report = running.run(both.team.options(cycles=2), placement=Placement(save=save))
    assert (report.outcome, report.reason, report.hint) == ("storage_failed", "the store is full", "Free some space.")
    assert len(calls) == 2
    calls += [0] * 10
    report = running.resume(report.run_id, runs_dir=both.team.runs, placement=Placement(save=save))
    assert report.totals["turns"] == 4
    assert len(calls) == 12 + 7, "replayed steps are not saved again"
