"""Workflows of other products as flows of ours, played with good and with bad answers.

Each of ``workflows/`` has another shape: a catalog, the flow of its name with those that it calls, and ``answers/``,
which say how they end by the three rules of verdicts, written by hand.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verdicts.known_contracts import FILE, known_contracts
from tests.verdicts.playing import WORKFLOWS, Answers, play, walk

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
