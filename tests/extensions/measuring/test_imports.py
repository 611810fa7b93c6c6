from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.checks.environments import known_folders
from codex_multi_role.extensions.measuring.coverage import measure_coverage
from codex_multi_role.extensions.measuring.imports import import_folder, module_name
from tests.support.checks import FOO_CALC, FOO_TESTS, MakeContext, shadowed_package
from tests.support.long_run import by_default

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("file", "others", "module"),
    [
        ("calc.py", [], "calc"),
        ("pack/calc.py", ["pack/__init__.py"], "pack.calc"),
        ("pack/calc.py", [], "pack.calc"),
        ("pack/__init__.py", [], "pack"),
        ("src/foo/calc.py", ["src/foo/__init__.py"], "foo.calc"),
        ("src/foo/calc.py", [], "foo.calc"),
        ("src/calc.py", ["src/__init__.py"], "src.calc"),
        ("lib/foo/calc.py", ["lib/foo/__init__.py"], "foo.calc"),
        ("known/foo/calc.py", [], "foo.calc"),
        ("packages/foo/src/foo/calc.py", ["packages/foo/src/foo/__init__.py"], "foo.calc"),
        ("packages/foo/src/space/foo/calc.py", ["packages/foo/src/space/foo/__init__.py"], "space.foo.calc"),
        ("packages/foo/foo/calc.py", ["packages/foo/foo/__init__.py"], "foo.calc"),
        ("packages/foo/calc.py", ["packages/foo/pyproject.toml"], "calc"),
    ],
)
def test_name_a_file_is_imported_by(tmp_path: Path, file: str, others: list[str], module: str) -> None:
    for name in [file, *others]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert module_name(tmp_path, Path(file), [Path("known")]) == module
    assert (tmp_path / import_folder(tmp_path, file, [Path("known")]) / Path(*module.split(".")[:1])).parent.is_dir()


def test_what_is_installed_in_the_project_is_not_its_own(tmp_path: Path) -> None:
    for folder in ("lib", "venv/lib/python3.11/site-packages"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    places = [f"{tmp_path}/lib", f"{tmp_path}/venv/lib/python3.11/site-packages", "/usr/lib", str(tmp_path)]
    assert known_folders(tmp_path, places) == (Path("lib"), Path())


def _result(result: dict[str, Any]) -> dict[str, Any]:
    return result


@pytest.mark.parametrize("folder", by_default(["packages/foo/src"], ["src", "lib", "packages/foo/src", "packages/foo"]))
def test_copy_is_measured_though_the_original_is_installed(
    make_context: MakeContext, tmp_path: Path, folder: str
) -> None:
    files = {f"{folder}/foo/__init__.py": "", f"{folder}/foo/calc.py": FOO_CALC, "tests/test_calc.py": FOO_TESTS}
    installed = {"PYTHONPATH": f"{tmp_path}/work/{folder}"}
    context = make_context(files, environment=installed, target=f"{folder}/foo/calc.py", tests="tests/test_calc.py")
    result = _result(measure_coverage(context))
    assert (result["status"], result["coverage"]) == ("passed", 100.0)


def test_original_gives_no_figure(make_context: MakeContext, tmp_path: Path) -> None:
    result = _result(measure_coverage(shadowed_package(make_context, f"{tmp_path}/work/lib")))
    assert f"import foo.calc from {tmp_path}/work/lib/foo/calc.py, not from the copy" in result["reason"] or (
        f"import foo from {tmp_path}/work/lib/foo/__init__.py, not from the copy" in result["reason"]
    )
    assert result["coverage"] is None


def test_what_is_made_or_installed_is_not_copied(make_context: MakeContext) -> None:
    folders = ("venv", "env", "node_modules", "built", "sub/kept")
    tests = f"""
        from pathlib import Path

        def test_copied():
            assert [each for each in {folders} if Path(each).exists()] == ["sub/kept"]
            assert Path("ignored.txt").exists()
    """
    marked = {f"{name}/pyvenv.cfg": "" for name in ("env",)}
    marked["venv/lib/x.py"] = "x = 1\n"
    files = {"node_modules/x.py": "x = 1\n", "built/x.py": "", "sub/kept/x.py": "x = 1\n", "ignored.txt": "x"}
    ignored = {".gitignore": "built/\nignored.txt\nsub/kept\n"}
    context = make_context({**files, **marked, **ignored, "tests/test_a.py": tests}, target="sub/kept/x.py")
    result = _result(measure_coverage(context))
    assert result["status"] == "passed", result["failures"]


def test_environment_files_are_not_project_files(make_context: MakeContext) -> None:
    """Virtual environments and node_modules are skipped."""
    broken = {"venv/pyvenv.cfg": "", "venv/lib/x.py": "def", "node_modules/y.py": "def", "a.py": "x = 1\n"}
    context = make_context({**broken, "tests/test_a.py": "def test_a(): assert 1\n"}, target=".")
    result = _result(measure_coverage(context))
    assert (result["status"], result["reason"]) == ("passed", "")
