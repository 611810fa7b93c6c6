"""What the flow ``testgen`` makes of folders, of unusable files, and of invalid tests and plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.measuring.coverage_run import OMITTED
from codex_multi_role.extensions.test_generation.mutants import is_installed
from tests.support.generation import ABOVE, BELOW, IMPORT, P1, P2, SIGN, Generation, code, item, plan
from tests.support.teams import Record

pytestmark = pytest.mark.usefixtures("scripted_codex")

WHOLE = IMPORT + BELOW + ABOVE


def choose(**by_file: Record) -> list[Record]:
    """One answer, by the file that the prompt is about."""
    choices = [
        {"when": f"'for {name}.py' in prompt or 'of {name}.py' in prompt", **answer} for name, answer in by_file.items()
    ]
    return [{"choose": choices}]


@pytest.mark.long
def test_folder_gives_one_result_per_program_file(tmp_path: Path) -> None:
    """Only here a folder is tested, its files at once. A file that is not valid Python gets a result, but no turn."""
    files = {
        "pack/__init__.py": '"""Nothing but words."""\n',
        "pack/one.py": "def one():\n    return 1\n",
        "pack/two.py": "def two():\n    return 2\n",
        "pack/broken.py": "not one line of Python\n",
        "pack/tests/test_one.py": "def test_x():\n    pass\n",
    }
    answers = {
        f"pack/{name}": code(f"from pack.{name} import {name}\n\n\ndef test_p1():\n    assert {name}() == {value}\n")
        for name, value in (("one", 1), ("two", 3))
    }
    given = Generation(
        tmp_path,
        files,
        test_planner=[
            *choose(**{"pack/one": plan(item("P1", "1", "one")), "pack/two": plan(item("P1", "3", "two"))}),
            {"json": {"withdrawn": []}},
        ],
        test_developer=choose(**answers),
    )
    report = given.run("pack", max_iterations=1, concurrency=2)
    assert (report.outcome, report.exit_code) == ("suspected_bugs", 1), report
    results = {result["file"]: result for result in given.results}
    assert {name: result["status"] for name, result in results.items()} == {
        "pack/broken.py": "not_python",
        "pack/one.py": "success",
        "pack/two.py": "incomplete",
    }
    assert results["pack/broken.py"]["reason"] == "pack/broken.py: line 1: invalid syntax"
    assert results["pack/broken.py"]["metrics"]["total_tokens"] == 0
    assert results["pack/two.py"]["suspected_bugs"][0]["id"] == "P1"
    assert not (given.team.workspace / "tests/test_pack_two.py").exists()  # no test of it passed
    assert (given.team.workspace / "tests/test_pack_one.py").exists()
    assert all(results[name]["metrics"]["total_tokens"] > 1000 for name in ("pack/one.py", "pack/two.py"))


def test_other_languages_are_refused_before_any_turn(tmp_path: Path) -> None:
    given = Generation(tmp_path, {"app.ts": "export {}\n"}, test_planner=[], test_developer=[])
    report = given.run("app.ts")
    assert (report.exit_code, report.totals["turns"]) == (2, 0)
    assert "testgen supports Python only" in report.reason


@pytest.mark.long
def test_src_layout_is_imported_from_there_in_the_sandbox_too(tmp_path: Path) -> None:
    """Only here generated tests are measured in Codex's sandbox, again and again and with mutants."""
    whole = WHOLE.replace("from sign", "from shapes.sign")
    given = Generation(
        tmp_path,
        {"src/shapes/__init__.py": "", "src/shapes/sign.py": SIGN},
        test_planner=[plan(P1, P2)],
        test_developer=[code(whole)],
    )
    report = given.run("src/shapes/sign.py", sandbox=True, runs=2, mutation=is_installed(), max_mutants=1)
    assert (report.outcome, report.exit_code) == ("success", 0)
    (result,) = given.results
    assert (result["file"], result["tests"]) == ("src/shapes/sign.py", ["tests/test_shapes_sign.py"])
    assert result["metrics"]["coverage_percent"] == 100.0
    assert result["flaky"] == {"runs": 2, "reason": "", "tests": {}}
    assert result["mutation"]["status"] == ("judged" if is_installed() else "not judged")
    assert result["metrics"]["mutation_killed"] != 0
    assert "imported as `shapes.sign`" in given.prompt("test_developer", 1)


def test_empty_folder_is_reported(tmp_path: Path) -> None:
    """The outcome is nothing_to_test, and no role is asked."""
    given = Generation(tmp_path, {"empty/readme": "nothing"})
    report = given.run("empty")
    assert (report.outcome, report.exit_code) == ("nothing_to_test", 1)
    assert report.reason.startswith("empty contains no Python file to test; testgen supports")
    assert given.results == []
    assert given.asked == []


def test_target_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    given = Generation(tmp_path, {})
    with pytest.raises(UsageError, match=r"the input target is not in the workspace: .*/gone\.py"):
        given.run("gone.py")
    assert not given.team.runs.exists()


def test_binary_file_is_reported_as_not_python(tmp_path: Path) -> None:
    given = Generation(tmp_path, {})
    (given.team.workspace / "picture.py").write_bytes(b"\x89PNG\r\n\xff\x00")
    assert given.run("picture.py").exit_code == 1
    assert given.results[0]["status"] == "not_python"


def test_file_that_the_settings_of_the_project_omit_costs_no_turn(tmp_path: Path) -> None:
    files = {"tests/test_sign.py": "from sign import sign\n\n\ndef test_plus():\n    assert sign(1) == 1\n"}
    given = Generation(tmp_path, {**files, "sign.py": SIGN, ".coveragerc": "[run]\nomit = */sign.py\n"})
    assert (given.run("sign.py").exit_code, given.asked) == (1, [])
    assert (given.results[0]["status"], given.results[0]["reason"]) == ("omitted", OMITTED)
    assert given.results[0]["covered_before"] is None


def test_empty_plan_ends_it(tmp_path: Path) -> None:
    given = Generation(tmp_path, {"sign.py": SIGN}, test_planner=[plan()])
    report = given.run("sign.py")
    assert (report.outcome, report.exit_code) == ("incomplete", 1)
    assert (given.results[0]["status"], given.results[0]["reason"]) == ("no_plan", "the plan has no usable item")
