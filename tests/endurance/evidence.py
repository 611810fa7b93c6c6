"""What a run leaves behind, and how that differs from what an undisturbed one leaves."""

from __future__ import annotations

import hashlib
import json
import re
import stat
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.states import read_states
from codex_multi_role.workspace.manifest import MANIFEST, Manifest
from tests.support.recorded_steps import recorded_steps
from tests.support.teams import read

ENDING = ("status", "outcome", "reason", "exit_code")
NOT_COMPARED = {"__pycache__", ".pytest_cache", ".git"}
Git = Callable[..., subprocess.CompletedProcess[str]]
"""Asks git, in the workspace, what its arguments say."""
TURN_FOLDER = re.compile(r"turn_\d{3}")
GIT_QUESTIONS = {"status": ("status", "--porcelain"), "log": ("log", "--all", "--format=%s"), "fsck": ("fsck",)}


Evidence = Mapping[str, Mapping[str, object]]
"""What has to be the same whatever struck, in parts."""


def evidence_of(
    run: RunFolder, workspace: Path, exit_code: int, git: Git, racers: Collection[str] = ()
) -> dict[str, Mapping[str, object]]:
    """What a run left.

    ``ending``: of ``run.json`` and of the process. ``workspace``: by path the mode, and a digest of the bytes.
    ``repository``: what git says of the user's. ``journal``: the names of the recorded steps, by place.
    ``copies``: those of the workspace whose files are there, with their state.
    ``latest``, ``history``: of ``controller_state.json``, without turn numbers, since a turn that is taken again has
    another. ``states``: the last of the run and of each item, by unit.
    """
    record, state = run.record(), read(run.state_path)
    history = enumerate(state["history"], start=1)
    steps = recorded_steps(run.journal_path).items()
    return {
        "ending": {**{key: record[key] for key in ENDING}, "process": exit_code},
        "workspace": dict(_entries(workspace)),
        "repository": dict(_repository(workspace, run, git)) if (workspace / ".git").exists() else {},
        "copies": dict(_copies(run)),
        "journal": {f"{place}": name for place, name in steps if name.removesuffix(" turn") not in racers},
        "latest": {role: _without_numbers(handoff) for role, handoff in state["latest_json_by_role"].items()},
        "states": dict(_states(run)),
        "history": {f"{number}": (each["role"], _without_numbers(each["handoff"])) for number, each in history},
    }


def differences(expected: Evidence, found: Evidence, but: Collection[str] = ()) -> list[str]:
    """In words, what was ``found`` and not ``expected``, and what is lacking, in all parts ``but`` these."""
    return [
        f"{part} {where}: {mine!r} instead of {wanted!r}"
        for part in expected
        if part not in but
        for where, wanted, mine in _unequal(expected[part], found[part])
    ]


def _unequal(expected: Mapping[str, object], found: Mapping[str, object]) -> Iterator[tuple[str, object, object]]:
    for key in sorted({*expected, *found}):
        if expected.get(key) != found.get(key):
            yield key, expected.get(key), found.get(key)


def _states(run: RunFolder) -> Iterator[tuple[str, object]]:
    told = read_states(run)
    for each in [*filter(None, [told["run"]]), *told["items"]]:
        yield each["unit"] or "run", (each["state"], each["reason"])
    if told["run"] or told["items"]:
        yield "states.json", read(run.path / "states.json") == told


def _entries(workspace: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(workspace.rglob("*")):
        if NOT_COMPARED.isdisjoint(path.relative_to(workspace).parts):
            mode = stat.filemode(path.lstat().st_mode)
            content = hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else ""
            yield str(path.relative_to(workspace)), f"{mode} {content}".strip()


def _repository(workspace: Path, run: RunFolder, git: Git) -> Iterator[tuple[str, object]]:
    for name, arguments in GIT_QUESTIONS.items():
        yield name, _said(git(*arguments))
    worktrees = re.findall(r"^worktree (.*)$", _said(git("worktree", "list", "--porcelain")), re.MULTILINE)
    place = Manifest(run.worktrees_path).place
    yield "worktrees", sorted(each.replace(f"{place}/", "") for each in worktrees[1:])
    yield "locks", sorted(str(path.relative_to(workspace)) for path in (workspace / ".git").rglob("*.lock"))


def _copies(run: RunFolder) -> Iterator[tuple[str, object]]:
    """Also those that the run does not know.

    Read from the file, because `Manifest` resolves the path to a disk that only the run sees.
    """
    place, file = Manifest(run.worktrees_path).place, run.worktrees_path / MANIFEST
    known = {each["key"]: each for each in read(file)["copies"]} if file.exists() else {}
    for path in place.rglob("copy"):
        key = path.parent.relative_to(place).as_posix()
        yield key, known[key]["state"] if key in known and not known[key]["removed_at"] else "forgotten"


def _said(done: subprocess.CompletedProcess[str]) -> str:
    return f"{done.stdout}{done.stderr if done.returncode else ''}"


def _without_numbers(handoff: object) -> Any:
    return json.loads(TURN_FOLDER.sub("turn_nnn", json.dumps(handoff)))
