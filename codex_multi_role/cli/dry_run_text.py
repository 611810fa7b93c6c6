"""The output of ``run --dry-run``: what a run would ask, for people or as one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codex_multi_role.cli.output import put_json_line, put_line, say
from codex_multi_role.presentation.wording import plural


def put_dry_run(records: Sequence[Mapping[str, Any]], *, as_json: bool, quiet: bool) -> None:
    """Print the records of `dry_run.dry_run`; with ``quiet``, people see errors only, and so nothing."""
    if as_json:
        for record in records:
            put_json_line(record)
    elif not quiet:
        for number, record in enumerate(records, 1):
            put_line("\n".join(_lines(number, record)))
        prompts = sum(record["type"] == "ask" for record in records)
        say(f"{plural(prompts, 'prompt')} in the first pass; nothing was started, written or spent")


def _lines(number: int, record: Mapping[str, Any]) -> Iterator[str]:
    kind = record["type"]
    named = {"ask": "role", "check": "check", "call": "flow"}.get(kind)
    what = f"{kind} {record[named]}" if named else kind
    which = f", item {record['item']}" if record["item"] else ""
    yield f"=== {number}. {record['step']}: {what}{which} ==="
    match kind:
        case "ask":
            yield record["prompt"]
        case "review":
            yield from (_text(record[key]) + "\n" for key in ("question", "show") if record[key])
        case _:
            yield _text(record["with"]) + "\n" if record["with"] else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
