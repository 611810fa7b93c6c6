"""Definitions found by name: in a project's folder, then the shipped ones, then those of extensions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from codex_multi_role.reading.registry import Registry, no_such_part

GROUP = "codex_multi_role.definitions"
FLOWS, PLAYBOOKS, STARTERS, ABOUT_STARTER = "flows", "playbooks", "starters", "starter.yaml"
_PACKAGE = Path(__file__).resolve().parents[1]
_FILES = {FLOWS: ("*.yml", "*.yaml"), PLAYBOOKS: ("*.yaml",)}  # of two files with one name, the last is used
_EXTENSIONS: Registry[ModuleType] = Registry("package with definitions", GROUP, {})
"""Packages whose folder ``roles`` holds definitions."""


def packaged_roles() -> Path:
    """The shipped catalog's folder: ``codex_multi_role/_roles`` in a wheel, the checkout's ``roles/`` otherwise."""
    in_wheel = _PACKAGE / "_roles"
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent / "roles"


def definition_folders(roles_dir: Path | None = None) -> Iterator[Path]:
    """``roles_dir``, `packaged_roles`, and the folders of extensions, in the order in which a name is looked up.

    Looking up extensions takes milliseconds, so that it waits until the iteration gets there.
    """
    if roles_dir is not None:
        yield roles_dir
    yield packaged_roles()
    yield from (Path(str(package.__file__)).with_name("roles") for package in _EXTENSIONS.that_load())


def find_definition(kind: str, name: str, roles_dir: Path | None) -> Path | None:
    """The file called ``name`` in the first of `definition_folders` whose folder ``kind`` has it."""
    found = (_named_files(kind, folder).get(name) for folder in definition_folders(roles_dir))
    return next(filter(None, found), None)


def list_definitions(kind: str, roles_dir: Path | None) -> dict[str, Path]:
    """All files of ``kind`` by name, sorted."""
    folders = reversed(tuple(definition_folders(roles_dir)))
    files = {name: file for folder in folders for name, file in _named_files(kind, folder).items()}
    return dict(sorted(files.items()))


def no_such_definition(kind: str, name: str, known: Iterable[str], roles_dir: Path | None) -> tuple[str, str]:
    """Like `no_such_part`; the hint also says where it was searched, and which extensions that may have it do not load.

    ``kind``: that of `find_definition`.
    """
    message, hint = no_such_part(kind.removesuffix("s"), GROUP, name, known)
    searched = f"Searched: {f'{roles_dir / kind}, and ' if roles_dir else ''}what is installed."
    return message, " ".join((hint, searched, *(f"{problem}." for problem in _EXTENSIONS.problems())))


def list_starters() -> dict[str, Path]:
    """The folder of each starter by its name; the one for anything else is the last."""
    found = [file.parent for folder in definition_folders() for file in folder.glob(f"{STARTERS}/*/{ABOUT_STARTER}")]
    hidden_last = {folder.name: folder for folder in reversed(found)}
    return dict(sorted(hidden_last.items(), key=lambda named: (named[0] == "empty", named[0])))


def _named_files(kind: str, folder: Path) -> dict[str, Path]:
    return {file.stem: file for pattern in _FILES[kind] for file in (folder / kind).glob(pattern)}
