"""The key ``protect``: globs of files that a role, or any role of a flow, must not change."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator


def check_glob(glob: str) -> str:
    """Normalize a path relative to the workspace, which may have wildcards: ``./tests/`` becomes ``tests``."""
    parts = glob.split("/")
    if glob.startswith(("/", "~")) or "\\" in glob or ".." in parts:
        raise ValueError(f'"{glob}" must be relative to the workspace, such as tests/**')
    plain = "/".join(part for part in parts if part not in ("", "."))
    if not plain or not glob.isprintable():
        raise ValueError(f"{glob!r} names nothing; write a path such as tests/**")
    return plain


ProtectedGlobs = tuple[Annotated[str, AfterValidator(check_glob)], ...]
