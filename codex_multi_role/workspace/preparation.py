"""What a fresh worktree or copy of the workspace needs before anybody works in it: copied files, and a setup command.

Neither belongs to the result: what git does not track after the setup is in no snapshot, patch or merge, and files
that it does track are restored.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock

from codex_multi_role.errors import SetupFailed, StorageError
from codex_multi_role.host.atomic import make_folder, storage_errors, write_text
from codex_multi_role.host.redaction import without_secrets
from codex_multi_role.workspace.commands import CommandResult, Sandbox, run_command
from codex_multi_role.workspace.file_copies import (
    copied_paths,
    copy_if_absent,
    digest_of,
    make_parents,
    move_file,
    moved_files,
)
from codex_multi_role.workspace.paths import Workspace
from codex_multi_role.workspace.removal import delete_folder
from codex_multi_role.workspace.snapshots import Snapshots

STORE = ".setup"
"""The folder, among the files of a run's copies, with what its setups have made."""
SETUP_OUTPUT = "setup_output.txt"
SHOWN_LINES = 5
SHOWN_FILES = 5
OF_ANOTHER_PYTHON = ("VIRTUAL_ENV", "PYTHONHOME")
SETUP_HINT = (
    "The whole output is in {}. It ran in the sandbox of the tests, without network (--no-test-sandbox lifts that). "
    "Fix what it needs and resume the run, or correct workspace.setup and start another run."
)


@dataclass(frozen=True)
class Needs:
    """``copy``: globs of files and folders of the user's workspace. ``setup``: a shell command, or empty."""

    copy: tuple[str, ...] = ()
    setup: str = ""

    def __bool__(self) -> bool:
        return bool(self.copy or self.setup)


@dataclass(frozen=True)
class Preparation:
    """Prepares the worktrees and copies of one run.

    ``source``: the user's workspace. ``folder``: where the results of setups are kept while the run works, if it
    ``reuses`` them. ``deadline_seconds``: for one setup. Threads may share it.
    """

    needs: Needs
    source: Workspace
    folder: Path
    variables: Mapping[str, str]
    sandbox: Sandbox
    deadline_seconds: float
    redact: Callable[[str], str]
    reuses: bool = True
    stopping: Event = field(default_factory=Event)
    _one_setup: Lock = field(default_factory=Lock)
    _warned: set[str] = field(default_factory=set)

    def prepare(self, workspace: Workspace, snapshots: Snapshots, place: Path) -> list[str]:
        """Prepare ``workspace``, unless that has been done; returns new warnings.

        ``place`` receives the setup's output.

        Raises UsageError, SetupFailed, StorageError, RunInterrupted.
        """
        if snapshots.is_prepared:
            return []
        root, base = workspace.root, snapshots.latest()
        with storage_errors(root):
            warnings = self._copy(root)
            snapshots.leave_out(snapshots.untracked())
            if self.needs.setup:
                self._set_up(root, base, snapshots, place / SETUP_OUTPUT)
        warnings += _restored(snapshots, base)
        snapshots.mark_prepared()
        new = [each for each in warnings if each not in self._warned]
        self._warned.update(new)
        return new

    def _copy(self, root: Path) -> list[str]:
        found = copied_paths(self.source, self.needs.copy)
        for path in dict.fromkeys(path for paths in found.values() for path in paths):
            if make_parents(root, path):
                copy_if_absent(self.source.root / path, root / path, self.source.forbidden)
        return [f"workspace.copy: {each} is not in {self.source.root}" for each, paths in found.items() if not paths]

    def _set_up(self, root: Path, base: str, snapshots: Snapshots, output: Path) -> None:
        """Run the setup, or copy what it made for the same files."""
        copied = snapshots.untracked()
        same = json.dumps([self.needs.setup, base, digest_of(root, copied)])
        stored = self.folder / STORE / hashlib.sha256(same.encode()).hexdigest()
        with self._one_setup:  # copies made at the same time wait for the first one
            is_stored = stored.is_dir()
            if not is_stored:
                self._run(root, output)
                made = snapshots.untracked()
                snapshots.leave_out(made)
                if self.reuses:
                    _store(root, made, stored)
        if is_stored:
            _copy_stored(stored, root)
            snapshots.leave_out(snapshots.untracked())
            told = f"Nothing was run: {stored.name} has what the setup made for the same files.\n"
            write_text(make_folder(output.parent) / output.name, told)

    def _run(self, root: Path, output: Path) -> None:
        environment = without_secrets(self.variables)
        kept = {name: value for name, value in environment.items() if name not in OF_ANOTHER_PYTHON}
        with tempfile.TemporaryDirectory(prefix="setup-", ignore_cleanup_errors=True) as name:
            scratch = Path(name).resolve()
            argv = self.sandbox(["/bin/sh", "-c", self.needs.setup], scratch)
            variables = {**kept, "TMPDIR": str(scratch)}
            ran = run_command(argv, root, variables, self.deadline_seconds, stopping=self.stopping)
        text = self.redact(ran.output)
        write_text(make_folder(output.parent) / output.name, text)
        if ran.timed_out or ran.returncode:
            raise SetupFailed(self.redact(_failure(ran, self.needs.setup, text)), SETUP_HINT.format(output))


def forget_setups(folder: Path) -> None:
    """Delete what setups made for later copies in ``folder``; the worktrees and copies keep what they have."""
    with suppress(StorageError):  # a run ends as it does
        delete_folder(folder / STORE)


def _failure(ran: CommandResult, command: str, text: str) -> str:
    how = f"took longer than {ran.seconds:.0f} s" if ran.timed_out else f"failed with exit code {ran.returncode}"
    last = "\n".join(text.strip().splitlines()[-SHOWN_LINES:]) or "no output"
    return f"the setup `{command}` {how}:\n{last}"


def _restored(snapshots: Snapshots, base: str) -> list[str]:
    """Restore the files that the setup changed although git tracks them."""
    now = snapshots.take()
    if now == base:
        return []
    changed = snapshots.changed_paths(base, now)
    snapshots.restore(base)
    more = f" and {len(changed) - SHOWN_FILES} more" if len(changed) > SHOWN_FILES else ""
    return [f"the setup changed files that git tracks; they were restored: {', '.join(changed[:SHOWN_FILES])}{more}"]


def _store(root: Path, made: list[str], stored: Path) -> None:
    """Keep ``made`` for copies that are the same otherwise; not if a program in it only works in ``root``."""
    moved = moved_files(root, made)
    if moved is None:
        return
    delete_folder(unfinished := stored.with_name(f"{stored.name}.tmp"))
    (unfinished / "files").mkdir(parents=True)
    for path in made:
        if make_parents(unfinished / "files", path):
            copy_if_absent(root / path, unfinished / "files" / path)
    (unfinished / "made.json").write_text(json.dumps({"root": str(root), "paths": made, "moved": moved}))
    unfinished.rename(stored)


def _copy_stored(stored: Path, root: Path) -> None:
    made = json.loads((stored / "made.json").read_text())
    for path in made["paths"]:
        place = root / path
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        if make_parents(root, path):
            copy_if_absent(stored / "files" / path, place)
    for path in made["moved"]:
        move_file(root / path, Path(made["root"]), root)
