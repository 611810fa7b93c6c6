"""The layout of ``runs/<id>/``: where everything a run did lies, and how a run is found again.

run.json  controller_state.json  events.jsonl  catalog/  journal.sqlite  owner.json
<role>/events.jsonl  <role>/stderr.log  <role>/turn_<nnn>/…   (see turns.py)
tests/<nnn>/…                                                 (see the check ``tests``)
.codex/<role>/      the role's own CODEX_HOME, when no user login is needed
.snapshots/         the workspace's states, a private bare git repository
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from codex_multi_role.errors import RunNotFound, UsageError
from codex_multi_role.run_folder.atomic import make_folder, storage_errors, write_json, write_text

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
LATEST = "latest"


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_id = path.name
        self.record_path = path / "run.json"
        self.state_path = path / "controller_state.json"
        self.events_path = path / "events.jsonl"
        self.owner_path = path / "owner.json"
        self.journal_path = path / "journal.sqlite"
        self.catalog_path = path / "catalog"
        self.snapshots_path = path / ".snapshots"

    @classmethod
    def create(cls, runs_dir: Path, run_id: str | None = None) -> RunFolder:
        """Make a new run's folder and point ``latest`` at it. Raises `UsageError`, `StorageError`."""
        run_id = run_id or f"{datetime.now():%Y%m%d_%H%M%S}_{secrets.token_hex(4)}"
        if not RUN_ID.fullmatch(run_id) or run_id == LATEST:
            raise UsageError(
                f"'{run_id}' cannot be a run id", "Use letters, digits, '_', '-' and '.', and not 'latest'."
            )
        path = make_folder(runs_dir.resolve()) / run_id
        try:
            with storage_errors(path):
                path.mkdir(exist_ok=False)
        except Exception as error:
            if isinstance(error.__cause__, FileExistsError):
                raise UsageError(
                    f"the run {run_id} exists already in {runs_dir}",
                    f"`codex-multi-role resume {run_id}` goes on with it; another --run-id starts afresh.",
                ) from error
            raise
        folder = cls(path)
        folder._point_latest()
        write_text(path.parent / ".gitignore", "*\n")
        return folder

    @classmethod
    def find(cls, runs_dir: Path, reference: str) -> RunFolder:
        """The run that ``reference`` (an id, a unique prefix, or ``latest``) names. Raises `RunNotFound`."""
        if reference == LATEST:
            target = (runs_dir / LATEST).resolve()
            matches = [target] if (target / "run.json").is_file() else []
        else:
            runs = [folder.path for folder in list_runs(runs_dir)]
            matches = [run for run in runs if run.name == reference] or [
                run for run in runs if run.name.startswith(reference)
            ]
        if len(matches) == 1:
            return cls(matches[0])
        problem = f"{len(matches)} runs begin with" if matches else "no run goes by"
        raise RunNotFound(f"{problem} '{reference}' in {runs_dir}", "`codex-multi-role runs` lists them.")

    def _point_latest(self) -> None:
        link = self.path.parent / LATEST
        temporary = self.path.parent / f".latest.{secrets.token_hex(4)}"
        with storage_errors(link):
            temporary.symlink_to(self.run_id)
            temporary.replace(link)

    def role_folder(self, role: str) -> Path:
        return make_folder(self.path / role)

    def codex_home(self, role: str) -> Path:
        """The role's own CODEX_HOME: it holds the thread, so it lives as long as the run."""
        return make_folder(self.path / ".codex" / role)

    def new_tests_folder(self) -> Path:
        """The next ``tests/<nnn>``; its name is the number."""
        return new_numbered(make_folder(self.path / "tests"), "")

    def record(self) -> dict[str, Any]:
        """``run.json``. Raises `RunNotFound` when it cannot be read."""
        try:
            record: dict[str, Any] = json.loads(self.record_path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunNotFound(f"{self.record_path} cannot be read: {error}") from error
        return record

    def write_record(self, record: Mapping[str, Any]) -> None:
        write_json(self.record_path, record)


def new_numbered(parent: Path, prefix: str) -> Path:
    """Make ``<parent>/<prefix><nnn>`` with the number after the highest there; never one that exists."""
    numbers = [int(name) for path in parent.glob(f"{prefix}*") if (name := path.name[len(prefix) :]).isdigit()]
    path = parent / f"{prefix}{max(numbers, default=0) + 1:03d}"
    with storage_errors(path):
        path.mkdir()
    return path


def list_runs(runs_dir: Path) -> list[RunFolder]:
    """All runs below ``runs_dir``, oldest first (by the time in ``run.json``)."""
    folders = [RunFolder(path.parent) for path in runs_dir.glob("*/run.json") if not path.parent.is_symlink()]
    return sorted(folders, key=lambda folder: (folder.record_path.parent.stat().st_ctime, folder.run_id))
