"""What saving a run in a store costs: a run of 50 turns on the real binary, and a workspace of 10,000 files.

    python benchmarks/saving.py [--folder DIR]

Prints seconds and bytes of saves before each recorded step (three per turn), and of restoring the last one.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import yaml

from codex_multi_role import RunOptions
from codex_multi_role.extensions.machines.run_options import MachineOptions
from codex_multi_role.extensions.machines.store.restoring import fill_workspace, restore_run
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.lifecycle import running
from codex_multi_role.lifecycle.placement import Placement
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.worktrees import Trees

TURNS = 50
FILES = 10_000
FILE_BYTES = 2_000


def stored(folder: Path) -> tuple[int, int]:
    """Objects and bytes in a local store."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def write_team(place: Path) -> RunOptions:
    """A team of one role that writes a file of 100 lines in each turn."""
    text = "".join(f"line {number} of a file\n" for number in range(100))
    files = [[{"path": f"f{number}.txt", "content": text}] for number in range(TURNS)]
    plays = [{"json": {"summary": "wrote it", "files": each}} for each in files]
    role = {"name": "one", "prompt_text": "Write the next file.", "behaviors": {"apply_files": True}}
    (place / "catalog.yaml").write_text(yaml.safe_dump({"version": 1, "roles": [role]}))
    (place / "playbook.yaml").write_text(yaml.safe_dump({"name": "measured", "roles": {"one": plays}}))
    (place / "workspace").mkdir()
    return RunOptions(
        goal="measure it",
        roles=place / "catalog.yaml",
        playbook=str(place / "playbook.yaml"),
        workspace=place / "workspace",
        runs_dir=place / "runs",
        run_id="measured",
        run_tests=False,
        cycles=TURNS,
        added=[MachineOptions(database_url=f"sqlite:///{place}/shared.sqlite")],
    )


def measure_run(place: Path) -> None:
    """Save before each recorded step of a run whose role writes a file in each turn."""
    place.mkdir()
    options = write_team(place)
    store = Store.open(str(place / "store"))
    saver = RunSaver(store, RunFolder(options.place.runs_dir / "measured"), 1)
    spent: list[float] = []
    snapshots: list[float] = []

    def save(take_trees: Callable[[], Trees]) -> None:
        def timed() -> Trees:
            start = time.perf_counter()
            trees = take_trees()
            snapshots.append(time.perf_counter() - start)
            return trees

        spent.append(seconds(lambda: saver.save(timed)))

    whole = seconds(lambda: running.run(options, placement=Placement(save=save)))
    last = saver.save()
    objects, size = stored(place / "store")
    print(f"run of {TURNS} turns: {whole:.1f} s, {len(spent)} saves, {objects} objects, {size:,} bytes")
    print(f"  {size / TURNS:,.0f} bytes per turn; {sum(spent) / TURNS * 1000:.0f} ms per turn")
    print(f"  a save: median {statistics.median(spent) * 1000:.0f} ms, longest {max(spent) * 1000:.0f} ms,")
    print(f"  of it the snapshot: median {statistics.median(snapshots) * 1000:.0f} ms")
    (place / "workspace2").mkdir()
    folder = RunFolder(place / "other/measured")
    took = seconds(lambda: fill_workspace(restore_run(store, last, folder.path), folder, place / "workspace2"))
    print(f"  restored with its workspace in {took:.2f} s")


def measure_workspace(place: Path) -> None:
    """Save a large workspace once, then after one change."""
    content = Random(1)
    workspace, run = place / "workspace", RunFolder(place / "runs/large")
    run.path.mkdir(parents=True)
    for number in range(FILES):
        path = workspace / f"{number // 100}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content.randbytes(FILE_BYTES // 2).hex())
    snapshots = Snapshots(run.snapshots_path, Workspace.of_run(workspace, run.path))
    store = Store.open(str(place / "store"))
    saver = RunSaver(store, run, 1)
    taken = seconds(snapshots.take)
    before = stored(place / "store")[1]
    first = seconds(lambda: saver.save(lambda: {"": snapshots.take()}))
    middle = stored(place / "store")[1]
    (workspace / "0/0.txt").write_text("changed")
    second = seconds(lambda: saver.save(lambda: {"": snapshots.take()}))
    third = seconds(lambda: saver.save(lambda: {"": snapshots.take()}))
    after = stored(place / "store")[1]
    print(f"workspace of {FILES:,} files, {FILES * FILE_BYTES:,} bytes: the first snapshot takes {taken:.2f} s")
    print(f"  first save {first:.2f} s, {middle - before:,} bytes; after one change {second * 1000:.0f} ms, ", end="")
    print(f"without one {third * 1000:.0f} ms, {after - middle:,} bytes for both")
    folder = RunFolder(place / "other/large")
    (place / "made").mkdir()
    state = restore_run(store, saver.save(), folder.path)
    print(f"  workspace filled in {seconds(lambda: fill_workspace(state, folder, place / 'made')):.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", help="where to work, such as a disk of the kind that the store will be on")
    with tempfile.TemporaryDirectory(dir=parser.parse_args().folder) as name:
        measure_run(Path(name) / "run")
        measure_workspace(Path(name) / "large")
