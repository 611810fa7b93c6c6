"""The figures of the house stand where their ceilings are, so that none gets worse unseen."""

from __future__ import annotations

import pytest

from tests.house import FIGURES, Figure, count


@pytest.fixture(scope="module")
def counted() -> dict[str, int]:
    return count()


@pytest.mark.extensions
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.what)
def test_figure_is_at_its_ceiling(figure: Figure, counted: dict[str, int]) -> None:
    """Above it, something was added that the change must give a reason for; below it, lower the ceiling."""
    assert figure.allows(counted[figure.what]), f"{figure.what}: {counted[figure.what]:,}"


def test_every_figure_has_a_ceiling(counted: dict[str, int]) -> None:
    assert counted.keys() == {figure.what for figure in FIGURES}


@pytest.mark.parametrize(
    ("ceiling", "number", "is_allowed"),
    [
        (5, 5, True),
        (5, 6, False),
        (5, 4, False),
        (10_100, 10_001, True),
        (10_100, 10_100, True),
        (10_100, 10_000, False),
    ],
)
def test_large_figures_are_rounded_up(ceiling: int, number: int, is_allowed: bool) -> None:
    assert Figure("x", ceiling).allows(number) is is_allowed
