"""Locates the Codex binary."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from codex_multi_role.errors import CodexNotFound

BINARY_VARIABLE = "CODEX_MULTI_ROLE_CODEX_BIN"


def find_codex(flag: Path | None, environment: Mapping[str, str]) -> Path:
    """The binary to run: ``flag``, otherwise the environment's `BINARY_VARIABLE`, otherwise the bundled one.

    Raises `CodexNotFound` if the named one is not an executable file, or the bundled package is missing.
    """
    named = str(flag) if flag else environment.get(BINARY_VARIABLE)
    return _executable(named) if named else _bundled()


def _executable(name: str) -> Path:
    """Prefer a file in the current folder to one on PATH, because a path has lost its ``./`` before it gets here."""
    found = shutil.which(Path(name).absolute()) or shutil.which(name)
    if found is None:
        raise CodexNotFound(
            f"{name} is not an executable file",
            f"Name the codex binary with --codex-bin or {BINARY_VARIABLE}, or leave both out to use the bundled one.",
        )
    return Path(found).absolute()


def _bundled() -> Path:
    try:
        from codex_cli_bin import bundled_codex_path

        path = Path(bundled_codex_path())
    except (ImportError, FileNotFoundError) as error:
        raise CodexNotFound(
            f"the bundled Codex binary is missing: {error}",
            "Reinstall with `pip install --force-reinstall openai-codex-cli-bin`, or name a binary with --codex-bin.",
        ) from error
    if not os.access(path, os.X_OK):
        raise CodexNotFound(f"{path} cannot be executed", "Reinstall openai-codex-cli-bin.")
    return path
