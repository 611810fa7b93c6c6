"""The Python files that a check's options name: inside the workspace, and valid Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from codex_multi_role.checks.contract import CheckOptions, inside
from codex_multi_role.extensions.measuring.workspace_copies import is_left_out
from codex_multi_role.reading.python_source import NotPython, syntax_tree
from codex_multi_role.workspace import Workspace

PYTHON = "*.py"
# one path or several
Paths = Annotated[
    list[Annotated[str, StringConstraints(min_length=1)]],
    Field(min_length=1),
    BeforeValidator(lambda given: [given] if isinstance(given, str) else given),
]


def named_path(workspace: Workspace, check: str, options: CheckOptions, name: str) -> str:
    """The path that the option called ``name`` gives, verified to be in the workspace. Raises UsageError."""
    return _relative(workspace, str(getattr(options, name)), f"check {check}: {name}")


def named_paths(workspace: Workspace, check: str, options: CheckOptions, name: str) -> list[str]:
    """Like `named_path`, for an option of type `Paths`."""
    return [_relative(workspace, path, f"check {check}: {name}") for path in getattr(options, name)]


def _relative(workspace: Workspace, given: str, option: str) -> str:
    given = given.rstrip("/")
    inside(workspace, given, option)
    return given


def none_python(root: Path, relatives: Sequence[str]) -> str:
    """The first problem that `not_python` finds in several paths; ``""`` if none."""
    return next(filter(None, (not_python(root, relative) for relative in relatives)), "")


def not_python(root: Path, relative: str) -> str:
    """Why the file, or the first such file of the folder, cannot be parsed; ``""`` if all can."""
    path = root / relative
    found = sorted(path.rglob(PYTHON)) if path.is_dir() else [path]
    files = [file for file in found if path == file or not any(map(is_left_out, _folders(file, path)))]
    if not files:
        return f"{relative} contains no Python file"
    problems = (_problem(file, file.relative_to(root).as_posix()) for file in files)
    return next(filter(None, problems), "")


def _folders(file: Path, top: Path) -> list[Path]:
    """The folders that contain ``file``, below ``top``."""
    return [top / each for each in file.relative_to(top).parents if each != Path()]


def _problem(file: Path, name: str) -> str:
    try:
        return syntax_problem(file.read_bytes(), name)
    except OSError as error:
        return f"{name}: cannot be read: {error.strerror}"


def syntax_problem(source: str | bytes, name: str) -> str:
    """Why ``source``, called ``name``, cannot be parsed; ``""`` if it can."""
    try:
        syntax_tree(source)
    except NotPython as error:
        return f"{name}: {error}"
    return ""


def is_test_file(name: str) -> bool:
    """Whether pytest reads a file of that name: tests, or what they share."""
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
