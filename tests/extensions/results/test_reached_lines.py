"""Tests by the lines that they reach, measured in the workspace of a run; what cannot be measured is no figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.results.reached_lines import tests_by_line as lines_reached
from codex_multi_role.extensions.results.run_history import history_of
from codex_multi_role.run_options import RunOptions
from tests.support.histories import History

pytestmark = pytest.mark.real

SIGN = "# Signs.\ndef sign(number):\n    if number < 0:\n        return -1\n    return 1\n"
TESTS = "from sign import sign\n\ndef test_plus():\n    assert sign(1) == 1\n"


@pytest.fixture
def history(tmp_path: Path) -> History:
    history = History(tmp_path, {"sign.py": SIGN})
    history.turn("tester", {"test_sign.py": TESTS})
    history.ended()
    return history


@pytest.mark.parametrize(("path", "tests"), [("gone.py", "test_sign.py"), ("sign.py", "sign.py")])
def test_what_cannot_be_measured_is_an_error(history: History, path: str, tests: str) -> None:
    with pytest.raises(UsageError):
        lines_reached(history_of(history.run), path, [tests], RunOptions(test_sandbox=False))


def test_every_reached_line_has_its_tests_however_many(tmp_path: Path) -> None:
    """The check's own result names the first 400 places."""
    count = 500
    lines = [f"    if number == {number}:\n        return {number}\n" for number in range(count)]
    history = History(tmp_path, {"many.py": "".join(["def many(number):\n", *lines])})
    tests = f"from many import many\n\ndef test_last():\n    assert many({count - 1}) == {count - 1}\n"
    history.turn("tester", {"test_many.py": tests})
    history.ended()
    found = lines_reached(history_of(history.run), "many.py", ["test_many.py"], RunOptions(test_sandbox=False))
    reached = [line for line, names in found.items() if names]
    assert sorted(reached) == [*range(2, 2 * count + 1, 2), 2 * count + 1]
    assert (found[2], found[3], 1 in found) == (("test_many::test_last",), (), False)
    assert sorted(each.name for each in history.workspace.iterdir()) == ["many.py", "test_many.py"]
