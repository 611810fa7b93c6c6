"""The one table of wrong values, for the tests of the modules that judge them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

TABLE: dict[str, Any] = yaml.safe_load((Path(__file__).parents[1] / "verdicts/wrong_values.yaml").read_text("utf-8"))


def rows_of(section: str, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a section that have the first of the ``columns``, for `pytest.mark.parametrize`."""
    return [tuple(row.get(column, "") for column in columns) for row in TABLE[section] if columns[0] in row]
