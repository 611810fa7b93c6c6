"""How coverage is measured, and what one test adds to it.

Costs: each project is measured by a pytest of its own.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.measuring.coverage import measure_coverage
from codex_multi_role.extensions.measuring.coverage_run import OMITTED, REPORT_SECONDS
from tests.support.checks import WITH_PLUGINS, MakeContext, run_check
from tests.support.long_run import by_default

pytestmark = pytest.mark.real

SOURCE = """\
def sign(number):
    if number < 0:
        return "minus"
    for _ in range(number):
        return "plus"
    return "zero"
"""
HALF = (
    "from sign import sign\ndef test_minus(): assert sign(-1) == 'minus'\ndef test_plus(): assert sign(1) == 'plus'\n"
)
WHOLE = f"{HALF}def test_zero(): assert sign(0) == 'zero'\n"


_measure = partial(run_check, measure_coverage)


def _of(make_context: MakeContext, tests: str, **more: object) -> dict[str, Any]:
    return _measure(make_context({"sign.py": SOURCE, "tests/test_sign.py": tests}, target="sign.py", **more))


def test_it_tells_what_each_test_reaches(make_context: MakeContext) -> None:
    tests = """
        import pytest
        from sign import sign

        @pytest.fixture
        def zero():
            return sign(0)

        def test_fixture(zero):
            assert zero == "zero"

        class TestMinus:
            @pytest.mark.parametrize("number", [-1, -2])
            def test_minus(self, number):
                assert sign(number) == "minus"

        def test_nothing():
            pass
    """
    result = _of(make_context, tests, per_test=True)
    assert result["reached"] == {
        "tests.test_sign.TestMinus::test_minus": [{"file": "sign.py", "lines": "2-3", "branches": "2->3"}],
        "tests.test_sign::test_fixture": [{"file": "sign.py", "lines": "2, 4, 6", "branches": "2->4, 4->6"}],
        "tests.test_sign::test_nothing": [],
    }


@pytest.mark.sample("measuring")
def test_all_of_it_is_a_hundred(make_context: MakeContext, tmp_path: Path) -> None:
    marking = "from pathlib import Path\ndef test_mark(): Path('mark').touch()\n"
    context = make_context({"sign.py": SOURCE, "tests/test_sign.py": WHOLE + marking}, target="sign.py")
    result = _measure(context)
    assert (result["passed"], result["coverage"], result["uncovered"]) == (4, 100.0, [])
    assert {path.name for path in context.folder.iterdir()} == {
        "pytest_output.txt", "junit.xml", "coverage.json", "result.json"
    }  # fmt: skip
    assert {path.name for path in context.workspace.root.rglob("*")} == {"sign.py", "tests", "test_sign.py"}


def test_folder_counts_what_nobody_imports(make_context: MakeContext) -> None:
    files = {"pack/__init__.py": "", "pack/used.py": "x = 1\n", "pack/unused.py": "y = 1\nz = 2\n"}
    tests = "from pack import used\ndef test_x(): assert used.x\n"
    result = _measure(make_context({**files, "tests/test_pack.py": tests}, target="pack"))
    assert result["uncovered"] == [{"file": "pack/unused.py", "lines": "1-2", "branches": ""}]
    assert result["coverage"] == pytest.approx(33.33)


def test_failed_tests_do_not_crash_and_unreached_lines_are_named(make_context: MakeContext) -> None:
    result = _of(make_context, f"{HALF}def test_wrong(): assert sign(-1) == 'plus'\n")
    assert (result["status"], result["crashed"], result["passed"], result["failed"]) == ("failed", False, 2, 1)
    assert "assert 'minus' == 'plus'" in result["failures"][0]["message"]
    assert result["uncovered"] == [{"file": "sign.py", "lines": "6", "branches": "4->6"}]
    assert result["coverage"] == 80.0  # 6 lines and 4 branches, of which one each is missing


@pytest.mark.parametrize(
    ("target", "tests", "ended", "words"),
    [
        ("sign.py", "import nowhere_to_be_found\n", ("crashed", True, None), "nowhere_to_be_found"),
        ("sign.py", "def test_x(:\n", ("syntax error", True, None), "tests/test_sign.py: line 1: invalid syntax"),
        ("words.py", "", ("could not run", True, None), "words.py: line 1: invalid syntax"),
        ("gone.py", "", ("could not run", True, None), "gone.py: cannot be read"),
        ("empty", "", ("could not run", True, None), "contains no Python file"),
    ],
)
def test_what_cannot_be_measured_says_why(
    make_context: MakeContext, target: str, tests: str, ended: tuple[str, bool, None], words: str
) -> None:
    files = {"sign.py": SOURCE, "words.py": "not one line of Python", "empty/readme": "", "tests/test_sign.py": tests}
    result = _measure(make_context(files, target=target))
    assert (result["status"], result["crashed"], result["coverage"]) == ended
    assert words in result["reason"] + result["output_tail"]


@pytest.mark.long
def test_tests_that_take_too_long_together_are_ended(make_context: MakeContext) -> None:
    """No short test of the measurement reaches the limit of all its tests."""
    slow = "import pytest, time\n@pytest.mark.parametrize('n', range(90))\ndef test_x(n): time.sleep(0.5)\n"
    result = _of(make_context, slow, timeout_seconds=1.5)
    assert (result["status"], result["crashed"], result["exit_code"]) == ("timed out", True, None)
    assert result["coverage"] is None


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        pytest.param("exec('while True: pass')", "no result after", marks=pytest.mark.long),
        pytest.param(
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]); time.sleep(600)",
            "test process",
            marks=pytest.mark.long,
        ),
        pytest.param("os._exit(0)", "it ended the whole test process", marks=pytest.mark.long),
        ("os.kill(os.getpid(), 9)", "it ended the whole test process"),
        pytest.param("pytest.exit('enough')", "it ended the whole test process", marks=pytest.mark.long),
    ],
)
def test_harm_of_one_test_is_its_own(
    make_context: MakeContext, monkeypatch: pytest.MonkeyPatch, harm: str, words: str
) -> None:
    monkeypatch.setattr("codex_multi_role.extensions.measuring.coverage_run.TESTS_AT_LEAST", 20)
    tests = f"import os, pytest, signal, time\n{HALF}def test_p(): {harm}\ndef test_p2(): assert sign(0) == 'zero'\n"
    result = _of(make_context, tests, timeout_seconds=20.0)
    assert (result["status"], result["passed"], result["failed"]) == ("failed", 3, 1), result
    assert result["coverage"] == 100.0
    (failure,) = result["failures"]
    assert failure["test"] == "tests.test_sign::test_p"
    assert words in failure["message"]


@pytest.mark.long
def test_tests_that_print_without_end_are_cut(make_context: MakeContext) -> None:
    """No short test of the measurement prints megabytes."""
    result = _of(make_context, "def test_x():\n    for _ in range(4): print('x' * 1_000_000)\n    assert False\n")
    assert result["status"] == "failed"
    assert len(json.dumps(result)) < 20_000


@pytest.mark.long
def test_plugins_of_the_environment_are_loaded(make_context: MakeContext) -> None:
    """No short test has a plug-in that is loaded by itself."""
    tests = "from sign import sign\ndef test_a(worker_id): assert sign(0) == 'zero', worker_id\n"
    result = _of(make_context, tests, environment=WITH_PLUGINS)
    assert (result["status"], result["passed"], result["failed"]) == ("passed", 1, 0)


@pytest.mark.long
def test_measurement_leaves_nothing_for_the_next(make_context: MakeContext) -> None:
    """No short test measures twice."""
    counting = (
        "from pathlib import Path\ndef test_x():\n    assert not Path('mark').exists()\n    Path('mark').touch()\n"
    )
    context = make_context({"a.py": "x = 1\n", "tests/test_a.py": counting}, target="a.py")
    assert [_measure(context)["status"] for _ in range(2)] == ["passed", "passed"]


MEASURING_SETTINGS = {
    "coveragerc": {".coveragerc": "[run]\nparallel = true\nsource = elsewhere\n"},
    "pyproject": {"pyproject.toml": "[tool.coverage.run]\nparallel = true\nsource = ['elsewhere']\n"},
    "pytest-cov": {"pytest.ini": "[pytest]\naddopts = --cov=sign --cov-branch --cov-fail-under=100\n"},
    "no-cov": {"pytest.ini": "[pytest]\naddopts = --cov=sign --no-cov\n"},
    "xdist": {"pytest.ini": "[pytest]\naddopts = -n 2\n"},
    "both": {"pytest.ini": "[pytest]\naddopts = -n 2 --cov --cov-report=xml\n"},
    "maxfail": {"pytest.ini": "[pytest]\naddopts = -x\n"},
    "cache": {"pytest.ini": "[pytest]\naddopts = --ff --sw --strict-config\ncache_dir = .cache\n"},
}


OF_PLUGINS = ["pytest-cov", "no-cov", "xdist", "both"]


@pytest.mark.parametrize("name", by_default(["both"], MEASURING_SETTINGS))
def test_users_own_settings_do_not_change_the_figures(make_context: MakeContext, tmp_path: Path, name: str) -> None:
    others = {"COVERAGE_FILE": str(tmp_path / "x"), "COVERAGE_PROCESS_START": "nowhere.ini", "COVERAGE_CORE": "none"}
    context = make_context(
        {"sign.py": SOURCE, "tests/test_sign.py": HALF, **MEASURING_SETTINGS[name]},
        target="sign.py",
        environment={**(WITH_PLUGINS if name in OF_PLUGINS else {}), **others},
    )
    result = _measure(context)
    assert (result["status"], result["coverage"]) == ("passed", 80.0), result


def test_target_that_the_projects_settings_omit_is_named(make_context: MakeContext) -> None:
    files = {"sign.py": SOURCE, "tests/test_sign.py": HALF, ".coveragerc": "[run]\nomit = */sign.py\n"}
    result = _measure(make_context(files, target="sign.py"))
    assert (result["status"], result["reason"].partition(":")[2]) == ("crashed", f" {OMITTED}")


@pytest.mark.long
@pytest.mark.parametrize("name", by_default(["both"], OF_PLUGINS))
def test_settings_of_plugins_that_are_not_loaded_do_no_harm(make_context: MakeContext, name: str) -> None:
    """The Python of the tests may have pytest without them, and the measurement needs neither."""
    result = _of(lambda files, **options: make_context({**files, **MEASURING_SETTINGS[name]}, **options), HALF)
    assert (result["status"], result["coverage"]) == ("passed", 80.0), result


def test_lost_coverage_data_gives_no_figure(make_context: MakeContext) -> None:
    """Tests that stop coverage.py are reported as crashed."""
    thief = "import sys, coverage\ncoverage.Coverage.current().stop()\n"
    result = _of(make_context, f"{thief}{WHOLE}")
    assert (result["status"], result["crashed"], result["coverage"]) == ("crashed", True, None)
    assert result["reason"] == "coverage.py measured nothing of sign.py, although the tests import it"


def test_tests_that_do_not_import_the_target_reach_nothing(make_context: MakeContext) -> None:
    result = _of(make_context, "def test_x(): assert True\n")
    assert (result["status"], result["coverage"]) == ("passed", 0.0)


@pytest.mark.long
@pytest.mark.parametrize(
    "start",
    [
        "subprocess.run([sys.executable, '-c', 'import sign; sign.sign(1)'], check=True)",
        pytest.param("os.system(sys.executable + ' -c \"import sign\"')", marks=pytest.mark.long),
        "(pid := os.fork()) or (sign.sign(1), os._exit(0)); os.waitpid(pid, 0)",
    ],
)
def test_what_another_python_executes_makes_no_wrong_figure(make_context: MakeContext, start: str) -> None:
    """No short test lets another process execute what is measured."""
    result = _of(make_context, f"import os, subprocess, sys, sign\ndef test_x():\n    {start}\n")
    assert (result["status"], result["coverage"]) == ("crashed", None)
    assert "another Python process" in str(result["reason"])


@pytest.mark.long
def test_another_python_changes_nothing_in_a_whole_figure(make_context: MakeContext) -> None:
    """No short test starts another Python beside a whole figure."""
    other = "import subprocess, sys\ndef test_other(): subprocess.run([sys.executable, '-c', ''], check=True)\n"
    result = _of(make_context, WHOLE + other)
    assert (result["status"], result["coverage"]) == ("passed", 100.0)


@pytest.mark.parametrize("target", ["../up.py", "/etc", ".git/x.py"])
def test_path_out_of_the_workspace_is_refused(make_context: MakeContext, target: str) -> None:
    with pytest.raises(UsageError, match="check coverage: target: unsafe path"):
        _measure(make_context({"tests/test_a.py": ""}, target=target))


def test_its_own_report_is_counted_into_its_time() -> None:
    assert measure_coverage.max_seconds({"timeout_seconds": 5}, 60) == 5 + REPORT_SECONDS
    assert measure_coverage.max_seconds({"timeout_seconds": 5, "per_test": True}, 60) == 5 + 2 * REPORT_SECONDS
