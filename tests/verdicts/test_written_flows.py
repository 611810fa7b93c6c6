"""Flows as people write them: no right answer is refused, and hardly a wrong one makes a later step fail."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError
from tests.verdicts.written_flows import Judged, Written, written_flows

WRITTEN = written_flows()
SAMPLE = 15
"""One of so many mutations is played in the gate."""
MOST_WRONG_VALUES = 0.02


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> list[Judged]:
    return judged(tmp_path_factory.mktemp("sample"), SAMPLE)


def judged(folder: Path, every: int) -> list[Judged]:
    """One of ``every`` mutations of the flows that are valid."""
    found: list[Judged] = []
    for written in WRITTEN:
        try:
            loaded = written.load(folder / written.name)
        except DefinitionError:
            continue  # fails in the test of its right answers
        found += loaded.judge(every)
    return found


def listed(found: Iterable[Judged]) -> str:
    return "\n".join(map(str, found))


@pytest.mark.parametrize("written", WRITTEN, ids=lambda written: written.name)
def test_right_answers_are_not_refused(written: Written, tmp_path: Path) -> None:
    loaded = written.load(tmp_path)
    assert (loaded.right.end, loaded.right.failed) == (written.ends, []), loaded.right.ending.reason
    ending = loaded.play(judged=True).ending
    assert (ending.exit_code, ending.outcome) == written.ends, ending.reason


def test_wrong_answers_hardly_fail_a_later_step(sample: list[Judged]) -> None:
    check_wrong_values(sample)


def test_answers_that_templates_can_use_are_accepted(sample: list[Judged]) -> None:
    check_needless_refusals(sample)


@pytest.mark.long(
    "verdicts/test_written_flows.py::test_wrong_answers_hardly_fail_a_later_step",
    "verdicts/test_written_flows.py::test_answers_that_templates_can_use_are_accepted",
)
def test_every_wrong_answer_is_refused_or_used(tmp_path: Path) -> None:
    found = judged(tmp_path, 1)
    check_wrong_values(found)
    check_needless_refusals(found)


def check_wrong_values(found: list[Judged]) -> None:
    wrong = [each for each in found if each.is_wrong_value]
    share = len(wrong) / len(found)
    assert share <= MOST_WRONG_VALUES, f"{share:.1%} of {len(found)} mutations:\n{listed(wrong)}"


def check_needless_refusals(found: list[Judged]) -> None:
    """An answer of another type may be refused, because use gives the type."""
    refused = [each for each in found if each.is_needlessly_refused and each.mutation.keeps_type]
    assert not refused, f"{len(refused)} of {len(found)} mutations:\n{listed(refused)}"


def test_flows_are_many_and_of_other_projects_as_well() -> None:
    assert len({written.name for written in WRITTEN}) == len(WRITTEN) >= 120
    assert len([written for written in WRITTEN if written.source]) >= 30
