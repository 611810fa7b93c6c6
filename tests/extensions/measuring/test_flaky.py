from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.measuring.flaky import find_flaky
from tests.support.checks import MakeContext, run_check

pytestmark = pytest.mark.real


def _find(make_context: MakeContext, tests: str, **options: object) -> dict[str, Any]:
    context = make_context({"tests/test_a.py": tests}, **options)
    return run_check(find_flaky, context)


def _turns(path: Path, name: str, turn: int) -> str:
    """A test that fails in one turn: it counts them in a file that outlives the copies."""
    lines = [f"def {name}():", f"    with open({str(path / name)!r}, 'a+') as f:", "        f.write('x')"]
    return "\n".join([*lines, f"        assert f.tell() != {turn}", ""])


def test_test_that_ends_differently_is_named(make_context: MakeContext, tmp_path: Path) -> None:
    tests = f"{_turns(tmp_path, 'test_second', 2)}{_turns(tmp_path, 'test_third', 3)}def test_a(): pass\n"
    result = _find(make_context, f"{tests}def test_b(): assert False\n")
    assert (result["status"], result["runs"], result["tests"]) == ("flaky", 3, 4)
    assert result["flaky"] == {
        "tests.test_a::test_second": ["passed", "failed", "passed"],
        "tests.test_a::test_third": ["passed", "passed", "failed"],
    }
    assert result["failed"] == ["tests.test_a::test_b"]


def test_what_a_run_leaves_makes_nothing_flaky(make_context: MakeContext) -> None:
    """Without a target, too: none is needed."""
    marking = (
        "from pathlib import Path\ndef test_x():\n    assert not Path('mark').exists()\n    Path('mark').touch()\n"
    )
    result = _find(make_context, marking, runs=2)
    assert (result["status"], result["runs"], result["flaky"]) == ("ok", 2, {})


@pytest.mark.parametrize(
    ("tests", "status", "words"),
    [
        ("x = 1\n", "could not run", "pytest found no test"),
        ("def test_x(:\n", "could not run", "tests/test_a.py: line 1"),
        ("def test_x():\n    while True: pass\n", "timed out", "no result after"),
    ],
)
def test_what_cannot_be_said_has_its_reason(make_context: MakeContext, tests: str, status: str, words: str) -> None:
    result = _find(make_context, tests, timeout_seconds=1.0 if status == "timed out" else 60.0)
    assert result["status"] == status
    assert words in result["reason"]


def test_path_out_of_the_workspace_is_refused(make_context: MakeContext) -> None:
    with pytest.raises(UsageError, match="check flaky: tests: unsafe path"):
        find_flaky(make_context({}, tests="../tests"))
