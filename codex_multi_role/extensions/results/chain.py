"""The commits of a history, in order: turns one after the other, and those in a copy beside them until it is merged."""

from __future__ import annotations

from collections.abc import Callable

from codex_multi_role.extensions.results.run_history import RunHistory
from codex_multi_role.extensions.results.workspace_states import Change

MakeCommit = Callable[[Change, list[str]], str]
"""Makes the commit of a change on its parents, and returns it."""


def make_chain(history: RunHistory, start: str, commit: MakeCommit) -> str:
    """Make a commit of each change, from the commit ``start``, which has the first state; returns the last one."""
    tip, of_state = start, {history.states.first: start}
    for change in history.states.changes:
        tip = commit(change, [tip, *_side(history, change.copy, of_state, commit)])
        of_state[change.after] = tip
    return tip


def _side(history: RunHistory, key: str, of_state: dict[str, str], commit: MakeCommit) -> list[str]:
    """The last commit of the turns in a copy, which start from the state that it was made of."""
    start = of_state.get(history.copies[key].base) if key in history.copies else None
    if start is None:
        return []
    tip = start
    for change in history.turns_in_copy(key):
        tip = commit(change, [tip])
    return [tip] if tip != start else []
