"""The states of a run in one line: those within merged copies are restored as the merge would have left them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from codex_multi_role.extensions.results.bisecting import Bisection, Outcome, bisect_states
from codex_multi_role.extensions.results.recorded_states import RecordedState, restorable_tree, states_in_line
from codex_multi_role.extensions.results.run_history import RunHistory, history_of
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.worktrees import Worktrees
from tests.support.histories import History, random_changes
from tests.support.long_run import by_default

pytestmark = pytest.mark.real

PLANTED = "planted.txt"
KEY = "write.1.0"


def ended(history: History) -> RunHistory:
    history.ended()
    return history_of(history.run)


def by(state: RecordedState) -> list[str]:
    return [f"{change.role} {change.turn}" if change.role else "between" for change in state.changes]


def git_of(history: History) -> Git:
    """A repository with the objects of the run and its copies, as trials have it."""
    git_dir = history.folder / "borrowed.git"
    (git_dir / "objects/info").mkdir(parents=True)
    places = [each / "objects" for each in ended(history).repositories()]
    (git_dir / "objects/info/alternates").write_text("".join(f"{place}\n" for place in places))
    return Snapshots(git_dir, Workspace(history.workspace)).repository()


def content(recorded: RunHistory, git: Git, name: str, state: RecordedState) -> str | None:
    """What the file ``name`` contains in ``state``; None if it does not exist, or if the state cannot be restored."""
    tree = restorable_tree(recorded, state, git)
    shown = git.run("cat-file", "blob", f"{tree}:{name}", allowed=(0, 128))
    return None if shown.returncode else shown.stdout.decode()


def contents(recorded: RunHistory, git: Git, name: str) -> list[str | None]:
    return [content(recorded, git, name, state) for state in states_in_line(recorded)]


def test_turns_of_a_merged_copy_have_states_of_their_own(tmp_path: Path) -> None:
    history = History(tmp_path, {"a.txt": "1\n2\n3\n4\n5\n"})
    copy = history.copied(KEY)
    history.turn("writer", {"a.txt": "one\n2\n3\n4\n5\n"}, KEY)
    (copy / "a.txt").write_text("one\n2\n3\n4\n5\n6\n")
    history.turn("writer", {"b.txt": "b\n"}, KEY)
    history.turn("other", {"a.txt": "1\n2\n3\n4\nfive\n"})
    history.merged(KEY)
    recorded, git = ended(history), git_of(history)
    assert [by(state) for state in states_in_line(recorded)] == [
        [],
        ["other 1"],
        ["writer 1"],
        ["between"],
        ["writer 2"],
    ]
    assert contents(recorded, git, "a.txt")[:3] == ["1\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n", "one\n2\n3\n4\nfive\n"]
    assert contents(recorded, git, "b.txt") == [None, None, None, None, "b\n"]
    assert restorable_tree(recorded, states_in_line(recorded)[-1], git) == history.states[-1]


def test_conflict_that_a_later_turn_resolved_is_left_out(tmp_path: Path) -> None:
    history = History(tmp_path, {"a.txt": "a\n"})
    history.copied(KEY)
    history.turn("writer", {"a.txt": "writer\n", "b.txt": "b\n"}, KEY)
    history.turn("writer", {"a.txt": "other\n"}, KEY)
    history.turn("other", {"a.txt": "other\n"})
    history.merged(KEY)
    recorded, git = ended(history), git_of(history)
    trees = [restorable_tree(recorded, state, git) for state in states_in_line(recorded)]
    assert [by(state) for state in states_in_line(recorded)] == [[], ["other 1"], ["writer 1"], ["writer 2"]]
    assert [tree is None for tree in trees] == [False, False, True, False]


def test_conflict_that_stayed_leaves_the_workspace_as_it_was(tmp_path: Path) -> None:
    history = History(tmp_path, {"a.txt": "a\n"})
    history.copied(KEY)
    history.turn("writer", {"a.txt": "writer\n", "b.txt": "1\n"}, KEY)
    history.turn("writer", {"b.txt": "2\n"}, KEY)
    history.turn("other", {"a.txt": "other\n"})
    history.merged(KEY)
    recorded, git = ended(history), git_of(history)
    assert contents(recorded, git, "a.txt") == ["a\n", "other\n", "other\n", "other\n"]
    assert contents(recorded, git, "b.txt") == [None, None, "1\n", "2\n"]


@pytest.mark.parametrize(
    ("remove", "told"),
    [
        (lambda worktrees: worktrees.discard(KEY), [[], ["writer 1", "writer 2"]]),
        (Worktrees.remove_merged, [[], ["writer 1"], ["writer 2"]]),
    ],
)
def test_only_turns_of_a_discarded_copy_share_a_state(
    tmp_path: Path, remove: Callable[[Worktrees], object], told: list[list[str]]
) -> None:
    """What happened in a copy that was merged and then removed stays recorded."""
    history = History(tmp_path, {"a.txt": "a\n"})
    history.copied(KEY)
    history.turn("writer", {"a.txt": "1\n"}, KEY)
    history.turn("writer", {"a.txt": "2\n"}, KEY)
    history.merged(KEY)
    remove(history.worktrees)
    assert [by(state) for state in states_in_line(ended(history))] == told


def random_run(folder: Path, rng: random.Random) -> tuple[History, str]:
    """Turns, changes between them and copies of several turns; who changed `PLANTED`, which nobody else does."""
    history = History(folder, {PLANTED: "before\n"})
    steps = rng.randint(1, 10)
    planted, at, who = rng.randrange(steps), 0, ""
    numbers = dict.fromkeys(("writer", "tester"), 0)

    def turn(key: str = "", *, plants: bool = False) -> str:
        role = rng.choice(("writer", "tester"))
        numbers[role] += 1
        files = random_changes(rng, None if key else history.workspace)
        history.turn(role, {**files, **({PLANTED: "after\n"} if plants else {})}, key)
        return f"{role} {numbers[role]}"

    for at in range(steps):
        plants = at == planted
        match rng.randrange(4):
            case 0:
                planting = {PLANTED: "after\n"} if plants else {}
                history.between({**random_changes(rng, history.workspace), **planting})
                who = "between" if plants else who
            case 1:
                keys = [f"step.{at}.{index}" for index in range(2)]
                for key in keys:
                    history.copied(key)
                asked = [*keys, *rng.choices(keys, k=2)]
                chosen = rng.randrange(4) if plants else -1
                for index, key in enumerate(asked):
                    did = turn(key, plants=index == chosen)
                    who = did if index == chosen else who
                for key in rng.sample(keys, 2):
                    history.merged(key)
            case _:
                did = turn(plants=plants)
                who = did if plants else who
    return history, who


def searched(recorded: RunHistory, git: Git, rng: random.Random, share: float) -> tuple[Bisection, list[RecordedState]]:
    """Search for who changed `PLANTED`; a ``share`` of the results is wrong. Counts what is executed."""
    line = states_in_line(recorded)
    read = cache(lambda index: content(recorded, git, PLANTED, line[index]))
    executed = 0

    def execute(index: int) -> Outcome | None:
        nonlocal executed
        if read(index) is None:
            return None
        executed += 1
        return "fail" if (read(index) == "after\n") != (rng.random() < share) else "pass"

    found = bisect_states(len(line), execute, repeat=5)
    assert executed == found.executions + found.confirmations
    assert found.executions <= math.ceil(math.log2(len(line) - 1)) + 1
    return found, line


@pytest.mark.parametrize("share", by_default([0.1], [0, 0.1]))
@pytest.mark.parametrize("seeds", by_default([range(1)], [range(1), range(1, 100), range(100, 200)]), ids=str)
def test_planted_turn_is_found_in_random_histories(tmp_path: Path, seeds: range, share: float) -> None:
    exact = 0
    for seed in seeds:
        (folder := tmp_path / str(seed)).mkdir()
        rng = random.Random(seed)
        history, who = random_run(folder, rng)
        found, line = searched(ended(history), git_of(history), rng, share)
        candidates = [name for state in line[found.before + 1 : found.after + 1] for name in by(state)]
        assert found.changed, seed
        assert who in candidates, seed
        exact += candidates == [who]
    assert exact >= 0.9 * len(seeds), "the others share a state with turns whose conflicts were resolved later"
