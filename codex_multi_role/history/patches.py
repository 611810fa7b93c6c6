"""The changes of a run as git prints them."""

from __future__ import annotations

from collections.abc import Iterator

from codex_multi_role.history.run_history import RunHistory, result_of
from codex_multi_role.history.workspace_states import Change

OPTIONS = ("-r", "--no-color", "--find-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
PATCH = ("--patch", "--binary", "--full-index")


def whole_patch(history: RunHistory, *, stat: bool = False) -> bytes:
    """The changes from the run's first state to its latest, or only how many lines changed per file."""
    result = result_of(history)
    return _difference(history, None, result.before, result.after, stat=stat)


def patches_of_turns(history: RunHistory, turns: list[Change], *, stat: bool = False) -> Iterator[bytes]:
    """Yield the changes of each turn, below a line that names it; git ignores such lines when it applies a patch."""
    for change in turns:
        unit = f", {change.unit}" if change.unit else ""
        heading = f"{change.role}, turn {change.turn}{unit}\n\n"
        yield heading.encode() + _difference(history, change, change.before, change.after, stat=stat)


def _difference(history: RunHistory, change: Change | None, before: str, after: str, *, stat: bool) -> bytes:
    shown = ("--stat=100", "--summary") if stat else PATCH
    return history.git(change).run("diff-tree", *OPTIONS, *shown, before, after).stdout
