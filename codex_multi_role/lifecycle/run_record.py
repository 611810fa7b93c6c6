"""What a run is and what it has produced so far, as each session writes it.

``run.json``: the run, its end and its totals. ``controller_state.json``: the latest handoff of every role, and all
handoffs in order.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from codex_multi_role.errors import Ending, RunStatus
from codex_multi_role.flow import FlowState
from codex_multi_role.flow.result_reads import uses_cycles
from codex_multi_role.host.atomic import write_json, write_text
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.lifecycle.own_records import remember
from codex_multi_role.lifecycle.steering import Steering
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder, TurnFolder, totals_of
from codex_multi_role.run_folder.events import RunEnded, RunStarted, now
from codex_multi_role.run_folder.folder import RECORD_SCHEMA
from codex_multi_role.run_options import RunReport, limits_in, recorded_report
from codex_multi_role.version import __version__
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.repository import Repository

MOUNT_POINTS = (".git", ".codex", ".agents", ".aws")
"""The folders that Codex's sandbox creates in a workspace to protect these names from being written."""


@dataclass
class RunRecord:
    """The record of one session. ``earlier``: that of the previous session; ``forked_from`` as in `Session`."""

    definitions: Definitions
    folder: RunFolder
    first_catalog_file: str
    earlier: Mapping[str, Any] | None
    forked_from: Mapping[str, Any] | None

    def __post_init__(self) -> None:
        self.forked_from = self.forked_from or (self.earlier or {}).get("forked_from")
        self._fields = self._first()
        self.steering = Steering.of(self.definitions, self.roles_source, self.folder.path)
        self._fields |= self.steering.as_json()
        remember(self._fields, self.folder)

    @property
    def absent_at_start(self) -> list[str]:
        """Those of `MOUNT_POINTS` that the workspace did not have when the run started."""
        return list(self._fields["absent_at_start"])

    def assume_absent_since_kill(self) -> None:
        """Count what was absent before a killed session as still absent: its turn may have created what steers runs."""
        self.steering = self.steering.since(self.earlier or {})
        self._fields |= self.steering.as_json()

    def prepared(self) -> None:
        """Count what the workspace was prepared with as present from the start."""
        self.steering = Steering.of(self.definitions, self.roles_source, self.folder.path)
        self._fields |= self.steering.as_json()
        self.write()

    def note_uncommitted(self) -> None:
        """Record, for `export`, which files differ from the commit that the run starts from."""
        repository, root = self._fields["repository"], self.definitions.workspace
        if repository is None or self.earlier is not None or self.forked_from:
            return
        if found := Repository.around(root):
            paths = found.uncommitted(self.folder.path.parent, root)
            workspace = Workspace.of_run(root, self.folder.path)
            repository["uncommitted"] = Snapshots(self.folder.snapshots_path, workspace).keep(paths)

    @property
    def worked_before(self) -> float:
        """The seconds of earlier sessions. A killed session counts up to its latest turn."""
        return float(self._earlier_totals["seconds"])

    @cached_property
    def _earlier_totals(self) -> Mapping[str, Any]:
        totals = (self.earlier or {}).get("totals", {})
        return totals_of(self.folder, float(totals.get("seconds", 0.0)))

    @property
    def roles_source(self) -> Path:
        """The catalog file that people edit; the run uses a copy of it."""
        return Path(self._fields["roles_source"])

    @property
    def catalog_file(self) -> str:
        """The copy that the run uses, relative to its ``catalog/``."""
        return str(self._fields["catalog_file"])

    @property
    def wider_rights(self) -> dict[str, list[str]]:
        """The rights, by role and key, that the previous session refused and that apply from this session on."""
        return dict((self.earlier or {}).get("wider_rights", {}))

    def reloaded(self, catalog_file: str, wider_rights: dict[str, list[str]]) -> None:
        """Record other YAML in ``catalog/`` as the run's from now on; ``wider_rights`` wait until the run is resumed.

        Raises `StorageError`.
        """
        self._fields |= {"catalog_file": catalog_file, "wider_rights": wider_rights}
        remember(self._fields, self.folder)
        self.write()

    def write(self) -> None:
        """Raises `StorageError`."""
        self.folder.write_record(self._fields)

    def close(self, ending: Ending, seconds: float, found: Json) -> RunReport:
        """Write how the run ended, then report it. ``seconds``: the time worked on it. Raises `StorageError`.

        ``found``: the ``result`` as in `run_result`, and what `changed_files` returns.
        """
        self._fields |= {name: each for name, each in vars(ending).items() if name != "details"}
        self._fields |= {"ended_at": now(), "resets_at": ending.resets_at or None, **found}
        self._fields["totals"] = totals_of(self.folder, seconds)
        if ending.details:
            write_text(self.folder.path / "traceback.txt", self.folder.redact(ending.details))
        self.write()
        return recorded_report(self.folder.path, self._fields, self.folder.complete(ending.hint))

    def _first(self) -> dict[str, Any]:
        definitions, options = self.definitions, self.definitions.options
        earlier = self.earlier or {}
        absent = [name for name in MOUNT_POINTS if not os.path.lexists(definitions.workspace / name)]
        return {
            "run_id": self.folder.run_id,
            "goal": options.goal,
            "flow": definitions.flow.name,
            "inputs": dict(definitions.inputs),
            "status": RunStatus.RUNNING,
            "outcome": "",
            "reason": "",
            "exit_code": None,
            "forked_from": self.forked_from,
            "started_at": earlier.get("started_at") or now(),
            "resumed_at": [*earlier.get("resumed_at", []), now()] if earlier else [],
            "ended_at": None,
            "resets_at": None,
            "result": None,
            "files": None,
            "schema": RECORD_SCHEMA,
            "versions": {"codex_multi_role": __version__, "python": platform.python_version()},
            "workspace": str(definitions.workspace),
            **({"source_workspace": str(definitions.source_workspace)} if options.place.worktree else {}),
            "workspace_inode": definitions.workspace.stat().st_ino,
            "repository": self._repository(),
            "absent_at_start": earlier.get("absent_at_start", absent),
            "playbook": definitions.playbook.name if definitions.playbook else None,
            "playbook_file": definitions.playbook.source.name if definitions.playbook else None,
            "recording": definitions.stand_in.name if definitions.stand_in else None,
            "catalog_file": self.first_catalog_file,
            "roles_source": str(self._edited_source(earlier)),
            "options": options.as_record(),
            "totals": earlier.get("totals", {}),
        }

    def _repository(self) -> dict[str, str] | None:
        """``{top, below, commit, branch, uncommitted}`` of the repository around the workspace, where `export` starts.

        For a fork, whose workspace is in none, that of the run it was forked from. A resumed run keeps its own, at its
        current place.
        """
        if self.earlier is not None:
            return self._moved_repository(self.earlier.get("repository"))
        if self.forked_from:
            origin = RunFolder(self.folder.path.parent / self.forked_from["run_id"])
            return dict(origin.record().get("repository") or {}) or None
        root = self.definitions.source_workspace
        found = Repository.around(root) if self.definitions.changes_workspace else None
        if found is None:
            return None
        return {**_place_in(found, root), "commit": found.checked_out(), "branch": found.branch()}

    def _moved_repository(self, recorded: dict[str, str] | None) -> dict[str, str] | None:
        """``recorded`` at its new place, if the run now works in another clone that has the commit it started from."""
        root = self.definitions.workspace
        if (
            self.definitions.options.place.worktree
            or not recorded
            or not recorded["commit"]
            or root.is_relative_to(recorded["top"])
        ):
            return recorded
        if (found := Repository.around(root)) is None or not found.has(recorded["commit"]):
            return recorded
        return {**recorded, **_place_in(found, root)}

    def _edited_source(self, earlier: Mapping[str, Any]) -> Path:
        """The catalog file from which the run's copy, or that of the run it was forked from, was made."""
        source = self.definitions.catalog.source.resolve()
        copies, known = self.folder.catalog_path, earlier
        if self.forked_from and not earlier:
            origin = RunFolder(self.folder.path.parent / self.forked_from["run_id"])
            copies, known = origin.catalog_path, origin.record()
        if not source.is_relative_to(copies.resolve()):
            return source
        recorded, place = Path(known.get("roles_source", source)), known.get("source_workspace", known["workspace"])
        if earlier and recorded.is_relative_to(place):  # in the workspace, which may be at another place now
            moved = self.definitions.source_workspace / recorded.relative_to(place)
            return moved if moved.exists() else recorded
        return recorded

    def started(self) -> RunStarted:
        definitions, options = self.definitions, self.definitions.options
        return RunStarted(
            run_id=self.folder.run_id,
            goal=options.goal,
            flow=definitions.flow.name,
            cycles=options.cycles if uses_cycles(definitions.flow) else 0,
            roles=[role.name for role in definitions.roles],
            workspace=str(definitions.workspace),
            folder=str(self.folder.path),
            playbook=self._fields["playbook"],
            resumed=self.earlier is not None,
            steps=[step.id for step in definitions.flow.steps],
            limits=limits_in(vars(options.limits)),
            worked_seconds=self.worked_before,
            earlier_cost=self._earlier_totals["cost"],
            python={} if options.place.worktree and definitions.needs.setup else definitions.python.as_json(),
        )


def _place_in(repository: Repository, root: Path) -> dict[str, str]:
    below = root.relative_to(repository.top).as_posix()
    return {"top": str(repository.top), "below": "" if below == "." else below}


def ended(report: RunReport, tree: str) -> RunEnded:
    return RunEnded(
        status=report.status,
        outcome=report.outcome,
        reason=report.reason,
        exit_code=report.exit_code,
        totals=dict(report.totals),
        folder=str(report.folder),
        result=dict(report.result or {}),
        workspace=tree,
    )


def write_state(folder: RunFolder, state: FlowState) -> None:
    """Write the file, unless ``state`` is from a replay that was cut short and knows less than the file.

    Raises `StorageError`.
    """
    if len(state.history) < _recorded_entries(folder):
        return
    history = [
        {
            "role": entry.role,
            "turn": entry.turn,
            "handoff": TurnFolder.of(folder, entry.instance, entry.turn).handoff(),
        }
        for entry in state.history
    ]
    latest = {entry["role"]: entry["handoff"] for entry in history}
    record = {"goal": state.goal, "latest_json_by_role": latest, "history": history}
    write_json(folder.state_path, record)


def _recorded_entries(folder: RunFolder) -> int:
    """The length of the history in the file; 0 if it cannot be read."""
    try:
        return len(json.loads(folder.state_path.read_text(encoding="utf-8"))["history"])
    except (OSError, ValueError, LookupError, TypeError):
        return 0
