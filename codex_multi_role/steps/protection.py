"""Protected files: what a role changed although it must not is restored and reported."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.host.atomic import storage_errors, write_bytes, write_json
from codex_multi_role.host.settings_files import holds_settings, without_settings
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import TurnFolder
from codex_multi_role.run_folder.events import ProtectedRestored
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.workspace import ProtectedFiles, RestoredFiles, created, is_repository, unescaped, write_inside

TOLD = "protected_restored"
"""The field of a handoff, of a check's result and of ``turn.json`` with the restored paths."""
GOOD = ("passed", "ok", "no tests")
SHOWN_PATHS = 20
HEAD = "HEAD"
"""Without it git does not consider a folder a repository, whose ``config`` it would obey."""


def _files(run: RunResources, globs: Iterable[str]) -> ProtectedFiles:
    return ProtectedFiles(run.snapshots, run.workspace, tuple(globs))


def _remove_steering(run: RunResources) -> RestoredFiles:
    """Remove what would steer the next run and did not exist when this one began.

    Of a ``pyproject.toml`` that is its settings, as long as the rest can stay as it is.
    """
    root = run.workspace.root
    found = created(root, run.settings.steering_absent, run.settings.steering_present, run.workspace.forbidden)
    if HEAD in found and not is_repository(root):
        found.remove(HEAD)
    if not found:
        return RestoredFiles()
    with storage_errors(root):
        projects = [name for name in map(unescaped, found) if holds_settings(root / name)]
        rest = {name: without_settings((root / name).read_bytes()) for name in projects}
        removed = _files(run, found).remove()
        for name, content in rest.items():
            if content is not None:
                write_inside(run.workspace, name, content)
    return removed


@dataclass(frozen=True)
class ProtectedState:
    """The files that a turn must not change, and their ``tree`` when it began; without files nothing is protected."""

    files: ProtectedFiles | None = None
    tree: str = ""

    @classmethod
    def of(cls, run: RunResources, role: RoleSpec, first_try: TurnFolder | None) -> ProtectedState:
        """The state for a turn about to start. A repeated turn uses the state that its first attempt found."""
        globs = (*run.settings.protect, *role.protect)
        if not globs:
            return cls()
        files = _files(run, globs)
        known = str(first_try.result().get("protected", "")) if first_try else ""
        return cls(files, known or files.take())

    def put_back(self, run: RunResources, instance: str, folder: TurnFolder) -> list[str]:
        """Undo the turn's changes to the files, keep them as ``protected.patch``, and report. Returns the paths."""
        undone = _put_back(run, self, folder.protected_path, instance, folder.number)
        return list(undone.paths)


def protected_among(run: RunResources, role: RoleSpec, paths: Iterable[str]) -> set[str]:
    """Those of the ``paths`` submitted by a role that it must not change."""
    globs = (*run.settings.protect, *role.protect)
    return _files(run, globs).among(paths) if globs else set()


def checked(run: RunResources, folder: Path, check: Callable[[], Json], said: Collection[str], role: str) -> Json:
    """Run ``check`` with the flow's protected files as the run found them; ``folder`` has its artifacts.

    The files are restored before and after it. A good result does not count if one had to be rewritten afterwards. The
    result and ``result.json`` list all restored paths, including those ``said`` by the turn before.
    """
    protect = run.settings.protect
    first = ProtectedState(_files(run, protect) if protect else None, run.settings.first_protected)
    before = _put_back(run, first, folder / "protected.patch", role)
    result = check()
    during = _put_back(run, first, folder / "protected_during.patch", role)
    if during.damaged and result["status"] in GOOD:
        reason = f"protected files were changed while it ran: {', '.join(during.damaged[:SHOWN_PATHS])}"
        result = {**result, "status": "failed", "reason": reason}
    if paths := sorted({*said, *before.paths, *during.paths}):
        result = {**result, TOLD: paths}
        write_json(folder / "result.json", run.services.folder.redact.within(result))
    return result


def _put_back(run: RunResources, state: ProtectedState, patch: Path, role: str, turn: int = 0) -> RestoredFiles:
    with run.progress.workspace_lock:
        undone = state.files.put_back(state.tree) if state.files else RestoredFiles()
        undone |= _remove_steering(run)
    if undone.paths:
        write_bytes(patch, undone.patch)
        run.services.events.publish(ProtectedRestored(role, turn, list(undone.paths[:SHOWN_PATHS])))
    return undone
