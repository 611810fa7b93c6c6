"""What runs have spent that workers executed for items of this run: ``placed/<run_id>.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.host.atomic import make_folder, write_json
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.run_folder.cost import Cost

FIGURES = ("turns", "repairs", "input_tokens", "output_tokens")
"""Those of ``totals`` in ``run.json`` that add up, beside the cost. Seconds do not: the run's own clock counts while
others work."""


def record_spent(run_folder: Path, run_id: str, totals: Mapping[str, Any]) -> None:
    """Record what that run has spent so far, instead of what was known before. Raises `StorageError`."""
    spent = _spent(totals)
    if spent != spent_elsewhere(run_folder).get(run_id):
        write_json(make_folder(run_folder / "placed") / f"{run_id}.json", spent)


def as_turn(spent: Mapping[str, Any]) -> dict[str, Any]:
    """The figures in the form of a ``turn.json``, for as many turns as they are of."""
    return {
        "turns": int(spent["turns"]),
        "tokens": {name: int(spent[f"{name}_tokens"]) for name in ("input", "output")},
        "cost": spent["cost"],
    }


def spent_elsewhere(run_folder: Path) -> dict[str, dict[str, Any]]:
    """The `FIGURES` and the cost of each such run, by its ID."""
    return {file.stem: _spent(read_object(file)) for file in sorted((run_folder / "placed").glob("*.json"))}


def _spent(totals: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: totals.get(name, 0) for name in FIGURES}, **Cost.of_totals(totals).as_json()}
