"""Codex's own file of a thread, its rollout: what a compaction used that Codex did not report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.codex.notifications import Counts

USED, COMPACTED = "token_usage_record", "compacted"
COUNTS = ("input_tokens", "cached_input_tokens", "output_tokens", "cache_write_input_tokens")


def compaction_usage(path: Path) -> Counts | None:
    """What the latest compaction in the rollout used, in the order of `ModelResponded`; None if it is not there.

    Codex writes the compaction to the file before it reports its end, and before that, what its model request used
    (measured; the format is not documented).
    """
    try:
        with path.open(encoding="utf-8") as lines:
            return _latest(json.loads(line) for line in lines if USED in line or COMPACTED in line)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _latest(entries: Iterable[Mapping[str, Any]]) -> Counts | None:
    request: Mapping[str, Any] = {}
    found: Counts | None = None
    for entry in entries:
        payload = entry["payload"]
        if entry["type"] == USED:
            request = payload
        elif entry["type"] == COMPACTED:
            is_its_own = request.get("response_id") == payload.get("compaction_response_id", "")
            found = tuple(request["usage"].get(key) for key in COUNTS) if is_its_own else None
    return found
