"""The figures of the house are at their goals, or at most at their debts, so that none gets worse unseen."""

from __future__ import annotations

import pytest

from tests.house import FIGURES, Figure, count


@pytest.fixture(scope="module")
def counted() -> dict[str, int]:
    return count()


@pytest.mark.extensions
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.what)
def test_figure_is_at_its_goal_or_a_debt(figure: Figure, counted: dict[str, int]) -> None:
    assert not figure.problem(counted[figure.what])
