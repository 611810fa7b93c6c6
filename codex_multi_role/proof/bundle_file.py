"""The file of a bundle: a zip archive with the same bytes for the same run, and how one of anybody is unpacked.

claims.json        what is claimed (see claims.py)
recording.ndjson   the model's answers, people's decisions and the outcome (see playbook/recording.py)
states.pack        every state of the workspace, as a git pack
team/…             catalog, roles, flows and settings, as the run kept them
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from codex_multi_role.dataclass import dataclass
from codex_multi_role.errors import UsageError
from codex_multi_role.host.atomic import make_folder, replacing, storage_errors
from codex_multi_role.playbook.recording import Recording
from codex_multi_role.playbook.request import first_problem
from codex_multi_role.proof.claims import Claims

CLAIMS, RECORDING, STATES, TEAM = "claims.json", "recording.ndjson", "states.pack", "team/"
MAX_FILES, MAX_BYTES = 10_000, 1024 * 1024 * 1024
FIRST_DAY_OF_ZIP = (1980, 1, 1, 0, 0, 0)
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)
"""What `zipfile` raises for an archive that is damaged, encrypted or packed in another way."""


@dataclass(frozen=True)
class Bundle:
    """An unpacked bundle. ``team``: the catalog file."""

    claims: Claims
    recording: Recording
    states: bytes
    team: Path


def write_bundle(path: Path, files: Mapping[str, bytes]) -> None:
    """Write ``files`` by their names in the archive, in one step. Raises `StorageError`."""
    with replacing(path) as file, storage_errors(path), zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            info = zipfile.ZipInfo(name, FIRST_DAY_OF_ZIP)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system, info.external_attr = 3, 0o644 << 16  # the same on every platform
            archive.writestr(info, content)


def read_bundle(path: Path, folder: Path) -> Bundle:
    """Unpack the bundle ``path`` into the new ``folder``, and nowhere else.

    The recording gets the name of ``folder``. Raises `UsageError` for anything but a whole bundle of this version.
    """
    with _no_bundle(path):
        with zipfile.ZipFile(path) as archive:
            files = dict(_read(archive))
        missing = [name for name in (CLAIMS, RECORDING, STATES) if name not in files]
        if missing:
            raise ValueError(f"it has no {', no '.join(missing)}")
        claims = Claims.model_validate_json(files[CLAIMS])
        team = TEAM + claims.catalog_file
        if team not in files:
            raise ValueError(f"it has no {team}")
    for name in (name for name in files if name.startswith(TEAM)):
        _write(folder / name, files[name])
    recording = folder / f"{folder.name}.ndjson"
    _write(recording, files[RECORDING])
    with _no_bundle(path):
        return Bundle(claims, Recording.load(recording), files[STATES], folder / team)


@contextmanager
def _no_bundle(path: Path) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise UsageError(f"{path} is not a bundle: {CLAIMS}: {first_problem(error)}", HINT) from error
    except BROKEN as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error) or "damaged"
        raise UsageError(f"{path} is not a bundle: {reason}", HINT) from error


HINT = "`codex-multi-role bundle RUN -o FILE` writes one."


def _read(archive: zipfile.ZipFile) -> Iterable[tuple[str, bytes]]:
    """Every file of the archive. Raises ValueError for names that a bundle does not have, and if it is too large."""
    infos = archive.infolist()
    if len(infos) > MAX_FILES or sum(info.file_size for info in infos) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_FILES} files or {MAX_BYTES // 1024**3} GiB")
    seen: set[str] = set()
    for info in infos:
        name = info.filename
        if not (name in (CLAIMS, RECORDING, STATES) or _is_of_team(name)):
            raise ValueError(f"it has a file that does not belong there: {name}")
        if name in seen:
            raise ValueError(f"it has two files {name}")
        seen.add(name)
        yield name, archive.read(info)


def _is_of_team(name: str) -> bool:
    """Whether it is a file below `TEAM`, spelled in the only way that leads nowhere else."""
    plain = PurePosixPath(name).as_posix() == name and not any(each in name for each in "\\:\0")
    return plain and name.startswith(TEAM) and ".." not in PurePosixPath(name).parts


def _write(path: Path, content: bytes) -> None:
    make_folder(path.parent)
    with storage_errors(path), path.open("xb") as file:
        file.write(content)
