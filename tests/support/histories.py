"""Run folders with a history: real snapshots of a workspace, and the events of the turns that changed it."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from codex_multi_role.host.user_cache import note
from codex_multi_role.run_folder import RunEvent, RunFolder, TurnFolder
from codex_multi_role.run_folder import events as e
from codex_multi_role.workspace import Snapshots, Workspace, Worktrees
from codex_multi_role.workspace.repository import Repository, where_it_works
from tests.support.workspaces import Content, Link, Program, commit_all, write_files

SUBMODULE = "library"
AT = "2026-01-31T10:15:00.000+00:00"
Files = dict[str, Content]


@dataclass
class History:
    """A run in ``folder/runs/first`` on ``folder/workspace``, step by step.

    With ``committed``, the workspace is a git repository with these files, which ``start`` changes before the run.
    ``place``: an existing workspace instead. ``inside``: the run folders are in the workspace, as by default.
    ``submodule``: it has one with these files, in the folder `SUBMODULE`.
    """

    folder: Path
    start: Files
    committed: Files | None = None
    inside: bool = False
    place: Path | None = None
    submodule: Files | None = None
    events: list[RunEvent] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    """The workspace after each change."""

    def __post_init__(self) -> None:
        self.workspace = self.place or self.folder / "workspace"
        self.workspace.mkdir(exist_ok=True)
        if self.committed is not None:
            write_files(self.workspace, self.committed)
            if self.submodule is not None:
                write_files(self.workspace / SUBMODULE, self.submodule)
                commit_all(self.workspace / SUBMODULE)
            commit_all(self.workspace)
        self.run = RunFolder.create((self.workspace if self.inside else self.folder) / "runs", "first")
        found = Repository.around(self.workspace)
        base: dict[str, str] | None = None
        workspace = Workspace.of_run(self.workspace, self.run.path)
        self.snapshots = Snapshots(self.run.snapshots_path, workspace)
        self.worktrees = Worktrees(self.run.path / "worktrees", workspace, self.snapshots, "first")
        write_files(self.workspace, self.start)
        if found:
            uncommitted = self.snapshots.keep(found.uncommitted(self.run.path.parent, self.workspace))
            below = self.workspace.relative_to(found.top).as_posix().removeprefix(".")
            base = {"top": str(found.top), "below": below, "commit": found.checked_out(), "branch": found.branch()}
            base["uncommitted"] = uncommitted
        record = {"run_id": "first", "workspace": str(self.workspace), "flow": "own", "repository": base}
        self.run.write_record(record | {"started_at": AT})
        note("owned", where_it_works(record))
        self.happened(e.StepStarted("team", 1, 1, 1, self._state()))

    def turn(self, role: str, files: Files, copy: str = "", summary: str = "") -> None:
        """A turn of ``role`` that changes ``files``, in the workspace or in a ``copy`` of it."""
        folder = TurnFolder.create(self.run, role)
        isolated = self.worktrees.open(copy) if copy else None
        snapshots = isolated.snapshots if isolated else self.snapshots
        before = snapshots.take()
        self.happened(e.TurnStarted(role, folder.number, 1, 1, None, unit=copy))
        write_files(isolated.workspace.root if isolated else self.workspace, files)
        after = snapshots.take()
        if before != after:
            snapshots.write_patch(before, after, folder.patch_path)
            folder.write_changes(before, after)
        self.states += [] if copy else [after]
        self.happened(
            e.TurnEnded(role, folder.number, "completed", "completed", "", 1, 1, 0.1, summary or f"{role} did it")
        )

    def copied(self, key: str) -> Path:
        """Make the copy ``key`` of the workspace; returns its folder."""
        return self.worktrees.create(key).workspace.root

    def merged(self, key: str) -> None:
        self._state()
        merged = self.worktrees.merge(key)
        self._state()
        self.happened(e.CopyMerged(key, merged.status, list(merged.paths), []))

    def between(self, files: Files) -> None:
        """Somebody changes ``files`` between the turns."""
        write_files(self.workspace, files)
        self._state()

    def ended(self) -> None:
        ending = e.RunEnded("succeeded", "done", "", 0, {}, str(self.run.path), workspace=self._state())
        self.happened(ending)

    def _state(self) -> str:
        self.states.append(self.snapshots.take())
        return self.states[-1]

    def happened(self, event: RunEvent) -> None:
        self.events.append(replace(event, at=AT))
        lines = "".join(json.dumps(each.as_record()) + "\n" for each in self.events)
        self.run.events_path.write_text(lines)


def random_changes(rng: random.Random, names: Sequence[str], root: Path | None = None) -> Files:
    """Some of the files ``names`` changed, and some deleted of those that exist in ``root``."""
    made: Files = {}
    for name in rng.sample(names, rng.randint(1, 4)):
        exists = root is not None and ((root / name).is_symlink() or (root / name).is_file())
        made[name] = None if exists and rng.random() < 0.3 else _content(rng)
    return made


def _content(rng: random.Random) -> Content:
    lines = [f"line {rng.randrange(6)}" for _ in range(rng.randint(0, 6))]
    return rng.choice(
        (
            "".join(f"{line}\n" for line in lines),
            "".join(f"{line}\r\n" for line in lines),
            "\n".join(lines),
            bytes(rng.randrange(256) for _ in range(20)),
            Link(rng.choice(("a.txt", "nowhere", "sub"))),
            Program(f"#!/bin/sh\necho {lines}\n"),
        )
    )
