"""Codex skills that roles name: folders or archives (zip, 7z) with a ``SKILL.md``, beside the catalog or in a project.

An archive is read into memory within limits, and nothing is unpacked before every name in it has been checked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from codex_multi_role.errors import DefinitionError
from codex_multi_role.host.unpacking import (
    SEVEN_ZIP,
    ZIP,
    Charges,
    Kind,
    UnpackBudget,
    UnpackingRefused,
    collect,
    unpack_seven_zip,
    unpack_zip,
)
from codex_multi_role.host.user_cache import home_folder
from codex_multi_role.reading.yaml_source import parse_text

SKILLS_FOLDER = "skills"
KEPT_SKILLS = Path(".agents", SKILLS_FOLDER)
"""Where a run's copy of a catalog has them: type checkers and test runners skip such a folder by default."""
SKILL_FILE = "SKILL.md"
ARCHIVE_SUFFIX = ".skill"
BUDGET = UnpackBudget(max_bytes=10 * 1024 * 1024, max_entries=500, max_depth=20, max_seconds=30.0)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:-]{0,63}")
_IGNORED = {"__MACOSX", ".DS_Store"}


@dataclass(frozen=True)
class Skill:
    """``name`` as declared in ``SKILL.md``, by which Codex knows it; ``files`` by their path below its folder."""

    name: str
    source: Path = field(compare=False)
    files: Mapping[str, bytes]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files it was read from."""
        return tuple(self.source / name for name in self.files) if self.source.is_dir() else (self.source,)

    @property
    def kept_name(self) -> str:
        """Its folder in `KEPT_SKILLS`: the name that roles use."""
        return self.source.name.removesuffix(ARCHIVE_SUFFIX)


def skill_folders(catalog: Path) -> Iterator[Path]:
    """The folders searched for skills: beside the catalog, then Codex's own for a project and a user."""
    yield catalog.parent / SKILLS_FOLDER
    for folder in catalog.resolve().parents:
        yield from (folder / ".agents" / SKILLS_FOLDER, folder / ".codex" / SKILLS_FOLDER)
        if (folder / ".git").exists():
            break
    home = home_folder()
    yield home / ".agents" / SKILLS_FOLDER
    yield Path(os.environ.get("CODEX_HOME") or home / ".codex") / SKILLS_FOLDER


def find_skill(name: str, catalog: Path) -> Skill | None:
    """The first skill in the order of `skill_folders` whose file, or otherwise whose ``SKILL.md``, has that name.

    Raises `DefinitionError` if it cannot be read.
    """
    sources = list(_sources(catalog))
    for source in sources:
        if source.name.removesuffix(ARCHIVE_SUFFIX) == name:
            return read_skill(source)
    for source in sources:
        with suppress(DefinitionError):  # a broken one that nobody names is ignored
            if (skill := read_skill(source)).name == name:
                return skill
    return None


def known_skills(catalog: Path) -> list[str]:
    """The file names of all skills that `find_skill` finds."""
    return sorted({source.name.removesuffix(ARCHIVE_SUFFIX) for source in _sources(catalog)})


def _sources(catalog: Path) -> Iterator[Path]:
    """Folders come before archives of the same name."""
    for folder in skill_folders(catalog):
        with suppress(OSError):  # missing or unreadable
            entries = sorted(folder.iterdir())
            yield from [path for path in entries if (path / SKILL_FILE).is_file()]
            yield from [path for path in entries if path.suffix == ARCHIVE_SUFFIX and path.is_file()]


def read_skill(source: Path) -> Skill:
    """The skill in the folder or archive ``source``. Raises `DefinitionError` that names the file."""
    try:
        files = _read_folder(source) if source.is_dir() else _read_archive(source)
    except OSError as error:
        raise DefinitionError(f"{source}: cannot be read: {error.strerror or error}") from error
    except UnpackingRefused as error:
        raise DefinitionError(f"{source}: cannot be unpacked: {error}") from error
    files = _without_common_folder(files)
    if SKILL_FILE not in files:
        raise DefinitionError(f"{source}: holds no {SKILL_FILE}")
    return Skill(_declared_name(files[SKILL_FILE], source), source, files)


def _read_folder(folder: Path) -> dict[str, bytes]:
    paths = ((path.relative_to(folder), path) for path in folder.rglob("*"))
    kept = (
        (name.as_posix(), _kind_of(path), partial(path.open, "rb")) for name, path in paths if not _is_ignored(name)
    )
    return dict(sorted(collect(kept, BUDGET).items()))


def _kind_of(path: Path) -> Kind:
    return "link" if path.is_symlink() else "file" if path.is_file() else "folder"


def _read_archive(archive: Path) -> dict[str, bytes]:
    with archive.open("rb") as file:
        data = file.read(BUDGET.max_bytes + 1)
    Charges(BUDGET).add(len(data))
    if data.startswith(ZIP):
        return unpack_zip(data, BUDGET)
    if data.startswith(SEVEN_ZIP):
        return unpack_seven_zip(data, BUDGET)
    raise UnpackingRefused("it is neither a zip nor a 7z archive")


def _without_common_folder(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """``files`` below the one folder that contains them all, if there is one and ``SKILL.md`` is in it."""
    kept = {name: content for name, content in files.items() if not _is_ignored(PurePosixPath(name))}
    first = {PurePosixPath(name).parts[0] for name in kept}
    if SKILL_FILE not in kept and len(first) == 1:
        prefix = f"{first.pop()}/"
        return {name.removeprefix(prefix): content for name, content in kept.items()}
    return kept


def _is_ignored(path: PurePosixPath | Path) -> bool:
    return not _IGNORED.isdisjoint(path.parts)


def _declared_name(text: bytes, source: Path) -> str:
    place = source / SKILL_FILE
    found = _FRONT_MATTER.match(text.decode("utf-8-sig", "replace"))
    data = parse_text(found[1], place) if found and found[1].strip() else None
    head = data if isinstance(data, Mapping) else {}
    name = head.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not head.get("description"):
        raise DefinitionError(
            f"{place}:1:1: needs a name and a description, between two lines ---", "Codex ignores it otherwise."
        )
    return name
