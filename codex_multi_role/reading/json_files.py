"""Read JSON that others wrote, or that a kill truncated: what cannot be read counts as missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from codex_multi_role.reading.json_types import Json

UNREADABLE = (OSError, ValueError, RecursionError)


def refuse_constant(name: str) -> NoReturn:
    """For ``parse_constant``: Python's reader would take NaN and Infinity. Raises ValueError."""
    raise ValueError(f"{name} is not JSON")


# For logs: `json.loads` takes 1.7 times as long for a short line.
_raw_decode = json.JSONDecoder(parse_constant=refuse_constant).raw_decode


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever JSON it holds
    """The value in the file; None if it is missing, invalid, or nested too deeply."""
    with suppress(*UNREADABLE):
        return json.loads(path.read_text(encoding="utf-8"))
    return None


def read_object(path: Path) -> dict[str, Any]:
    """Like `read_json`, for a file with an object; empty for anything else."""
    value = read_json(path)
    return value if isinstance(value, dict) else {}


def read_records(lines: Iterable[bytes]) -> Iterator[Json]:
    """The objects of these ``events.jsonl`` lines, without lines that a kill truncated, even within a character."""
    for line in lines:
        try:
            text = line.decode().strip()
            record, end = _raw_decode(text)
        except UNREADABLE:
            continue
        if isinstance(record, dict) and end == len(text):
            yield record
