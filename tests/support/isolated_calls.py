"""Teams whose flow calls another one for each item, in copies of the workspace."""

from __future__ import annotations

from pathlib import Path

from tests.support.teams import WRITER, Record, TeamFolder, say, with_flow

WRITES: Record = {
    "json": {
        "summary": "did {{ (prompt | string).split('ITEM ')[1].split('.')[0] }}",
        "files": [
            {"path": "{{ (prompt | string).split('ITEM ')[1].split('.')[0] }}.txt", "content": "written\n"},
        ],
    }
}
"""A play that writes a file of the item's name."""


def calling(
    folder: Path,
    items: object,
    plays: list[Record] | None = None,
    inner: list[Record] | None = None,
    **more: object,
) -> TeamFolder:
    """A team whose flow ``own`` calls ``inner`` for each item; its writer then is asked for the file of that name."""
    team = TeamFolder(folder, {"writer": WRITER, "last": {}}, {"writer": plays or [WRITES] * 40, "last": [say()] * 5})
    steps = inner or [{"id": "write", "ask": "writer", "prompt": "ITEM {{ inputs.name }}."}]
    with_flow(team, {"inputs": {"name": {"type": "string"}}, "steps": steps}, "inner")
    call: Record = {
        "id": "each", "call": "inner", "with": {"name": "{{ item }}"}, "for_each": items,
        "isolate": "worktree", "concurrency": 4, **more,
    }  # fmt: skip
    end = {"id": "end", "ask": "last", "prompt": "{{ steps.each.results | tojson }}"}
    return with_flow(team, {"steps": [call, end]})
