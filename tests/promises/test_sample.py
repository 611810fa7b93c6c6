"""That the breakages of ``python -m tests.promises`` still fit, and that it tells a noticed one from another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.promises.breakage import Breakage
from tests.promises.breakages import BREAKAGES
from tests.promises.trial import ROOT, attempt
from tests.support.tables import functions_of

PROMISES = {1, 2, 3, 4, 5, 6, 7}


@pytest.mark.parametrize("breakage", BREAKAGES, ids=str)
def test_breakage_applies_once_compiles_and_has_existing_tests(breakage: Breakage) -> None:
    compile(breakage.broken(ROOT), breakage.file, "exec")
    assert breakage.tests
    for test in breakage.tests:
        file, _, name = test.partition("::")
        assert name.partition("[")[0] in functions_of(file)


def test_every_promise_is_broken_and_no_clause_is_named_twice() -> None:
    assert {breakage.promise for breakage in BREAKAGES} == PROMISES
    assert len(set(map(str, BREAKAGES))) == len(BREAKAGES)


def test_noticed_breakage_is_distinguished_from_others(tmp_path: Path) -> None:
    """Others are not noticed, do not fit the file, or do not run."""
    noticed = next(breakage for breakage in BREAKAGES if breakage.clause == "`..` leads nowhere")
    harmless = replace(noticed, new=f" {noticed.old}")
    unfit = replace(noticed, old="not in the file")
    no_code = replace(noticed, new=" or ) or ")
    said = {}
    for name, breakage in {"noticed": noticed, "harmless": harmless, "unfit": unfit, "no code": no_code}.items():
        (tmp_path / name).mkdir()
        said[name] = attempt(breakage, tmp_path / name).wrong
    assert said["noticed"] == ""
    assert f"{noticed.tests[0]} passed" in said["harmless"]
    assert "has 0 times, not once: 'not in the file'" in said["unfit"]
    assert "did not run" in said["no code"]
