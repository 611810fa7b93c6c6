"""What runs have spent that workers executed for items of this run: ``placed/<run_id>.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.host.atomic import make_folder, write_json
from codex_multi_role.reading.json_files import read_object

FIGURES = ("turns", "repairs", "input_tokens", "output_tokens")
"""Those of ``totals`` in ``run.json`` that add up. Seconds do not: the run's own clock counts while others work."""


def record_spent(run_folder: Path, run_id: str, totals: Mapping[str, float]) -> None:
    """Record what that run has spent so far, instead of what was known before. Raises `StorageError`."""
    spent = {name: totals.get(name, 0) for name in FIGURES}
    if spent != spent_elsewhere(run_folder).get(run_id):
        write_json(make_folder(run_folder / "placed") / f"{run_id}.json", spent)


def as_turn(spent: Mapping[str, float]) -> dict[str, Any]:
    """The figures in the form of a ``turn.json``, for as many turns as they are of."""
    return {
        "turns": int(spent["turns"]),
        "tokens": {name: int(spent[f"{name}_tokens"]) for name in ("input", "output")},
    }


def spent_elsewhere(run_folder: Path) -> dict[str, dict[str, float]]:
    """The `FIGURES` of each such run, by its ID."""
    files = sorted((run_folder / "placed").glob("*.json"))
    return {file.stem: {name: read_object(file).get(name, 0) for name in FIGURES} for file in files}
