"""A run's YAML in the store: catalog, flows, playbook, settings and skills. Runs that use the same files share them."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path

from codex_multi_role.errors import StorageError
from codex_multi_role.host.unpacking import UnpackBudget, UnpackingRefused, unpack_tar, write_files
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.lifecycle.kept_definitions import keep_definitions
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.store import Store

BUDGET = UnpackBudget(max_bytes=256 * 1024 * 1024, max_entries=20_000, max_depth=50, max_seconds=60.0)


def archive_definitions(definitions: Definitions, store: Store) -> Json:
    """Put the files into the store; returns ``{archive, catalog, playbook}``: its name, and paths in it."""
    with tempfile.TemporaryDirectory(prefix="codex-multi-role-") as scratch:
        folder = RunFolder(Path(scratch))
        catalog = keep_definitions(definitions, folder)
        playbook = definitions.playbook and f"{Path(catalog).parent}/playbooks/{definitions.playbook.source.name}"
        return {"archive": store.put(_packed(folder.catalog_path)), "catalog": catalog, "playbook": playbook}


def unpack_definitions(archive: Json, store: Store, folder: Path) -> tuple[Path, Path | None]:
    """Unpack into ``folder`` what `archive_definitions` returned; returns the catalog and the playbook."""
    try:
        write_files(folder, unpack_tar(store.get(archive["archive"]), BUDGET))
    except UnpackingRefused as error:
        raise StorageError(f"the definitions {archive['archive']} in {store.address} are damaged: {error}") from error
    return folder / archive["catalog"], folder / archive["playbook"] if archive["playbook"] else None


def _packed(folder: Path) -> bytes:
    """The same files always give the same bytes, so that runs with the same definitions share one archive."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as packed:
        for path in sorted(folder.rglob("*")):
            packed.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=_without_origin)
    return content.getvalue()


def _without_origin(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
