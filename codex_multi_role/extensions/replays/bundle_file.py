"""The file of a bundle: a zip archive with the same bytes for the same run, and how one of anybody is unpacked.

claims.json        what is claimed (see claims.py)
recording.ndjson   the model's answers, people's decisions and the outcome (see extensions/replays/recording.py)
states.pack        every state of the workspace, as a git pack
team/…             catalog, roles, flows and settings, as the run kept them
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays.claims import Claims
from codex_multi_role.extensions.replays.recording import Recording
from codex_multi_role.host.atomic import replacing, storage_errors
from codex_multi_role.host.unpacking import Charges, UnpackBudget, UnpackingRefused, unpack_zip, write_files
from codex_multi_role.playbook.request import first_problem

CLAIMS, RECORDING, STATES, TEAM = "claims.json", "recording.ndjson", "states.pack", "team/"
PARTS = (CLAIMS, RECORDING, STATES)
BUDGET = UnpackBudget(max_bytes=1024**3, max_entries=100_000, max_depth=100, max_seconds=120.0)
"""Of the archive, and of each state of the workspace."""
FIRST_DAY_OF_ZIP = (1980, 1, 1, 0, 0, 0)


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
    with no_bundle(path):
        with path.open("rb") as file:
            data = file.read(BUDGET.max_bytes + 1)
        Charges(BUDGET).add(len(data))
        files = unpack_zip(data, BUDGET)
        if foreign := [name for name in files if name not in PARTS and not name.startswith(TEAM)]:
            raise UnpackingRefused(f"it has a file that does not belong there: {foreign[0]!r}")
        if missing := [name for name in PARTS if name not in files]:
            raise UnpackingRefused(f"it has no {', no '.join(missing)}")
        claims = Claims.model_validate_json(files[CLAIMS])
        team = TEAM + claims.catalog_file
        if team not in files:
            raise UnpackingRefused(f"it has no {team}")
        recording = folder / f"{folder.name}.ndjson"
        of_team = {name: content for name, content in files.items() if name.startswith(TEAM)}
        write_files(folder, {**of_team, recording.name: files[RECORDING]})
        return Bundle(claims, Recording.load(recording), files[STATES], folder / team)


@contextmanager
def no_bundle(path: Path) -> Iterator[None]:
    """Say of any error in reading that ``path`` is not a bundle. Raises `UsageError`."""
    try:
        yield
    except ValidationError as error:
        raise UsageError(f"{path} is not a bundle: {CLAIMS}: {first_problem(error)}", HINT) from error
    except (OSError, RecursionError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error) or "damaged"
        raise UsageError(f"{path} is not a bundle: {reason}", HINT) from error


HINT = "`codex-multi-role bundle RUN -o FILE` writes one."
