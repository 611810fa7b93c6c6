"""All states of a run in one line, those after each turn in a merged copy included, and how to restore them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codex_multi_role.extensions.results.run_history import RunHistory
from codex_multi_role.extensions.results.workspace_states import Change
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.merging import plan_merge
from codex_multi_role.workspace.trees import with_entries


@dataclass(frozen=True)
class RecordedState:
    """``changes`` led to it from the state before; the first state has none, a merged copy that is gone may have many.

    A state with a ``merge`` is in between: ``tree`` is then that of the copy, which the merge brought into the
    workspace later.
    """

    tree: str
    changes: tuple[Change, ...] = ()
    merge: Change | None = None


def states_in_line(history: RunHistory) -> list[RecordedState]:
    """The states of the main line in order. A merge of a copy becomes one state for each of its turns."""
    line = [RecordedState(history.states.first)]
    for change in history.states.changes:
        line += _states_of_merge(history, change) if change.copy else [RecordedState(change.after, (change,))]
    return line


def _states_of_merge(history: RunHistory, merge: Change) -> list[RecordedState]:
    changes = tuple(_changes_in_copy(history, merge.copy))
    if not history.snapshots_of(merge.copy).is_dir():  # `gc` removed it
        return [RecordedState(merge.after, changes)]
    between = [RecordedState(change.after, (change,), merge) for change in changes[:-1]]
    return [*between, RecordedState(merge.after, changes[-1:])]


def _changes_in_copy(history: RunHistory, key: str) -> Iterator[Change]:
    """The changes of its turns, and those before, between and after them, which no role made."""
    copy = history.copies[key]
    state = copy.base
    for turn in history.states.in_copies.get(key, ()):
        if turn.before != state:
            yield Change(state, turn.before, unit=key)
        yield turn
        state = turn.after
    if state != copy.theirs:
        yield Change(state, copy.theirs, unit=key)


def names_of_changes(line: Sequence[RecordedState]) -> Iterator[list[str]]:
    """The names of each state's changes; one without a role is named after the turn before it."""
    latest = "before the first turn"
    for state in line:
        names = []
        for change in state.changes:
            if change.role:
                names.append(f"{change.role} turn {change.turn}")
                latest = f"after {names[-1]}"
            else:
                names.append(f"a change between turns ({latest})")
        yield names


def restorable_tree(history: RunHistory, state: RecordedState, git: Git) -> str | None:
    """The tree of ``state`` in the repository of ``git``, which has all objects of the run and its copies.

    A state in between is the workspace just before the merge, with the copy's changes so far merged by the same rule.
    None if a conflict was only resolved later, or if this run did not record the files. Raises StorageError.
    """
    copy = history.copies[state.merge.copy] if state.merge else None
    needed = [state.tree] if copy is None else [copy.base, copy.before, state.tree]
    if any(git.run("cat-file", "-e", f"{tree}^{{tree}}", allowed=(0, 1, 128)).returncode for tree in needed):
        return None
    if copy is None:
        return history.tree(state.tree, git)
    plan = plan_merge(git, copy.base, copy.before, state.tree)
    if {each.path for each in plan.conflicts} - {each.path for each in copy.conflicts}:
        return None
    merged = with_entries(git, copy.before, {path: after for path, (_, after) in plan.changes.items()})
    return history.tree(merged, git)
