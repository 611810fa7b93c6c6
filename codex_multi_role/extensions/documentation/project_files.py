"""What says how a project is installed and started: its README, manifests and scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from codex_multi_role.extensions.documentation.document_plan import shortened
from codex_multi_role.workspace import PathRefused, Workspace

MAX_FILE_CHARACTERS = 6_000
MAX_SCRIPTS = 10
NAMES: Final = (
    *("README.md", "README.rst", "README.txt", "README", "pyproject.toml", "setup.cfg", "setup.py", "requirements.txt"),
    *("package.json", "Cargo.toml", "go.mod", "pom.xml", "build.gradle", "Makefile", "justfile", "Dockerfile"),
)
SCRIPT_FOLDERS: Final = ("scripts", "bin")


def project_files(repo: Path) -> str:
    """Those files of ``repo``, each with its path and the beginning of its text; empty if it has none."""
    return "\n\n".join(_shown(Workspace(repo), _paths(repo)))


def _paths(repo: Path) -> list[str]:
    scripts = [f"{folder}/{file.name}" for folder in SCRIPT_FOLDERS for file in sorted((repo / folder).glob("[!.]*"))]
    return [*NAMES, *scripts[:MAX_SCRIPTS]]


def _shown(repo: Workspace, paths: list[str]) -> Iterator[str]:
    for path in paths:
        try:
            text = repo.resolve_inside(path).read_text(encoding="utf-8")
        except (PathRefused, OSError, UnicodeDecodeError):
            continue
        yield f"{path}:\n{shortened(text.strip(), MAX_FILE_CHARACTERS)}\nEND OF {path}"
