"""Where tests import the code under test from: the folders, the module names, and whether it was the copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from codex_multi_role.checks.environments import is_foreign

SOURCE_FOLDER = "src"
PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
PLUGINS = Path(__file__).parent / "plugins"
"""For the processes that are measured, beside those of `checks`."""


def import_folders(root: Path, target: str, known: Sequence[Path]) -> list[Path]:
    """The folders below ``root``, relative to it, that tests of ``target`` import from, its own first.

    ``known``: folders that the project's Python imports from, such as those of editable installs.
    """
    own = [import_folder(root, target, known)] if target else []
    source = [Path(SOURCE_FOLDER)] if (root / SOURCE_FOLDER).is_dir() else []
    return list(dict.fromkeys([*own, *known, *source]))


def import_folder(root: Path, target: str, known: Sequence[Path] = ()) -> Path:
    """The folder below ``root``, relative to it, at which ``target``'s dotted name starts."""
    path = Path(target)
    folder = path if (root / path).is_dir() else path.parent
    start = folder
    while start != start.parent and (root / start / "__init__.py").is_file():
        start = start.parent
    above = [start, *start.parents]
    for each in above:
        if each in known or (each.name == SOURCE_FOLDER and not (root / each / "__init__.py").is_file()):
            return each
    if start != folder:
        return start
    return next((each for each in above if any((root / each / name).is_file() for name in PROJECT_FILES)), Path())


def module_name(root: Path, file: Path, known: Sequence[Path] = ()) -> str:
    """The dotted name by which ``file``, relative to ``root``, is imported."""
    parts = file.with_suffix("").relative_to(import_folder(root, file.as_posix(), known)).parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def import_problem(
    loaded: Mapping[str, str],
    originals: Iterable[Path],
    copy: Path,
    target: str,
    known: Sequence[Path],
    unseen: Collection[str],
) -> str:
    """Why the measurement says nothing about ``target`` in ``copy``; empty if no such reason is found.

    ``loaded``: the modules of the process that ran the tests, with their files. ``originals``: the copied folders.
    ``unseen``: files of which coverage.py saw no line executed.
    """
    for root in originals:
        for name, file in loaded.items():
            if Path(file).is_relative_to(root / target) and not _is_foreign(Path(file), root):
                return f"the tests import {name} from {file}, not from the copy under test"
    imported = {Path(file) for file in loaded.values() if Path(file).is_relative_to(copy / target)}
    if missed := sorted(file for file in unseen if copy / file in imported):
        return f"coverage.py measured nothing of {missed[0]}, although the tests import it"
    if imported:
        return ""
    for name in _names(copy, target, known):
        if name in loaded:
            return f"the tests import {name} from {loaded[name]}, which is not {target} under test"
    return ""


def _is_foreign(path: Path, root: Path) -> bool:
    return path.is_relative_to(PLUGINS) or is_foreign(path, root)


def _names(copy: Path, target: str, known: Sequence[Path]) -> Iterator[str]:
    path = copy / target
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        yield module_name(copy, file.relative_to(copy), known)
