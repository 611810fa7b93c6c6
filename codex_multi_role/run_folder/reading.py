"""Reading JSON that somebody else wrote, or that a kill cut short: what cannot be read is not there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from codex_multi_role.run_folder.events import Record

UNREADABLE = (OSError, ValueError, RecursionError)


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever JSON it holds
    """The value that the file holds; None where there is none, or it is nested too deep."""
    with suppress(*UNREADABLE):
        return json.loads(path.read_text(encoding="utf-8"))
    return None


def read_object(path: Path) -> dict[str, Any]:
    """As `read_json`, where an object is expected; an empty one for anything else."""
    value = read_json(path)
    return value if isinstance(value, dict) else {}


def read_records(lines: Iterable[bytes]) -> Iterator[Record]:
    """The events of these lines of an ``events.jsonl``, without those that a kill cut short, be it within a letter."""
    for line in lines:
        with suppress(*UNREADABLE):
            yield json.loads(line.decode())
