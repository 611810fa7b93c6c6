"""Every kind of bad result, in every place and with every answer to it, ends as the table says.

So do workflows of other products as flows of ours, with good and with bad answers. Each of ``workflows/`` has another
shape: a catalog, the flow of its name with those that it calls, and ``answers/``, which say how they end by the three
rules of verdicts, written by hand.

Costs: each cell and each workflow is walked by the engine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError
from tests.support.scripted import Script
from tests.verdicts.known_contracts import FILE, known_contracts
from tests.verdicts.playing import WORKFLOWS, Answers, play, walk
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


PLAYED = {f"{path.parents[1].name}-{path.stem}": path for path in sorted(WORKFLOWS.glob("*/answers/*.yaml"))}
ON_BINARY = [name for name, path in PLAYED.items() if "\non_binary:" in path.read_text(encoding="utf-8")]


def test_workflows_are_twelve_with_a_good_end_each() -> None:
    ends = [name for name, path in PLAYED.items() if path.stem == "good" and Answers.load(path).ends[0] == 0]
    assert (len(ends), len([*WORKFLOWS.iterdir()])) == (12, 12)


@pytest.mark.parametrize("name", PLAYED)
def test_walk_ends_by_the_rules(name: str, tmp_path: Path) -> None:
    answers = Answers.load(PLAYED[name])
    ending = walk(PLAYED[name].parents[1], answers, tmp_path)
    assert answers.expects(ending.exit_code, ending.outcome), ending


@pytest.mark.real
@pytest.mark.parametrize("name", ON_BINARY)
def test_run_on_the_binary_ends_by_the_rules(name: str, tmp_path: Path) -> None:
    answers = Answers.load(PLAYED[name])
    report = play(PLAYED[name].parents[1], answers, tmp_path)
    assert answers.expects(report.exit_code, report.outcome), report
    assert {each: (tmp_path / "workspace" / each).read_text() for each in answers.leaves} == answers.leaves


@pytest.mark.extensions
@pytest.mark.real  # takes seconds
def test_derived_contracts_are_those_that_were_looked_at() -> None:
    assert known_contracts() == FILE.read_text(encoding="utf-8")
