"""Suites as people have them: each change to each of them ends as the table of `untidy_suites` says.

Costs: 17 real suites, each run before and after a change.
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import run
from tests.steps.untidy_suites import Cell, Files, cells
from tests.support.console import console
from tests.support.scripted_codex import codex_replaced
from tests.support.teams import Record, TeamFolder, read, say, with_traceback

pytestmark = [pytest.mark.real, pytest.mark.extensions]

CELLS = list(cells())
ROLE: Record = {"sandbox": "workspace-write", "behaviors": {"can_finish": True}}


def write(folder: Path, files: Files) -> None:
    for path, text in files.items():
        if text is None:
            (folder / path).unlink(missing_ok=True)
        else:
            (folder / path).write_text(text)


def play(folder: Path, cell: Cell) -> tuple[Any, TeamFolder]:
    """A run whose only role makes the change, and says DONE."""
    team = TeamFolder(folder, {"one": ROLE}, {"one": [say(status="DONE")]})
    write(team.workspace, cell.suite.before())

    def change(event: Record) -> None:
        team.events.append(event)
        if event["type"] == "turn_started":
            write(team.workspace, cell.suite.change(cell.kind))

    options = team.options(run_tests=True, **cell.suite.options(cell.kind))
    with codex_replaced():  # in long tests as well
        return with_traceback(run(options, change)), team


def differences(folder: Path, cell: Cell) -> list[str]:
    """Between what the run said and what was expected."""
    report, team = play(folder, cell)
    result = read(max((report.folder / "tests").glob("*/result.json")))
    found = {"exit": report.exit_code, "verdict": result["verdict"]}
    expected: Record = {"exit": cell.exit_code, "verdict": cell.verdict}
    for name, tests in cell.suite.told.get(cell.kind, {}).items():
        found[name] = sorted({test.partition("[")[0] for test in result.get(name, ["no such field"])})
        expected[name] = sorted(tests)
    patch = console("diff", folder=team.folder).stdout
    found["changed"] = sorted({*chain(*re.findall(r"^diff --git a/(\S+) b/(\S+)$", patch, re.MULTILINE))})
    expected["changed"] = cell.changed
    said = console("show", folder=team.folder)
    word = cell.suite.words.get(cell.kind, "")
    found["said"], expected["said"] = word if word in said.stdout else said.stdout, word
    differ = [f"{name}: {found[name]}, expected {expected[name]}" for name in found if found[name] != expected[name]]
    return [*differ, f"{report.outcome}: {report.reason}"] if differ else []


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.in_gate], ids=str)
def test_cell_in_gate(tmp_path: Path, cell: Cell) -> None:
    assert not differences(tmp_path, cell)


@pytest.mark.long
@pytest.mark.parametrize("cell", [cell for cell in CELLS if not cell.in_gate], ids=str)
def test_every_other_cell(tmp_path: Path, cell: Cell) -> None:
    """What the gate's cells leave out: every other change to every suite."""
    assert not differences(tmp_path, cell)
