"""Every kind of bad result, in every place and with every answer to it, ends as the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError
from tests.support.scripted import Script
from tests.verdicts.table import EXIT_CODES, PLACES, Cell, cells

CELLS = list(cells())


def test_table_is_complete() -> None:
    assert len(CELLS) >= 200
    assert {cell.place for cell in CELLS} == {*PLACES}
    assert {cell.end for cell in CELLS} == {*EXIT_CODES}


def script(folder: Path, cell: Cell) -> Script:
    """One that leaves the bad result at first, and a good one for the second item or try."""
    plays = {"one": [{"summary": "fine"}], "boss": [{"summary": "fine", "status": "DONE"}]}
    within = "s/x" if cell.place == "called" else "x"
    step = f"{within}/look" if "call" in cell.result.step else within
    no, yes = (False, "not yet"), (True, "")
    answers = [] if "out of time" in cell.name else [no, yes] if cell.place == "fan_out" else [no]
    return Script(folder, plays, {step: [cell.result.bad, cell.result.good]}, answers, finishing=["boss"])


def marks_of(cell: Cell) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.extensions,) if cell.name.startswith(("coverage", "flaky")) else ()


@pytest.mark.parametrize("cell", [pytest.param(each, id=each.name, marks=marks_of(each)) for each in CELLS])
def test_cell(tmp_path: Path, cell: Cell) -> None:
    flow, *called = cell.flows()
    if cell.end == "refused":
        with pytest.raises(DefinitionError, match=r"allow: \[bad\] does not go with|retry has no effect on a review"):
            script(tmp_path, cell).walk(flow, *called)
        return
    walked = script(tmp_path, cell).walk(flow, *called)
    assert walked.ending.outcome == cell.end, walked.ending
    assert walked.ending.exit_code == EXIT_CODES[cell.end]
    if cell.end in ("x_failed", "s_failed"):
        assert "deploy" not in walked.path
        assert cell.place == "fan_out" or f"step x: {cell.result.reason}" in walked.ending.reason
        assert walked.ending.suggestion == f"fork RUN --from {cell.end[0]}:1"
