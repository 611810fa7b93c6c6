"""That the breakages of ``python -m tests.promises`` still fit, and that it tells a noticed one from another."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from codex_multi_role.host.spelling import folded
from codex_multi_role.workspace import paths
from codex_multi_role.workspace.paths import _refuse_text
from tests.promises.breakage import Breakage
from tests.promises.breakages import BREAKAGES
from tests.promises.change import Change, ReplacedFunction, apply, constant, function_of, replaced, returns, source_file
from tests.promises.trial import ROOT, attempt, copy_of_tree, unnoticed

PROMISES = {1, 2, 3, 4, 5, 6, 7, 9}
SAMPLE = "`..` leads nowhere"
IN_OTHER_PROCESS = """
import sys
sys.path.append(sys.argv[1])
from codex_multi_role.host.spelling import folded
print(folded("A"))
"""
UNSAFE = function_of(_refuse_text)
UNFIT = constant(paths, "REFUSED_TEXT", "")


def _breakage_of(clause: str) -> Breakage:
    return next(breakage for breakage in BREAKAGES if breakage.clause == clause)


def _require_possible(change: Change) -> None:
    path = source_file(change.module(), ROOT)
    compile(change.broken(path.read_text(encoding="utf-8")), path, "exec")
    pickle.loads(pickle.dumps(change.data()))


@pytest.mark.parametrize("breakage", BREAKAGES, ids=str)
def test_breakage_fits_its_symbol_and_has_existing_tests(breakage: Breakage) -> None:
    _require_possible(breakage.change)
    assert breakage.tests
    for test in breakage.tests:
        file, _, name = test.partition("[")[0].partition("::")
        assert hasattr(import_module("tests." + file.removesuffix(".py").replace("/", ".")), name), test


def test_every_promise_is_broken_and_no_clause_is_named_twice() -> None:
    assert {breakage.promise for breakage in BREAKAGES} == PROMISES
    assert len(set(map(str, BREAKAGES))) == len(BREAKAGES)


@pytest.mark.real
def test_breakage_of_the_sample_is_noticed(tmp_path: Path) -> None:
    assert attempt(_breakage_of(SAMPLE), tmp_path).wrong == ""


@pytest.mark.real
def test_change_holds_without_site_packages(tmp_path: Path) -> None:
    """As in the process guard."""
    apply(returns(folded, "broken"), copy_of_tree(tmp_path))
    command = [sys.executable, "-I", "-S", "-c", IN_OTHER_PROCESS, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout == "broken\n"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (ReplacedFunction(UNSAFE, function_of(lambda refuse, path: None)), "calls relative of _refuse_text path"),
        (ReplacedFunction(UNSAFE, function_of(lambda refuse: None)), "too many positional arguments"),
        (replaced(_refuse_text, lambda refuse, relative: _require_possible(UNFIT)), "uses _require_possible, UNFIT"),
        (UNFIT, "assigns no REFUSED_TEXT"),
        (constant(paths, "MAX_NAME_BYTES", paths.MAX_NAME_BYTES), "has this value anyway: 255"),
    ],
)
def test_change_that_does_not_fit_is_refused(change: Change, problem: str) -> None:
    with pytest.raises((LookupError, TypeError, ValueError), match=problem):
        _require_possible(change)


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ({"failed"}, ""),
        ({"passed", "failed"}, ""),
        ({"passed"}, "passed"),
        (set(), "did not run"),
    ],
)
def test_noticed_breakage_is_distinguished_from_others(ended: set[str], said: str) -> None:
    breakage = replace(_breakage_of(SAMPLE), tests=("a.py::test_a",))
    endings = {f"a.py::test_a[{number}]": {each} for number, each in enumerate(sorted(ended))}
    assert unnoticed(breakage, endings, "end") == (f"a.py::test_a {said}\nend" if said else "")
