"""Random histories in repositories as people have them: whatever leaves a run is exactly its result.

Costs: 27 kinds of repositories, each with a history of its own, on real git.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from codex_multi_role.extensions.results.applying import apply_result
from codex_multi_role.extensions.results.commit_texts import BEFORE
from codex_multi_role.extensions.results.exporting import Exported, export_branch, start_of
from codex_multi_role.extensions.results.lines import line_history
from codex_multi_role.extensions.results.patches import diff
from codex_multi_role.extensions.results.run_history import history_of, result_of
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.run_worktree import add_run_worktree
from tests.support.awkward_repositories import FILES, KINDS, SECRET, Awkward, awkward
from tests.support.histories import History, random_changes
from tests.support.workspaces import write_files

pytestmark = pytest.mark.real

SEEDS = 12
UNSAFE = {"\\", "\n", "\t", "\udce9"}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of the owner, and of nobody else."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        pytest.param(kind, seed, marks=[pytest.mark.long] if seed else [], id=f"{kind}-{seed}")
        for kind in KINDS
        for seed in range(SEEDS)
    ],
)
def test_what_leaves_a_run_is_its_result(tmp_path: Path, kind: str, seed: int) -> None:
    """Only the long ones make other changes in each kind, run in worktrees, and begin with uncommitted changes."""
    rng = random.Random(f"{kind} {seed}")
    made = awkward(kind, tmp_path, rng)
    if seed % 3 == 2:
        made = _in_worktree(made, tmp_path / "runs-in-worktrees" / "first" / "worktrees")
    if seed % 4 == 3 and not kind.startswith(("sparse", "line-ends")):  # whose `git add` also goes by the index
        write_files(made.workspace, random_changes(rng, _names(made), made.workspace))
    twins = [_twin(made, tmp_path / name) for name in ("applied", "patched")]
    was_clean = made.git("status", "--porcelain") == b""
    history = _history(tmp_path, made, rng)
    _require_export(history, made, tmp_path, was_clean=was_clean)
    _require_no_secret(history)
    last = history_of(history.run).states.last
    if _apply(history, twins[0]):
        assert _state(twins[0], tmp_path / "applied.git") == last
    _patch(history, twins[1])
    assert _state(twins[1], tmp_path / "patched.git") == last
    _require_lines(history)


def _in_worktree(made: Awkward, folder: Path) -> Awkward:
    """The workspace of a run with ``--worktree``."""
    root = add_run_worktree(folder, made.workspace, "", "first")
    below = made.workspace.relative_to(made.top)
    return Awkward(root.parents[len(below.parts) - 1] if below.parts else root, root, made.paths)


def _twin(made: Awkward, place: Path) -> Path:
    """The same workspace at another place."""
    shutil.copytree(made.top, place, symlinks=True)
    return place / made.workspace.relative_to(made.top)


def _history(folder: Path, made: Awkward, rng: random.Random) -> History:
    history = History(folder, {}, place=made.workspace)
    names = _names(made)
    for number in range(rng.randint(1, 4)):
        if rng.random() < 0.2:
            history.between(random_changes(rng, names, history.workspace))
        elif rng.random() < 0.3:
            history.copied(key := f"step.{number}.0")
            history.turn("writer", random_changes(rng, names), key)
            history.merged(key)
        else:
            history.turn(rng.choice(("writer", "tester")), random_changes(rng, names, history.workspace))
    history.ended()
    return history


def _names(made: Awkward) -> tuple[str, ...]:
    return (*(path for path in FILES if path != "link"), *made.paths, "new/file.txt", "src/new.py")


def _require_export(history: History, made: Awkward, folder: Path, *, was_clean: bool) -> None:
    def seen() -> tuple[bytes, bytes]:
        return made.git("status", "--porcelain"), made.git("ls-files", "--stage", "-v")

    before = seen()
    exported = _exported(history)
    assert seen() == before
    subjects = made.git("log", "--format=%s", f"{exported.base}..{exported.tip}").decode()
    assert not (was_clean and BEFORE in subjects)
    assert made.git("diff", "--name-status", made.added(folder), exported.tip) == b""


def _exported(history: History) -> Exported:
    recorded = history_of(history.run)
    return export_branch(recorded, "agents/run", *start_of(recorded, None))


def _require_no_secret(history: History) -> None:
    for git_dir in history_of(history.run).repositories():
        printed = (
            Snapshots(git_dir, Workspace(history.folder)).repository().run("cat-file", "--batch", "--batch-all-objects")
        )
        assert SECRET.encode() not in printed.stdout


def _apply(history: History, workspace: Path) -> bool:
    """Whether it could: a name that no role could have written is refused."""
    result = result_of(history_of(history.run))
    applied = apply_result(result, Workspace(workspace), history.folder / "applying", mark_conflicts=False)
    assert all(each.kind == "off limits" and set(each.path) & UNSAFE for each in applied.conflicts)
    return not applied.conflicts


def _patch(history: History, workspace: Path) -> None:
    patch = diff(history.run).patch
    if patch:
        file = history.folder / "whole.patch"
        file.write_bytes(patch)
        place = (f"--git-dir={history.run.snapshots_path}", f"--work-tree={workspace}")
        Awkward(workspace, workspace).git(*place, "apply", str(file))


def _state(workspace: Path, git_dir: Path) -> str:
    return Snapshots(git_dir, Workspace(workspace)).take()


def _require_lines(history: History) -> None:
    with line_history([history_of(history.run)]) as recorded:
        for path in ("a.txt", "src/b.py"):
            place = history.workspace / path
            content = place.read_bytes() if place.is_file() and not place.is_symlink() else b""
            lines = [origin.text for origin in recorded.origins(path)] if content else []
            assert len(lines) == len(content.removesuffix(b"\n").split(b"\n")) * bool(content)
