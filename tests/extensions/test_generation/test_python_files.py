"""Which files need tests, and how their tests import them."""

from __future__ import annotations

from typing import Any

from codex_multi_role.extensions.test_generation.python_files import find_python_files
from tests.support.checks import FOO_CALC, MakeContext


def _files(result: dict[str, Any]) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = result["files"]
    return files


def test_module_is_named_as_tests_import_it(make_context: MakeContext) -> None:
    files = {"packages/foo/src/foo/__init__.py": "", "packages/foo/src/foo/calc.py": FOO_CALC}
    found = _files(find_python_files(make_context(files, target="packages/foo/src/foo")))
    assert [each["module"] for each in found] == ["foo.calc"]


def test_names_that_are_taken_are_left_alone(make_context: MakeContext) -> None:
    files = {"sign.py": FOO_CALC, "tests/test_sign.py": "mine = 1\n", "other/test_sign_2.py": "mine = 2\n"}
    found = _files(find_python_files(make_context(files, target=".")))
    assert [each["tests"] for each in found] == ["tests/test_sign_3.py"]


def test_environment_files_are_not_project_files(make_context: MakeContext) -> None:
    broken = {"venv/pyvenv.cfg": "", "venv/lib/x.py": "def", "node_modules/y.py": "def", "a.py": "x = 1\n"}
    found = _files(find_python_files(make_context(broken, target=".")))
    assert [each["file"] for each in found] == ["a.py"]
