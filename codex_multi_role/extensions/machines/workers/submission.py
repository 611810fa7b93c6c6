"""Submit runs: what a worker needs goes into the store and the database, and nothing of this machine is left out."""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.extensions.machines.store.workspace_sources import WorkspaceSource, bundle_workspace
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.run_requests import DEFAULT_QUEUE, RunRequest
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.host.unpacking import UnpackBudget, UnpackingRefused, unpack_tar, write_files
from codex_multi_role.lifecycle.definitions import Definitions, load_definitions
from codex_multi_role.lifecycle.kept_definitions import keep_definitions
from codex_multi_role.option import Use
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunOptions, options_with

OF_THIS_MACHINE = ("workspace", "roles", "runs_dir", "run_id", "playbook", "prices", "database_url")
"""Options that the worker sets by itself."""
DEFINITIONS = UnpackBudget(max_bytes=256 * 1024 * 1024, max_entries=20_000, max_depth=50, max_seconds=60.0)
NOT_ON_WORKERS = frozenset(options_with(Use.LOCAL)).difference(OF_THIS_MACHINE)


def open_store(database: Database, address: str | None, default: str) -> Store:
    """The store of the database's runs; the first ``address``, or else ``default``, is the one for all machines.

    Raises `UsageError` if another was chosen, `StorageError` if it cannot be used or is another folder on this machine.
    """
    known = database.setting("store")
    if known is None or address:
        wanted = Store.open(address or default)
        known = database.set_first("store", wanted.address)
        if address and wanted.address != known:
            message = f"the runs of {database} are saved in {known}, not in {wanted.address}"
            raise UsageError(message, "Leave --store out; the database knows it.")
    return open_known_store(database, known)


def open_known_store(database: Database, address: str) -> Store:
    """The store of the database's runs, which is at this address. Raises `StorageError` if it is another one here."""
    store = Store.open(address)
    if database.set_first("store_identity", store.identity) != store.identity:
        raise StorageError(
            f"{address} on this machine is not the store of {database}, but another one at the same address",
            "Mount the shared folder at that place, or use an address that all machines can reach.",
        )
    return store


def archive_definitions(definitions: Definitions, store: Store) -> Json:
    """Put a run's catalog, flows, playbook, settings and skills into the store, once for all runs with the same files.

    Returns ``{archive, catalog, playbook}``: its name, and paths in it.
    """
    with tempfile.TemporaryDirectory(prefix="codex-multi-role-") as scratch:
        folder = RunFolder(Path(scratch))
        catalog = keep_definitions(definitions, folder)
        playbook = definitions.playbook and f"{Path(catalog).parent}/playbooks/{definitions.playbook.source.name}"
        return {"archive": store.put(_packed(folder.catalog_path)), "catalog": catalog, "playbook": playbook}


def unpack_definitions(archive: Json, store: Store, folder: Path) -> tuple[Path, Path | None]:
    """Unpack into ``folder`` what `archive_definitions` returned; returns the catalog and the playbook."""
    try:
        write_files(folder, unpack_tar(store.get(archive["archive"]), DEFINITIONS))
    except UnpackingRefused as error:
        raise StorageError(f"the definitions {archive['archive']} in {store.address} are damaged: {error}") from error
    return folder / archive["catalog"], folder / archive["playbook"] if archive["playbook"] else None


def _packed(folder: Path) -> bytes:
    """The same files always give the same bytes, so that runs with the same definitions share one archive."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as packed:  # noqa: TID251 - it packs
        for path in sorted(folder.rglob("*")):
            packed.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=_without_origin)
    return content.getvalue()


def _without_origin(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def require_portable(options: Mapping[str, Any], set_by_worker: Collection[str] = ()) -> None:
    """Raise `UsageError` for `RunOptions` fields that mean nothing on another machine, or that contain a secret.

    Those ``set_by_worker`` are allowed: they are left out of the queue.
    """
    for name in options:
        if name in {*NOT_ON_WORKERS, *OF_THIS_MACHINE} - {*set_by_worker}:
            message = f"--{name.replace('_', '-')} cannot be used for a run on workers"
            raise UsageError(message, "Leave it out, also in settings files and environment variables.")
    require_no_secret({name: value for name, value in options.items() if name not in set_by_worker})


def require_of_no_machine(record: Mapping[str, Any]) -> None:
    """As `require_portable`, for options as `RunOptions.as_record` has them."""
    usual = RunOptions().as_record()
    require_portable({name: each for name, each in record.items() if each != usual.get(name)}, OF_THIS_MACHINE)


def require_no_secret(values: Mapping[str, Any]) -> None:
    """Raise `UsageError` if one of the values contains that of a secret variable of this process."""
    redact = Redactor(os.environ)
    for name, value in values.items():
        text = json.dumps(value, ensure_ascii=False, default=str)
        if redact(text) != text:
            hint = "Queues keep it as it is. Let the workers' environment provide the secret instead."
            raise UsageError(f'"{name}" contains the value of a secret environment variable', hint)


@dataclass
class Submitter:
    """Prepares runs for the queue. Runs with the same definitions or workspace share them in the store."""

    store: Store
    _definitions: dict[str, Json] = field(default_factory=dict)
    _workspaces: dict[Path, WorkspaceSource] = field(default_factory=dict)

    def request(
        self,
        options: RunOptions,
        *,
        repository: WorkspaceSource | None = None,
        queue: str = DEFAULT_QUEUE,
        **place: Any,  # noqa: ANN401 - other fields of `RunRequest`
    ) -> RunRequest:
        """The request for a run with these options, checked as `run` does. Raises what loading its definitions raises.

        ``repository``: where its workspace is cloned from, instead of the folder in the options.
        """
        require_of_no_machine(options.as_record())
        return RunRequest(
            run_id=options.place.run_id or "",
            options={name: value for name, value in options.as_record().items() if name not in OF_THIS_MACHINE},
            definitions=self._archived(options),
            workspace=(repository or self._bundled(options.place.workspace)).model_dump(mode="json"),
            queue=queue,
            **place,
        )

    def _archived(self, options: RunOptions) -> Json:
        places = map(str, (options.place.roles, options.limits.prices, options.place.workspace))
        key = json.dumps([options.flow, options.answers.playbook, *places])
        if key not in self._definitions:
            self._definitions[key] = archive_definitions(load_definitions(options), self.store)
        return self._definitions[key]

    def _bundled(self, workspace: Path) -> WorkspaceSource:
        root = workspace.resolve()
        if root not in self._workspaces:
            self._workspaces[root] = bundle_workspace(self.store, root).source
        return self._workspaces[root]
