"""A copy of the package in which nothing is left of the extensions: neither their room nor their entry points."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

TOP = Path(__file__).parents[2]
PACKAGE = ("codex_multi_role", "roles")
EXTENSIONS = "codex_multi_role/extensions"
LEFT_OUT = frozenset({EXTENSIONS, *(f"tests/{name}" for name in ("extensions", "core", "promises", "endurance"))})
"""With the rooms whose tests break or kill the extensions as well."""


def copy_without_extensions(folder: Path, names: Iterable[str] = PACKAGE) -> Path:
    """Copy the files and folders ``names`` of the checkout to ``folder``, without `LEFT_OUT`; return it."""
    for name in names:
        if (TOP / name).is_dir():
            shutil.copytree(TOP / name, folder / name, ignore=_left_out)
        else:
            shutil.copy(TOP / name, folder / name)
    _write_metadata(folder)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """The environment in which Python imports the copy in ``folder``."""
    return {**os.environ, "PYTHONPATH": str(folder)}


def _left_out(folder: str, names: list[str]) -> set[str]:
    here = Path(folder).relative_to(TOP)
    return {name for name in names if (here / name).as_posix() in LEFT_OUT}


def _write_metadata(folder: Path) -> None:
    """Describe the package without entry points. The first on the path counts, before the installed one."""
    information = folder / "codex_multi_role-0.dist-info"
    information.mkdir()
    metadata = distribution("codex-multi-role").read_text("METADATA") or ""
    (information / "METADATA").write_text(metadata, encoding="utf-8")
