"""Trying tests on a private copy of the package, whole or broken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase

from tests.promises.breakage import Breakage
from tests.promises.change import PACKAGE, apply
from tests.support.console import WITHOUT_PLUGINS, completed

ROOT = Path(__file__).parents[2]
COPIED = (PACKAGE, "roles", "tests", "pyproject.toml")
LONGEST_SECONDS = 180.0
SHOWN_LINES = 15
Endings = dict[str, set[str]]
"""By test: passed, failed, error (before or after the test itself), skipped; several where it has parameters."""


@dataclass(frozen=True)
class Trial:
    """``wrong`` says why a breakage is not shown to be noticed; empty where all is well."""

    breakage: Breakage
    wrong: str


def copy_of_tree(folder: Path) -> Path:
    """A copy of all that a test run needs."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def run_tests(root: Path, ids: Sequence[str]) -> tuple[Endings, str]:
    """How each test ended in the tree at ``root``, and the end of its output."""
    report = root / "junit.xml"
    # A folder for temporary files of its own: pytest sweeps the usual one, which others may be using.
    folders = ("--rootdir", str(root), "--basetemp", f"{root}.tmp", "--junitxml", str(report))
    options = ("-q", "-p", "no:cacheprovider", "-p", "tests.promises.witness", *folders)
    try:
        variables = {**os.environ, WITHOUT_PLUGINS: "", "PYTHONPATH": str(root)}
        command = [sys.executable, "-m", "pytest", *options, *ids]
        done = completed(command, root, variables, seconds=LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        return {}, f"no end after {LONGEST_SECONDS:.0f} s"
    said = "\n".join((done.stdout + done.stderr).splitlines()[-SHOWN_LINES:])
    if not report.exists():
        return {}, said
    endings: Endings = defaultdict(set)
    for case in (case for suite in JUnitXml.fromfile(str(report)) for case in suite):
        endings[_id(case)].add(_ending(case))
    return endings, said


def attempt(breakage: Breakage, folder: Path) -> Trial:
    """Break a copy in ``folder`` and run the tests that must notice."""
    root = copy_of_tree(folder)
    try:
        apply(breakage.change, root)
    except (LookupError, TypeError, ValueError) as error:
        return Trial(breakage, str(error))
    endings, said = run_tests(root, breakage.ids())
    return Trial(breakage, unnoticed(breakage, endings, said))


def unnoticed(breakage: Breakage, endings: Endings, said: str) -> str:
    """Which of the tests did not fail, and how they ended instead."""
    others = []
    for test in breakage.tests:
        mine = set().union(*(ended for name, ended in endings.items() if test in (name, name.partition("[")[0])))
        if "failed" not in mine:
            others.append(f"{test} {' and '.join(sorted(mine)) or 'did not run'}")
    return "; ".join(others) + f"\n{said}" if others else ""


def _id(case: TestCase) -> str:
    """``engine/test_caps.py::test_x[1]``, from the class name ``tests.engine.test_budget``."""
    return f"{str(case.classname).removeprefix('tests.').replace('.', '/')}.py::{case.name}"


def _ending(case: TestCase) -> str:
    kinds = {type(result) for result in case.result}
    names = {Failure: "failed", Error: "error", Skipped: "skipped"}
    return next((name for kind, name in names.items() if kind in kinds), "passed")
