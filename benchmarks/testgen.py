"""What the flow ``testgen`` costs above pytest and mutation time themselves: one file, 20 mutants.

*Ours* is ``codex-multi-role --flow testgen`` with two turns of an embedded model, run folder, journal, private copies,
an alarm for each test, JUnit reports and the kill matrix. *The tools* are what it cannot do without, in one folder: two
runs of coverage.py with pytest and its report, three of pytest that look for flaky tests, one more undisturbed, and one
for each mutant, two at a time as ours has it; on the unchanged file, whose tests never stop early. Nothing runs in a
sandbox. In turn, each in processes of its own.

    python benchmarks/testgen.py [--runs 3]

Prints medians of wall time, what is ours alone, and the ratio. Exits with 1 when ours takes more than 1.50 of the time
of the tools.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml
from raw import medians, read_options, timed

PROGRAMS = Path(__file__).parent.parent / "tests" / "extensions" / "test_generation" / "programs"
MUTANTS, AT_ONCE, FLAKY_RUNS = 20, 2, 3
AT_MOST = 1.50
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
PLAN = [{"id": "P1", "why": "all", "source": "name", "call": "Ledger()", "expect": {"nothing_raised": True}}]


def ours(project: Path) -> float:
    inputs = {"target": "ledger.py", "target_coverage": 50, "max_mutants": MUTANTS, "runs": FLAKY_RUNS}
    given = [part for name, value in inputs.items() for part in ("--input", f"{name}={value}")]
    options = ["--goal", "tests", "--flow", "testgen", "--playbook", "../playbook.yaml", "--quiet", "--no-test-sandbox"]
    with tempfile.TemporaryDirectory() as workspace:
        (Path(workspace) / "ledger.py").write_text((project / "ledger.py").read_text())
        command = [sys.executable, "-m", "codex_multi_role", *options, *given, "--workspace", workspace]
        return timed(command, 0, project)


def tools(project: Path) -> float:
    began = time.perf_counter()
    for _ in range(2):
        _python(project, ["-m", "coverage", "run", "--branch", "--source=.", *PYTEST])
        _python(project, ["-m", "coverage", "json", "-q", "-o", "coverage.json"])
    for _ in range(FLAKY_RUNS + 1):
        _python(project, PYTEST)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda _: _python(project, PYTEST), range(MUTANTS)))
    return time.perf_counter() - began


def _python(project: Path, arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], cwd=project, check=True, capture_output=True, timeout=120)


def write_project(folder: Path, tests: str) -> Path:
    project = folder / "project"
    (project / "tests").mkdir(parents=True)
    (project / "ledger.py").write_text((PROGRAMS / "ledger.py").read_text())
    (project / "tests" / "test_ledger.py").write_text(tests)
    answers = {"test_planner": [{"json": {"plan": PLAN}}], "test_developer": [{"json": {"code": tests}}]}
    (folder / "playbook.yaml").write_text(yaml.safe_dump({"name": "bench", "roles": answers}))
    return project


def main() -> None:
    runs: int = read_options(__doc__, 3).runs
    sys.path.insert(0, str(PROGRAMS))
    from candidates import STRICT  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as name:
        project = write_project(Path(name), STRICT)
        figures = medians({"ours": lambda: ours(project), "the tools": lambda: tools(project)}, runs)
    for what, seconds in figures.items():
        print(f"{what:<12}{seconds:7.3f} s")
    ratio = figures["ours"] / figures["the tools"]
    print(f"ours alone  {figures['ours'] - figures['the tools']:7.3f} s")
    print(f"ours / the tools {ratio:.2f} (at most {AT_MOST:.2f}: {'met' if ratio <= AT_MOST else 'missed'})")
    sys.exit(0 if ratio <= AT_MOST else 1)


if __name__ == "__main__":
    main()
