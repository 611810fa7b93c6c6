"""Verdicts on real projects: are changes of a scripted team judged as a person would, with the figures of plain pytest?

    pip download --no-deps --no-binary :all: boltons==25.0.0 …        the projects of `PROJECTS`; unpack each archive
    python benchmarks/verdicts.py FOLDER --python PYTHON [NAME …]

``FOLDER`` has the unpacked archives; ``PYTHON`` has pytest < 8.4 (a hook of boltons) and hypothesis, for all of them.
A scripted team of one role says DONE after its change. For every kind of change, the exit code is compared with
`EXPECTED`, and the figures of the tests with those of plain pytest in Codex's sandbox, outside of any run. The exit
code is 1 if one differs. Before and after every change, 9 tests of boltons and 40 of jsonrpclib_pelix fail in the
sandbox, which has no network, and 2 of click fail with this pytest. 13 modules of python-dateutil, 2 of itsdangerous
and one each of filelock, markdown and tenacity cannot be imported.
"""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import yaml

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.codex.permissions import sandboxed

RIGHT, WRONG, UNIMPORTABLE, NONE = "right", "wrong", "unimportable", "none"
DELETES, SKIPS, RENAMES, DELETES_FAILING = "deletes", "skips", "renames", "deletes failing"
EMPTIES = "empties"
EXPECTED = {
    RIGHT: 0, NONE: 0, WRONG: 1, UNIMPORTABLE: 1, DELETES: 1, SKIPS: 1, RENAMES: 0, DELETES_FAILING: 0, EMPTIES: 1
}  # fmt: skip
"""The exit code of a run after each kind of change; the last seven are: a function raises, a module cannot be imported,
a test that passed is deleted, skipped or renamed, a test that failed is deleted, and a function raises while all test
files are emptied."""
ROLE = {"name": "one", "prompt_text": "Work.", "behaviors": {"can_finish": True, "apply_files": True}}
PLUGIN = """
import json, os

seen = {}

def pytest_runtest_logreport(report):
    seen.setdefault(report.nodeid, []).append(report.outcome)

def pytest_collectreport(report):
    if report.failed:
        seen[report.nodeid] = ["failed"]

def pytest_sessionfinish():
    with open(os.environ["OUTCOMES"], "w") as file:
        json.dump(seen, file)
"""
Outcomes = Mapping[str, str]
SRC = "-o pythonpath=src"


@dataclass(frozen=True)
class Project:
    """``function`` of the module ``code`` is called by its tests, of which ``test`` in the file ``tests`` is one.

    ``failing``: a test that fails before, its file first.
    """

    name: str
    code: str
    function: str
    tests: str
    test: str
    kinds: tuple[str, ...]
    failing: tuple[str, str] = ("", "")
    pytest_options: str = ""


PROJECTS = (
    Project(
        "boltons-25.0.0",
        "boltons/mathutils.py",
        "clamp",
        "tests/test_mathutils.py",
        "test_ceil_basic",
        (DELETES, SKIPS, DELETES_FAILING),
        failing=("tests/test_socketutils.py", "test_short_lines"),
    ),
    Project(
        "click-7.1.2",
        "src/click/formatting.py",
        "measure_table",
        "tests/test_utils.py",
        "test_echo_custom_file",
        (DELETES, RENAMES, DELETES_FAILING),
        failing=("tests/test_arguments.py", "test_bytes_args"),
        pytest_options=SRC,
    ),
    Project(
        "jsonrpclib_pelix-0.4.3.4",
        "jsonrpclib/jsonclass.py",
        "load",
        "tests/test_jsonclass.py",
        "test_primitive",
        (RENAMES, SKIPS, DELETES_FAILING),
        failing=("tests/test_server.py", "test_sequencial"),
    ),
    Project(
        "more_itertools-11.2.1",
        "more_itertools/recipes.py",
        "take",
        "tests/test_recipes.py",
        "test_null_take",
        (SKIPS,),
    ),
    Project(
        "parso-0.8.7",
        "parso/utils.py",
        "split_lines",
        "test/test_utils.py",
        "test_bytes_to_unicode_failing_encoding",
        (DELETES, UNIMPORTABLE),
    ),
    Project(
        "pyrsistent-0.20.0",
        "pyrsistent/_helpers.py",
        "thaw",
        "tests/freeze_test.py",
        "test_freeze_list",
        (RENAMES, UNIMPORTABLE),
    ),
    Project("tomlkit-0.13.3", "tomlkit/api.py", "loads", "tests/test_api.py", "test_add_dotted_key", (SKIPS, DELETES)),
    Project(
        "toolz-1.2.0",
        "toolz/dicttoolz.py",
        "merge_with",
        "toolz/tests/test_dicttoolz.py",
        "test_merge_iterable_arg",
        (RENAMES, UNIMPORTABLE),
    ),
    Project(
        "filelock-3.18.0",
        "src/filelock/_util.py",
        "ensure_directory_exists",
        "tests/test_error.py",
        "test_timeout_str",
        (EMPTIES,),
        pytest_options=SRC,
    ),
    Project(
        "itsdangerous-2.2.0",
        "src/itsdangerous/encoding.py",
        "want_bytes",
        "tests/test_itsdangerous/test_encoding.py",
        "test_base64_bad",
        (DELETES, RENAMES, UNIMPORTABLE, EMPTIES),
        pytest_options=SRC,
    ),
    Project(
        "markdown-3.8.2",
        "markdown/util.py",
        "code_escape",
        "tests/test_meta.py",
        "test_get_version",
        (DELETES, SKIPS, EMPTIES),
    ),
    Project(
        "python-dateutil-2.9.0.post0",
        "src/dateutil/easter.py",
        "easter",
        "tests/test_easter.py",
        "test_easter_western",
        (DELETES, RENAMES, EMPTIES),
        pytest_options=SRC,
    ),
    Project(
        "schedule-1.2.2", "schedule/__init__.py", "every", "test_schedule.py", "test_time_range_repr", (SKIPS, EMPTIES)
    ),
    Project(
        "simplejson-3.20.1",
        "simplejson/__init__.py",
        "loads",
        "simplejson/tests/test_scanstring.py",
        "test_overflow",
        (DELETES, RENAMES),
    ),
    Project(
        "tenacity-9.1.2",
        "tenacity/_utils.py",
        "to_seconds",
        "tests/test_utils.py",
        "test_is_coroutine_callable",
        (SKIPS, DELETES, EMPTIES),
        pytest_options="--deselect tests/test_asyncio.py::TestContextManager::test_sleeps",  # fails on a busy machine
    ),
    Project(
        "waitress-3.0.2",
        "src/waitress/utilities.py",
        "find_double_newline",
        "tests/test_utilities.py",
        "test_one_linefeed",
        (),
        pytest_options=f"{SRC} -o addopts= --ignore=tests/test_functional.py",  # waits for ever without a network
    ),
)


def changed(project: Project, kind: str, root: Path) -> dict[str, str]:
    """The files that the role writes, by their paths."""
    failing, name = project.failing
    raises = "raise RuntimeError('wrong')"
    edits: dict[str, Callable[[], dict[str, str]]] = {
        NONE: dict,
        RIGHT: lambda: {project.code: (root / project.code).read_text(encoding="utf-8") + "\n# a comment\n"},
        WRONG: lambda: edited(root, project.code, project.function, before_body=raises),
        UNIMPORTABLE: lambda: edited(root, project.code, project.function, name=f"renamed_{project.function}"),
        DELETES: lambda: edited(root, project.tests, project.test, delete=True),
        SKIPS: lambda: edited(root, project.tests, project.test, decorator="@__import__('pytest').mark.skip"),
        RENAMES: lambda: edited(root, project.tests, project.test, name=f"{project.test}_renamed"),
        DELETES_FAILING: lambda: edited(root, failing, name, delete=True),
        EMPTIES: lambda: {**dict.fromkeys(test_files(root), ""), **edits[WRONG]()},
    }
    return edits[kind]()


def test_files(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in root.rglob("*.py") if path.match("test_*.py")]


def edited(
    root: Path,
    path: str,
    function: str,
    *,
    before_body: str = "",
    name: str = "",
    decorator: str = "",
    delete: bool = False,
) -> dict[str, str]:
    """The text of the file with one change of its first function of that name."""
    lines = (root / path).read_text(encoding="utf-8").splitlines(keepends=True)
    node = next(
        each
        for each in ast.walk(ast.parse("".join(lines)))
        if isinstance(each, ast.FunctionDef) and each.name == function
    )
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
    start, indent = node.body[0].lineno - 1, " " * node.col_offset
    if before_body:
        lines[start:start] = [f"{' ' * node.body[0].col_offset}{before_body}\n"]
    if name:
        lines[node.lineno - 1] = lines[node.lineno - 1].replace(f"def {function}(", f"def {name}(", 1)
    if decorator:
        lines[first:first] = [f"{indent}{decorator}\n"]
    if delete:
        del lines[first : node.end_lineno]
    return {path: "".join(lines)}


@dataclass(frozen=True)
class Plain:
    """Plain pytest in the sandbox, outside of any run; ``python`` runs it on copies of the projects in ``folder``."""

    folder: Path
    python: Path
    known: dict[Project, Outcomes] = field(default_factory=dict)

    def outcomes(self, project: Project, files: Mapping[str, str]) -> Outcomes:
        """Of each test by its node id, with ``files`` changed."""
        with tempfile.TemporaryDirectory() as name:
            root = copy(self.folder / project.name, Path(name))
            for path, text in files.items():
                (root / path).write_text(text, encoding="utf-8")
            scratch = Path(name) / "scratch"
            (scratch / "tmp").mkdir(parents=True)
            (scratch / "seen_outcomes.py").write_text(PLUGIN)
            command = [str(self.python), "-B", "-m", "pytest", "-p", "seen_outcomes", "-p", "no:cacheprovider"]
            command += ["--continue-on-collection-errors"]
            argv = sandboxed(find_codex(None, os.environ), [*command, *shlex.split(project.pytest_options)], scratch)
            more = {"PYTHONPATH": str(scratch), "OUTCOMES": f"{scratch}/outcomes.json", "TMPDIR": f"{scratch}/tmp"}
            environment = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"} | more
            subprocess.run(argv, cwd=root, env=environment, capture_output=True, check=False)
            seen = read(scratch / "outcomes.json")
        return {test: outcome(each) for test, each in seen.items()}

    def before(self, project: Project) -> Outcomes:
        return self.known.setdefault(project, self.known.get(project) or self.outcomes(project, {}))

    def figures(self, project: Project, kind: str, files: Mapping[str, str]) -> dict[str, Any]:
        """What a result should say after the change; empty if pytest could not start."""
        before, after = self.before(project), self.outcomes(project, files)
        if not after:
            return {}
        failed = {test for test in before if before[test] == "failed"}
        failing = {test for test in after if after[test] == "failed"}
        hidden = {test for test in before if any(test.startswith(f"{place}::") for place in failing)}  # below a module
        lost = before.keys() - after.keys() - hidden
        passed_before = {test for test in before if before[test] == "passed"}
        skipped = {test for test in after if after[test] == "skipped"}
        gone = sorted(passed_before & lost)
        return {
            "passed": Counter(after.values())["passed"],
            "new_failures_tests": sorted({*(failing - failed), *(passed_before & skipped)}),
            "fixed_tests": sorted(test for test in failed if after.get(test) == "passed"),
            "removed_tests": [] if kind == RENAMES else gone,
            "moved_tests": gone if kind == RENAMES else [],
            "dropped_tests": sorted(failed & (lost | skipped)),
            "still_failing": len(failed & failing),
        }


def outcome(phases: Sequence[str]) -> str:
    return next((each for each in ("failed", "skipped") if each in phases), "passed")


def copy(source: Path, folder: Path) -> Path:
    root = shutil.copytree(source, folder / source.name)
    subprocess.run(["git", "init", "--quiet", "."], cwd=root, check=True)
    return root


def read(path: Path) -> Mapping[str, Any]:
    """A test result; empty if the tests did not run."""
    found: Mapping[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def judged(project: Project, kind: str, root: Path, plain: Plain) -> tuple[str, list[str]]:
    """Run the team in ``root``; what is shown, and what differs from what was expected."""
    files = changed(project, kind, root)
    done = run(project, kind, root, plain.python, files)
    before, after = (read(root / "runs/one" / part / "result.json") for part in ("baseline", "tests/001"))
    expected = {"exit": EXPECTED[kind], "before": Counter(plain.before(project).values())["passed"]}
    found = {"exit": done.returncode, "before": before.get("passed")}
    if files:
        figures = plain.figures(project, kind, files)
        expected |= figures
        found |= {key: sorted(after.get(key, [])) if key.endswith("_tests") else after.get(key) for key in figures}
    shown = f"exit {done.returncode}  before {before.get('passed')} passed, {before.get('failed')} failed"
    shown += f", denied {before.get('forbidden')}" if before.get("forbidden") else ""
    keys = ("passed", "failed", "new_failures", "still_failing", "removed", "moved", "dropped", "flaky")
    shown += f"  after {'  '.join(f'{key} {after.get(key)}' for key in keys)}" if after else ""
    differ = [difference(key, found[key], expected[key]) for key in expected if found[key] != expected[key]]
    return shown, [*differ, *([done.stderr[-600:]] if done.returncode != EXPECTED[kind] else [])]


def difference(key: str, found: object, expected: object) -> str:
    """Of two lists, only what is in one of them."""
    if isinstance(found, list) and isinstance(expected, list):
        found, expected = (
            [each for each in one if each not in other][:9] for one, other in ((found, expected), (expected, found))
        )
    return f"{key}: {found}, expected {expected}"


def run(
    project: Project, kind: str, root: Path, python: Path, files: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    written = [{"path": path, "content": f"{{% raw %}}{text}{{% endraw %}}"} for path, text in files.items()]
    with tempfile.TemporaryDirectory() as name:
        roles = Path(name)
        (roles / "catalog.yaml").write_text(yaml.safe_dump({"version": 1, "roles": [ROLE]}))
        answer = {"json": {"summary": kind, "status": "DONE", "files": written}}
        (roles / "playbook.yaml").write_text(yaml.safe_dump({"name": kind, "roles": {"one": [answer]}}))
        options = ["--goal", kind, "--cycles", "1", "--roles", str(roles), "--run-id", "one", "--quiet"]
        options += ["--playbook", str(roles / "playbook.yaml"), "--python", str(python)]
        options += ["--test-seconds", "3000"]  # no verdict depends on what else the machine does
        if project.pytest_options:
            options += ["--pytest-cmd", f"pytest {project.pytest_options}"]
        command = [sys.executable, "-m", "codex_multi_role", *options]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--python", required=True, type=click.Path(exists=True, path_type=Path))
@click.argument("names", nargs=-1)
def main(folder: Path, python: Path, names: tuple[str, ...]) -> None:
    plain, judgements, wrong = Plain(folder, python.absolute()), 0, 0
    for project in PROJECTS:
        for kind in (RIGHT, NONE, WRONG, *project.kinds) if not names or project.name in names else ():
            with tempfile.TemporaryDirectory() as name:
                shown, differ = judged(project, kind, copy(folder / project.name, Path(name)), plain)
            judgements, wrong = judgements + 1, wrong + bool(differ)
            click.echo(f"{project.name:24} {kind:15} {shown}")
            for each in differ:
                click.echo(f"    DIFFERS: {each}")
    click.echo(f"{judgements} verdicts, {wrong} of them differ")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
