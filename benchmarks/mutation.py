"""The same mutants judged by the same tests, by us and by mutmut: two real modules with their tests.

*Ours* is the check ``mutation`` in a Python of its own, once stopping at the first test that kills a mutant, as mutmut
does, and once finding all of them (the matrix). *mutmut* is ``mutmut run`` with the names of the same mutants, without
earlier results. Both use the same Python, the same number of processes and no sandbox. The Python is inspected before
the measurement, as in a run, which inspects it once for all checks. A mutant of ours and one of mutmut's are the same
if the whole text of the file is. The verdicts of all of them are compared. Those that mutmut gave up waiting for are
left out of the times, because its limit is 15 s and ours 1 s for a test.

    python benchmarks/mutation.py [--runs 3]

Prints medians of wall time, the ratio, and every verdict that differs. Exits with 1 when ours takes more than 0.50 of
mutmut's time without the matrix, or when a verdict differs. The first start installs mutmut into its own environment.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from raw import medians, read_options

from codex_multi_role.checks.interpreter import Interpreter, find_interpreter, inspect
from codex_multi_role.workspace.commands import no_sandbox

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "tests" / "extensions" / "test_generation" / "programs"
PACKAGES = ["mutmut==3.8.1", "pytest==9.2.0", "coverage==7.17.3"]
AT_MOST, AT_ONCE, MUTANTS = 0.50, 2, 120
SETTINGS = '[tool.mutmut]\nsource_paths = ["{source}"]\npytest_add_cli_args_test_selection = ["tests"]\n'
TEXTS = """
import json, sys
from pathlib import Path
from typing import Any
import libcst
from mutmut.mutation.diff_apply import find_top_level_function_or_method, read_mutant_function, read_orig_module
from mutmut.mutation.diff_apply import read_mutants_module
from mutmut.utils.format_utils import orig_function_and_class_names_from_key
original, mutants, texts = read_orig_module(sys.argv[1]), read_mutants_module(sys.argv[1]), {}
for name in json.loads(Path("mutants", sys.argv[1] + ".meta").read_text())["exit_code_by_key"]:
    function, _ = orig_function_and_class_names_from_key(name)
    old = find_top_level_function_or_method(original, function.rpartition(".")[2])
    new = read_mutant_function(mutants, name).with_changes(leading_lines=old.leading_lines, name=old.name)
    texts[name] = original.deep_replace(old, new).code
print(json.dumps(texts))
"""
"""Run in mutmut's environment: the text of the file with each of its mutants."""
KILLED, SURVIVED, TIMED_OUT = {1, 3, -9, -11, 35}, {0, 5, 33}, {-24, 24, 36, 152, 255}
"""mutmut's exit codes."""


@dataclass(frozen=True)
class Subject:
    """A project with one module, ``target``, in ``folder``."""

    folder: Path
    target: str

    def inspect_python(self, python: Path) -> Interpreter:
        """The project's Python, as a run knows it before its first check."""
        environment = {**os.environ, "VIRTUAL_ENV": str(python.parent.parent)}
        return inspect(find_interpreter(self.folder, environment), self.folder, environment, no_sandbox)

    def ours(self, python: Interpreter, ids: Sequence[str], matrix: bool = False) -> dict[str, bool]:
        """Whether each mutant is killed."""
        given = self.folder.parent / "given"
        given.write_bytes(pickle.dumps((self.folder, self.target, python, list(ids), matrix)))
        ran = _run([sys.executable, __file__, "--raw", str(given)], self.folder.parent)
        found: dict[str, bool] = json.loads(ran)
        return found

    def mutmut(self, python: Path, names: Sequence[str] = ()) -> dict[str, int]:
        """The exit code of each mutant."""
        shutil.rmtree(self.folder / "mutants", ignore_errors=True)
        _run([str(python.parent / "mutmut"), "run", "--max-children", str(AT_ONCE), *names], self.folder)
        meta = json.loads((self.folder / "mutants" / f"{self.target}.meta").read_text())
        codes: dict[str, int] = meta["exit_code_by_key"]
        return codes

    def texts(self, python: Path) -> dict[str, str]:
        found: dict[str, str] = json.loads(_run([str(python), "-c", TEXTS, self.target], self.folder))
        return found


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=1_200)
    if done.returncode:
        raise SystemExit(f"{command[:3]} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def judge(given: Path) -> None:
    """Our side, in a process of its own."""
    from codex_multi_role.checks import CheckContext
    from codex_multi_role.extensions.test_generation.mutation import judge_mutants
    from codex_multi_role.workspace import Workspace

    folder, target, python, ids, matrix = pickle.loads(given.read_bytes())
    options = {"target": target, "mutants": ids, "concurrency": AT_ONCE, "matrix": matrix}
    artifacts = given.parent / "artifacts"
    context = CheckContext(Workspace(folder), artifacts, os.environ, 1_000, options=options, python=python)
    result: dict[str, Any] = judge_mutants(context)
    if result["status"] != "ok":
        raise SystemExit(result["reason"])
    killed = {each for ids in result["matrix"].values() for each in ids} | {*result["unattributed"]}
    print(json.dumps({each: each in killed for each in result["ids"]}))


def write_subjects(folder: Path) -> dict[str, Subject]:
    sys.path.insert(0, str(PROGRAMS))
    strict: str = import_module("candidates").STRICT

    whole = (ROOT / "tests" / "replies" / "test_repair.py").read_text()
    repair = "".join(
        part for part in whole.partition("@given")[0].splitlines(keepends=True) if "hypothesis" not in part
    )
    own = (ROOT / "codex_multi_role" / "replies" / "repair.py").read_text()
    files = {
        "ledger": ("ledger.py", (PROGRAMS / "ledger.py").read_text(), strict),
        "repair": (
            "repair.py",
            own,
            repair.replace("codex_multi_role.replies.repair", "repair"),
        ),
    }
    return {name: _project(folder / name, *each) for name, each in files.items()}


def _project(folder: Path, target: str, source: str, tests: str) -> Subject:
    project = folder / "project"
    (project / "tests").mkdir(parents=True)
    (project / target).write_text(source)
    (project / "tests" / f"test_{target}").write_text(tests)
    (project / "pyproject.toml").write_text(SETTINGS.format(source=target))
    return Subject(project, target)


def same_mutants(subject: Subject, python: Path, codes: Mapping[str, int]) -> dict[str, str]:
    """The ids of those of our mutants that mutmut has as well, with its names; at most `MUTANTS`, evenly spread."""
    from codex_multi_role.extensions.test_generation.mutated_file import MutatedFile

    names = {text: name for name, text in subject.texts(python).items() if codes[name] is not None}
    ours = MutatedFile((subject.folder / subject.target).read_text()).sample(10_000, seed=0)
    same = {mutant.id: names[mutant.text] for mutant in ours if mutant.text in names}
    print(f"  mutmut has {len(codes)} mutants, we have {len(ours)}, {len(same)} are the same", flush=True)
    return dict(list(same.items())[:: -(-len(same) // MUTANTS)])


def compare(subject: Subject, python: Path, runs: int) -> bool:
    """Print the times and the verdicts that differ; return whether all is as it should be."""
    codes, interpreter = subject.mutmut(python), subject.inspect_python(python)
    same = same_mutants(subject, python, codes)
    killed = subject.ours(interpreter, list(same))
    differing = [(each, name) for each, name in same.items() if killed[each] is (codes[name] in SURVIVED)]
    late = {each for each, name in same.items() if codes[name] in TIMED_OUT}
    print(f"  {sum(killed.values())} killed, {len(late)} of them too slow for mutmut, {len(differing)} verdicts differ")
    for each, name in differing:
        print(f"    {each}: ours {'killed' if killed[each] else 'survived'}, mutmut {codes[name]} ({name})")
    ids = [each for each in same if each not in late]
    figures = medians(
        {
            "ours": lambda: _seconds(lambda: subject.ours(interpreter, ids)),
            "matrix": lambda: _seconds(lambda: subject.ours(interpreter, ids, matrix=True)),
            "mutmut": lambda: _seconds(lambda: subject.mutmut(python, [same[each] for each in ids])),
        },
        runs,
    )
    ratio = figures["ours"] / figures["mutmut"]
    for what, seconds in figures.items():
        print(f"  {what:<8}{seconds:7.2f} s for {len(ids)} mutants")
    print(f"  matrix / mutmut {figures['matrix'] / figures['mutmut']:.2f}")
    print(f"  ours / mutmut {ratio:.2f} (at most {AT_MOST:.2f}: {'met' if ratio <= AT_MOST else 'missed'})", flush=True)
    return ratio <= AT_MOST and not differing


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def python_with_mutmut(folder: Path) -> Path:
    """mutmut's own environment, which both sides use; made once."""
    python = folder / "bin" / "python"
    if not (folder / "bin" / "mutmut").exists():
        venv.create(folder, with_pip=True, clear=True)
        _run([str(python), "-m", "pip", "install", "-q", *PACKAGES], folder)
    return python


def main() -> None:
    options = read_options(__doc__, 3, "GIVEN")
    if options.raw:
        judge(Path(options.raw[0]))
        return
    python = python_with_mutmut(Path(tempfile.gettempdir()) / "codex-multi-role-benchmark-mutmut")
    with tempfile.TemporaryDirectory() as name:
        results = []
        for what, subject in write_subjects(Path(name)).items():
            print(f"{what}: {subject.target}, {AT_ONCE} mutants at once", flush=True)
            results.append(compare(subject, python, options.runs))
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
