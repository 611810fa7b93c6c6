from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.extensions.test_generation.measured_tests import smallest_cover
from codex_multi_role.extensions.test_generation.prune_tests import prune_tests
from tests.support.checks import MakeContext
from tests.support.generation import item, judged
from tests.support.suites_here import suites_here
from tests.support.teams import Record

__all__ = ["suites_here"]
here = pytest.mark.usefixtures("suites_here")

FILES = {"one.py": "def one():\n    return 1\n"}


def planned(expected: str, verdict: str = "") -> Record:
    return judged(item("P1", expected, "one"), FILES["one.py"], "one", verdict)


GOOD = "def test_good():\n    assert one() == 1\n"


def _prune(make_context: MakeContext, code: str, runs: int = 1, **options: object) -> tuple[dict[str, Any], str]:
    files = [{"path": "tests/test_one.py", "content": code}]
    context = make_context(FILES, target="one.py", files=files, runs=runs, **options)
    result = prune_tests(context)
    place = context.workspace.root / "tests/test_one.py"
    return result, place.read_text() if place.exists() else ""


@here
def test_more_failures_than_a_report_names_are_all_taken_out(make_context: MakeContext) -> None:
    bad = "".join(f"\n\ndef test_bad_{number}():\n    assert one() == 2\n" for number in range(45))
    result, left = _prune(make_context, f"from one import one\n\n\n{GOOD}{bad}")
    assert (len(result["pruned"]), result["passed"], result["failed"], result["coverage"]) == (45, 1, 0, 100.0)
    assert left.strip() == f"from one import one\n\n\n{GOOD}".strip()


@here
def test_where_nothing_passes_no_file_is_left(make_context: MakeContext) -> None:
    result, left = _prune(make_context, "def test_bad():\n    assert False\n")
    assert (result["status"], result["passed"], left) == ("no tests", 0, "")


@pytest.mark.real
def test_import_error_is_not_a_suspected_bug(make_context: MakeContext) -> None:
    """However short the project's settings make pytest's messages."""
    code = "def test_p1_one():\n    from one import not_there_x\n    assert not_there_x() == 1\n"
    make_context({"pytest.ini": "[pytest]\naddopts = --tb=no\n"})
    result, _ = _prune(make_context, code, plan=[planned("1")])
    assert (len(result["pruned"]), result["suspected_bugs"]) == (1, [])
    assert (result["untested"], result["passed"], result["coverage"]) == (["P1"], 0, None)


@pytest.mark.real
def test_tests_of_a_file_that_crashes_are_removed_and_not_counted(make_context: MakeContext) -> None:
    crash = {"tests/conftest.py": "def pytest_sessionfinish(session): session.exitstatus = 3\n"}
    files = [{"path": "tests/test_one.py", "content": f"from one import one\n\n\n{GOOD}"}]
    context = make_context({**FILES, **crash}, target="one.py", files=files, runs=1)
    result: dict[str, Any] = prune_tests(context)
    assert (result["crashed"], result["files"], result["passed"], result["coverage"]) == (True, [], 0, None)
    assert not (context.workspace.root / "tests/test_one.py").exists()


@here
def test_pruning_again_after_a_kill_gives_the_same_result(make_context: MakeContext) -> None:
    code = f"from one import one\n\n\n{GOOD}\n\ndef test_p1_two():\n    assert one() == 2\n"
    plan = [planned("2", "cannot be evaluated")]
    first, second = (_prune(make_context, code, plan=plan) for _ in range(2))
    assert first[1] == second[1]
    (bug,) = second[0]["suspected_bugs"]
    assert (bug["tests"], bug["test"]) == (["test_p1_two"], "def test_p1_two():\n    assert one() == 2")


@pytest.mark.real
def test_what_cannot_be_taken_out_is_not_tried_for_ever(make_context: MakeContext) -> None:
    inherited = "class Base:\n    def test_it(self):\n        assert False\n\n\nclass TestIt(Base):\n    pass\n"
    result, _ = _prune(make_context, f"from one import one\n\n\n{GOOD}\n\n{inherited}")
    assert (result["status"], result["failed"], result["pruned"]) == ("failed", 1, [])


@here
def test_flaky_tests_are_removed_and_not_suspected_bugs(make_context: MakeContext, tmp_path: Path) -> None:
    turns = (
        f"    with open({str(tmp_path / 'turns')!r}, 'a+') as f:\n        f.write('x')\n        assert f.tell() % 2\n"
    )
    code = f"from one import one\n\n\n{GOOD}\n\ndef test_p1_turns():\n    assert one() == 1\n{turns}"
    result, left = _prune(make_context, code, runs=3, plan=[planned("1")])
    assert result["flaky"] == {
        "runs": 3, "reason": "", "tests": {"tests.test_one::test_p1_turns": ["passed", "failed", "passed"]},
    }  # fmt: skip
    assert (result["passed"], result["pruned"], result["suspected_bugs"]) == (1, [], [])
    assert "turns" not in left


@here
def test_of_several_files_each_loses_its_own(make_context: MakeContext) -> None:
    bad = "def test_bad():\n    assert one() == 2\n"
    files = [
        {"path": "tests/test_one.py", "content": f"from one import one\n\n\n{GOOD}\n\ndef test_too():\n    pass\n"},
        {"path": "tests/test_one__2.py", "content": f"from one import one\n\n\n{GOOD}\n\n{bad}"},
        {"path": "tests/test_one__3.py", "content": f"from one import one\n\n\n{bad}"},
    ]
    context = make_context(FILES, target="one.py", files=files, runs=1)
    result: dict[str, Any] = prune_tests(context)
    assert (result["files"], result["passed"]) == (["tests/test_one.py", "tests/test_one__2.py"], 3)
    assert [each["test"] for each in result["pruned"]] == ["tests.test_one__2::test_bad", "tests.test_one__3::test_bad"]
    left = {path.name: path.read_text() for path in (context.workspace.root / "tests").glob("*.py")}
    assert left == {"test_one.py": files[0]["content"], "test_one__2.py": f"from one import one\n\n\n{GOOD}"}


@here
def test_restored_assertion_is_a_suspected_bug(make_context: MakeContext) -> None:
    """Whatever it states, and whether or not its test belongs to the plan; not if its test passes in the end."""
    bad = "def test_p1_less():\n    assert one() < 1\n\n\ndef test_own():\n    assert one() > 1\n"
    changed = [
        {"test": name, "assertion": f"assert {name}"}
        for name in ("test_good", "test_p1_less", "test_own", "test_p1_less")
    ]
    code = f"from one import one\n\n\n{GOOD}\n\n{bad}"
    result, _ = _prune(make_context, code, plan=[planned("7")], changed=changed)
    assert [(bug["id"], bug["tests"], bug["test"]) for bug in result["suspected_bugs"]] == [
        ("test_own", ["test_own"], "def test_own():\n    assert one() > 1"),
        ("test_p1_less", ["test_p1_less"], "def test_p1_less():\n    assert one() < 1"),
    ]


@pytest.mark.real
def test_what_leaves_something_behind_or_ends_the_process_costs_itself_only(make_context: MakeContext) -> None:
    """The session is complete all the same, and ends although the thread and the process do not."""
    code = """import os, socket, subprocess, sys, threading, time
from one import one

KEPT = []


def test_thread():
    threading.Thread(target=time.sleep, args=(600,)).start()
    assert one() == 1


def test_process():
    KEPT.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
    assert one() == 1


def test_socket():
    KEPT.append(socket.socket())
    assert one() == 1


def test_exit():
    assert os._exit(3) == one()


def test_good():
    assert one() == 1
"""
    result, left = _prune(make_context, code)
    told = {each["test"].rpartition("::")[2]: each["message"] for each in result["pruned"]}
    names = ["thread", "process", "socket"]
    assert told.pop("test_exit").startswith("it ended the whole test process (exit code 3)")
    assert told == {f"test_{name}": f"it leaves a {name} behind, which it must end" for name in names}
    assert (result["status"], result["passed"], result["coverage"]) == ("passed", 1, 100.0)
    assert not any(f"test_{name}" in left for name in ("exit", *names))


@pytest.mark.real
@pytest.mark.parametrize(("says", "message"), [(6, "AssertionError"), (9, "it asserts the contrary of P1")])
def test_row_about_a_suspected_bug_costs_itself_only(make_context: MakeContext, says: int, message: str) -> None:
    """``twice(3)`` gives 9: whether its row expects 6, as the plan does, and fails, or takes 9 for right and passes."""
    source = "def twice(n):\n    return n * n\n"
    code = f"""import pytest
from two import twice


@pytest.mark.parametrize("n, expected", [(2, 4), (3, {says}), (0, 0)])
def test_twice(n, expected):
    assert twice(n) == expected
"""
    bug = judged(item("P1", "6", "twice", "3"), source, "two", "does not hold", got="9")
    files = [{"path": "tests/test_two.py", "content": code}]
    context = make_context({"two.py": source}, target="two.py", files=files, runs=1, plan=[bug])
    result: dict[str, Any] = prune_tests(context)
    assert [each["test"] for each in result["pruned"]] == [f"tests.test_two::test_twice[3-{says}]"]
    assert message in result["pruned"][0]["message"]
    assert (result["passed"], result["coverage"]) == (2, 100.0)
    assert [(each["id"], each["tests"]) for each in result["suspected_bugs"]] == [("P1", ["test_twice"] * (says == 6))]
    left = (context.workspace.root / "tests/test_two.py").read_text()
    assert left == code.replace(f"(3, {says}), ", "")


REACHES = st.dictionaries(st.text("abc", min_size=1), st.frozensets(st.integers(0, 12)), max_size=9)


@given(REACHES)
def test_nothing_is_lost_and_nobody_is_needless(reaches: dict[str, frozenset[int]]) -> None:
    kept = smallest_cover({test: frozenset(reached) for test, reached in reaches.items()})
    assert kept == [test for test in reaches if test in kept]
    everything = frozenset[int]().union(*reaches.values())
    assert frozenset[int]().union(*(reaches[test] for test in kept)) == everything
    for test in kept:
        assert frozenset[int]().union(*(reaches[other] for other in kept if other != test)) != everything


def test_first_of_those_equal_is_kept() -> None:
    assert smallest_cover({"a": frozenset({1, 2}), "b": frozenset({2, 1}), "c": frozenset({3})}) == ["a", "c"]


def test_what_the_others_made_needless_goes() -> None:
    greedy = {"most": frozenset({1, 2, 3, 4}), "left": frozenset({1, 2, 5}), "right": frozenset({3, 4, 6})}
    assert smallest_cover(greedy) == ["left", "right"]
