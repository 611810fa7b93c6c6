"""What is known of the tests that guard a line: only what was judged on the very text that the file has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.extensions.results.line_guards import RESULTS, LineGuards, judged_files, recorded_guards
from codex_multi_role.extensions.results.run_history import history_of
from tests.support.histories import History

pytestmark = pytest.mark.real

FILE = "sign.py"
JUDGED = {
    "ids": ["2.1", "2.2", "3.1"],
    "survivors": [{"id": "2.2", "line": 2}],
    "matrix": {"tests.test_sign::test_b": ["2.1"], "tests.test_sign::test_a": ["2.1"]},
}
GUARDS = {
    2: LineGuards(("tests.test_sign::test_a", "tests.test_sign::test_b"), ("2.1",), ("2.2",)),
    3: LineGuards((), ("3.1",), ()),
}


def run_that_judged(folder: Path, results: Any) -> History:
    history = History(folder, {FILE: "1\n2\n3\n"})
    history.turn("tester", {"tests/test_sign.py": "x\n"})
    history.ended()
    (history.run.path / RESULTS).write_text(json.dumps(results))
    return history


def test_lines_have_the_tests_that_kill_their_mutants(tmp_path: Path) -> None:
    history = run_that_judged(tmp_path, {"results": [{"file": FILE, "mutation": JUDGED}]})
    histories = [history_of(history.run)]
    assert recorded_guards(histories, FILE) == GUARDS
    assert recorded_guards(histories, FILE, history.workspace / FILE) == GUARDS
    assert recorded_guards(histories, "other.py") == {}
    assert judged_files(history.run) == [FILE]


def test_nothing_is_known_of_another_text(tmp_path: Path) -> None:
    history = run_that_judged(tmp_path, {"results": [{"file": FILE, "mutation": JUDGED}]})
    (history.workspace / FILE).write_text("1\n2\n3 \n")
    assert recorded_guards([history_of(history.run)], FILE, history.workspace / FILE) == {}


@pytest.mark.parametrize(
    "results",
    [
        {"results": [{"file": FILE, "mutation": {"status": "not judged", "reason": "no tests are left"}}]},
        {"results": [{"name": FILE}]},
        {"results": 3},
        ["another flow's results"],
        None,
    ],
)
def test_results_without_mutants_say_nothing(tmp_path: Path, results: Any) -> None:
    history = run_that_judged(tmp_path, results)
    assert recorded_guards([history_of(history.run)], FILE) == {}
    assert judged_files(history.run) == []
