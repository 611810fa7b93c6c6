"""The figures of the house are at their goals, or at most at their debts, so that none gets worse unseen.

Costs: the whole package is read and counted.
"""

from __future__ import annotations

import ast

import pytest

from tests import registered_names
from tests.house import FIGURES, Figure, count


@pytest.fixture(scope="module")
def counted() -> dict[str, int]:
    return count()


@pytest.mark.extensions
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.what)
def test_figure_is_at_its_goal_or_a_debt(figure: Figure, counted: dict[str, int]) -> None:
    assert not figure.problem(counted[figure.what])


@pytest.mark.extensions
@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('FLAG = "Give it with --database-url."', ["--database-url"]),
        ('HINT = "`queues` lists them; codex-multi-role worker works."', ["queues", "worker"]),
        ('key = options["replay_match"]', ["replay_match"]),
        ("is_waiting = status == RunStatus.QUEUED", ["QUEUED"]),
        ('FILE = "search.yaml"', ["search.yaml"]),
        ('HINT = "Is Postgres up? SQLAlchemy asks it."', ["Postgres", "SQLAlchemy"]),
        ('"""Like ``--replay``."""', []),
        ('schema = search(lines, "batch")', []),
    ],
)
def test_names_that_extensions_register_are_found(code: str, found: list[str]) -> None:
    """As what a person types, a key, or a name in the code; neither in a comment nor with another meaning."""
    assert [name for _, name in registered_names.names_in(ast.parse(code))] == found
