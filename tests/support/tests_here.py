"""The check ``tests`` without a process: the tests of a workspace run in this one, and leave what pytest would leave.

For plain functions, which may be marked to be skipped.
"""

from __future__ import annotations

import builtins
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

from codex_multi_role.checks.session_report import VARIABLE
from codex_multi_role.workspace import CommandResult

EXIT_CODES = {"failed": 1, "error": 1, "passed": 0, "skipped": 0}
NO_TESTS = 5


@pytest.fixture
def real_pytest() -> None:
    """For a test of a module whose others use `tests_here`: it starts pytest."""


@pytest.fixture
def tests_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check ``tests`` starts nothing, unless the test asks for `real_pytest`."""
    if "real_pytest" not in request.fixturenames:
        monkeypatch.setattr("codex_multi_role.checks.tests.run_command", run_here)


def run_here(argv: Sequence[str], folder: Path, environment: Mapping[str, str], *_: Any, **__: Any) -> CommandResult:
    """As `run_command` with a command line of pytest, which ends with the option of its report."""
    ends: dict[str, tuple[str, BaseException | None]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        ends |= ends_in(path, path.relative_to(folder).as_posix())
    counts = Counter(outcome for outcome, _ in ends.values())
    outcomes = {test: "failed" if outcome == "error" else outcome for test, (outcome, _) in ends.items()}
    lacks = {test: error.name for test, (_, error) in ends.items() if isinstance(error, ModuleNotFoundError)}
    seen = {"outcomes": outcomes, "lacks": lacks, "counts": counts, "refused": {}, "failures": 0, "limit": ""}
    seen |= {"cut_short": False, "is_red_by_hook": False, "root": "."}
    Path(environment[VARIABLE]).write_text(json.dumps(seen))
    Path(argv[-1].partition("=")[2]).write_bytes(junit(ends))
    code = max((EXIT_CODES[each] for each in counts), default=NO_TESTS)
    return CommandResult(code, "", timed_out=False, seconds=0.1, truncated=False)


def ends_in(path: Path, module: str) -> dict[str, tuple[str, BaseException | None]]:
    """How the tests of a module end, by pytest's ids: the outcome, and what was raised."""
    try:
        names = loaded(path)
    except Exception as error:
        return {module: ("error", error)}
    return {f"{module}::{name}": end_of(each) for name, each in names.items() if name.startswith("test_")}


def loaded(path: Path) -> dict[str, Any]:
    """The names of the module at ``path``; what it imports from its folder is loaded again."""

    def load(name: str, *given: Any) -> Any:
        beside = path.with_name(f"{name}.py")
        if not beside.exists():
            return builtins.__import__(name, *given)
        (module := ModuleType(name)).__dict__.update(loaded(beside))
        return module

    names = {"__builtins__": {**vars(builtins), "__import__": load}, "__name__": path.stem, "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names


def end_of(test: Callable[[], object]) -> tuple[str, BaseException | None]:
    if any(mark.name == "skip" for mark in getattr(test, "pytestmark", ())):
        return "skipped", None
    try:
        test()
    except Exception as error:
        return "failed", error
    return "passed", None


def junit(ends: Mapping[str, tuple[str, BaseException | None]]) -> bytes:
    suite = ElementTree.Element("testsuite")
    for test, (outcome, error) in ends.items():
        file, _, name = test.partition("::")
        dotted = file.removesuffix(".py").replace("/", ".")
        case = ElementTree.SubElement(suite, "testcase", classname=dotted, name=name, file=file, time="0.1")
        if outcome != "passed":
            ElementTree.SubElement(case, {"failed": "failure"}.get(outcome, outcome), message=repr(error))
    return ElementTree.tostring(suite)
