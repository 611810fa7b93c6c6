"""Why test generation ended without success, as the command line and ``show`` print it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import console
from tests.support.generation import BELOW, IMPORT, P1, SIGN, Generation, code, plan
from tests.support.suites_here import suites_here

pytestmark = pytest.mark.real

__all__ = ["suites_here"]

ENDS = {
    "a TypeScript file": ("app.ts", "export {}\n", 2, "testgen supports Python only: app.ts is not a Python file"),
    "a Go file": ("main.go", "package main\n", 2, "testgen supports Python only: main.go is not a Python file"),
    "a folder of Go": (
        "cmd/main.go",
        "package main\n",
        1,
        "cmd contains no Python file to test; testgen supp",
    ),
    "timeout": (
        "sign.py",
        SIGN,
        1,
        "Timeout: sign.py: timeout: no iterations are left; 66.67 % are reached, 100 % are",
    ),
    "incomplete": (
        "bad.py",
        "not one line of Python\n",
        1,
        "Incomplete: bad.py: not_python: bad.py: line 1: invalid syntax",
    ),
}
SAMPLE = "a folder of Go"


@pytest.mark.usefixtures("suites_here")
@pytest.mark.parametrize(
    ("flow", "end"),
    [
        pytest.param(flow, end, marks=[] if end == SAMPLE else [pytest.mark.long])
        for flow in ("testgen", "testgen-duel")
        for end in ENDS
    ],
)
def test_reason_is_printed_at_the_end_and_by_show(tmp_path: Path, flow: str, end: str) -> None:
    name, text, exit_code, reason = ENDS[end]
    half = [code(IMPORT + BELOW)]
    given = Generation(tmp_path, {name: text}, test_planner=[plan(P1)], test_developer=half, test_developer_2=half)
    inputs = {"target": name.split("/")[0], "mutation": "false", "runs": "1", "max_iterations": "1"}
    flags = [part for key, value in inputs.items() for part in ("-i", f"{key}={value}")]
    done = console(*given.team.command("--flow", flow, "--no-test-sandbox", *flags)[3:], folder=tmp_path)
    assert (done.returncode, reason in done.stderr) == (exit_code, True), done.stderr
    shown = console("show", "latest", folder=tmp_path)
    assert reason.partition(": ")[2] in shown.stdout + shown.stderr, shown.stdout
