"""The check ``python_files``: which Python files of a target need tests, and the path for each one's tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, ResultPart, declare_check, inside, no_time
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.measuring.imports import module_name
from codex_multi_role.extensions.measuring.python_targets import is_test_file
from codex_multi_role.extensions.test_generation.target_facts import holds_tests, imports_in, python_in, users_of
from codex_multi_role.reading.python_source import NotPython, syntax_tree

MOST_FILES = 200
USUAL = "tests"
PYTHON = (".py", ".pyw", "")
ONLY_PYTHON = "testgen supports Python only"


class PythonFilesOptions(CheckOptions):
    """``target`` is a file or a folder, ``out`` the folder for tests; both relative to the workspace.

    With the usual ``out``, tests go beside the project's own tests of a file, or of its package.
    """

    target: str = Field(min_length=1, description="a Python file or a folder of the workspace")
    out: str = Field(default=USUAL, min_length=1, description="a folder of the workspace")


class PythonFile(ResultPart):
    """``tests`` is a new file, beside the project's tests of ``file`` if there are any.

    Its name no other Python file of the workspace has.

    It has none either with ``__2`` and so on appended, as further test files are named: pytest takes two files of one
    name for the same module. ``problem``: why the file is not valid Python, or empty.
    """

    file: str
    module: str
    tests: str
    problem: str


class PythonFilesResult(CheckResult):
    bad = ()

    status: Literal["found", "no files"]
    reason: str
    files: list[PythonFile]


@declare_check(options=PythonFilesOptions, result=PythonFilesResult, max_seconds=no_time, read_only=True)
def find_python_files(context: CheckContext) -> PythonFilesResult:
    """Find the files; write ``result.json``.

    Options: `PythonFilesOptions`. A folder's tests, files without a statement, hidden folders and everything in ``out``
    are left out.

    Raises UsageError for a wrong option, a missing target, and more than ``MOST_FILES`` files.
    """
    options = context.read_options(PythonFilesOptions, "python_files")
    target = inside(context.workspace, options.target, "check python_files: target")
    out = inside(context.workspace, options.out, "check python_files: out")
    root = context.workspace.root
    if target.is_file() and target.suffix not in PYTHON:
        raise UsageError(f"check python_files: target: {ONLY_PYTHON}: {options.target} is not a Python file")
    if not target.exists():
        raise UsageError(f"check python_files: target: not found: {options.target}", "Name a file or a folder.")
    found = [path for path in python_in(target) if not is_test_file(path.name) and not path.is_relative_to(out)]
    files = [target] if target.is_file() else [path for path in found if _parsed(path) != ""]
    if len(files) > MOST_FILES:
        raise UsageError(f"check python_files: target: {len(files)} files", f"{MOST_FILES} at most per run.")
    taken = {_family(path.stem) for path in python_in(root)}
    reason = "" if files else f"{options.target} contains no Python file to test; {ONLY_PYTHON}"
    known = context.python.folders if context.python else ()
    imports = imports_in(root, known) if files and options.out == USUAL else {}
    listed = [_entry(path, root, out, taken, known, imports) for path in files]
    return PythonFilesResult(status="found" if files else "no files", reason=reason, files=listed)


def _parsed(path: Path) -> str | None:
    """Why the file is not valid Python; ``""`` if it has no statement, None if it needs tests."""
    try:
        body = syntax_tree(path.read_bytes()).body
    except NotPython as error:
        return str(error)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    texts = [each for each in body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)]
    return None if len(texts) < len(body) else ""


def _entry(
    path: Path, root: Path, out: Path, taken: set[str], known: Sequence[Path], imports: Mapping[Path, Collection[str]]
) -> PythonFile:
    relative = path.relative_to(root)
    module = module_name(root, relative, known)
    problem = _parsed(path) or ""
    own = [each for each in users_of(imports, module, path) if holds_tests(each)]
    stem = own[0].stem if own else f"test_{module.replace('.', '_')}"
    package = module.partition(".")[0]
    roots = {path: {name.partition(".")[0] for name in imports[path]} for path in filter(holds_tests, imports)}
    near = [path for path, names in roots.items() if package in names]
    place = (own or near or [out / stem])[0].parent
    return PythonFile(
        file=relative.as_posix(),
        module=module,
        tests=(place.relative_to(root) / _free_name(stem, taken)).as_posix(),
        problem=f"{relative.as_posix()}: {problem}" if problem else "",
    )


def _free_name(stem: str, taken: set[str]) -> str:
    """Beginning or ending with ``test``, as ``stem`` does."""
    start, end = (stem, "") if stem.startswith("test_") else (stem.removesuffix("_test"), "_test")
    candidates = (f"{start}{number}{end}" for number in ("", *(f"_{count}" for count in range(2, len(taken) + 3))))
    name = next(each for each in candidates if _family(each) not in taken)
    taken.add(_family(name))
    return f"{name}.py"


def _family(stem: str) -> str:
    return re.sub(r"(__\d+)+$", "", stem)
