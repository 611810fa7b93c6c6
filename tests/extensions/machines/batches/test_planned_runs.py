"""From goals to runs: names, options, repositories, shards, who shares a folder, which goal starts next, and what is
found before any does."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.errors import DefinitionError, ExitCode, UsageError
from codex_multi_role.extensions.machines.batches.goal_results import GoalResult
from codex_multi_role.extensions.machines.batches.planned_runs import (
    Defaults,
    PlannedRun,
    Shard,
    plan_runs,
    repository_names,
    uncommitted_changes,
)
from codex_multi_role.extensions.machines.batches.schedule import (
    FAILURES,
    TOTAL_BUDGET,
    Bounds,
    Entry,
    Refusal,
    Schedule,
)
from codex_multi_role.extensions.machines.batches.team_readiness import completed, require_known_costs, require_limits
from tests.support.batches import defaults, goals
from tests.support.console import console
from tests.support.teams import Record
from tests.support.workspaces import commit_all, write_files


def planned(common: Defaults, *lines: Record) -> dict[str, PlannedRun]:
    runs = plan_runs(goals(*lines), common, "night", common.folder / "clones")
    return {run.id: run for run in runs}


def test_line_overrides_options_and_adds_to_inputs_and_config(tmp_path: Path) -> None:
    common = defaults(tmp_path, model="m", cycles=2, inputs={"a": "1"}, config=("x=1",))
    line = {
        "goal": "g",
        "cycles": 5,
        "inputs": {"b": [1]},
        "config": ["model_verbosity=low"],
        "roles": "team",
        "playbook": "p.yaml",
    }
    run = planned(common, line)["1"]
    assert (run.run_id, run.options.answers.model, run.options.cycles) == ("night-1", "m", 5)
    assert (run.options.inputs, run.options.answers.config) == ({"a": "1", "b": "[1]"}, ("x=1", "model_verbosity=low"))
    assert (run.options.place.roles, run.options.answers.playbook) == (tmp_path / "team", str(tmp_path / "p.yaml"))
    assert {"model", "cycles", "roles"} <= run.given


def test_repositories_expand_to_a_run_each(tmp_path: Path) -> None:
    addresses = ["git@example.org:us/shop.git", "https://example.org/them/shop/", "../local"]
    runs = planned(defaults(tmp_path), {"id": "docs", "goal": "g", "repositories": addresses, "ref": "main"})
    assert [*runs] == ["docs.shop", "docs.shop-2", "docs.local"]
    assert runs["docs.shop"].repository == addresses[0]
    assert Path(runs["docs.local"].repository) == tmp_path / "../local"
    assert runs["docs.shop-2"].options.place.workspace == tmp_path / "clones" / "night-docs.shop-2"


@given(st.lists(st.text(min_size=1), unique=True, max_size=9))
def test_repository_names_are_unique_and_fit_an_id(addresses: list[str]) -> None:
    names = repository_names(addresses)
    assert [*names.values()] == addresses
    assert all(name[0] not in ".-" and len(name) < 50 and name.isascii() for name in names)


def test_two_runs_of_one_name_are_a_problem(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r'goals.jsonl:2: two runs would be called "night-a.shop"'):
        planned(defaults(tmp_path), {"id": "a.shop", "goal": "g"}, {"id": "a", "goal": "g", "repositories": ["x/shop"]})


def test_wrong_options_are_problems_with_their_lines(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"goals.jsonl:2: replay and playbook exclude each other"):
        planned(defaults(tmp_path, replay=tmp_path), {"goal": "g"}, {"goal": "g", "playbook": "auto"})


def test_shared_folder_of_a_repository_means_worktrees(tmp_path: Path) -> None:
    (tmp_path / "repo/below").mkdir(parents=True)
    commit_all(tmp_path / "repo")
    lines: list[Record] = [{"workspace": "repo"}, {"workspace": "repo/below"}, {"workspace": "repo", "worktree": False}]
    runs = planned(defaults(tmp_path), *lines)
    assert [run.options.place.worktree for run in runs.values()] == [True, True, False]
    assert [bool(run.share) for run in runs.values()] == [False, False, True]
    assert not planned(defaults(tmp_path), lines[0])["1"].options.place.worktree


def test_uncommitted_changes_of_worktrees_are_counted(tmp_path: Path) -> None:
    commit_all(tmp_path)
    runs = planned(defaults(tmp_path), {}, {}).values()
    write_files(tmp_path, {"runs/ours": ""})
    assert uncommitted_changes(runs, tmp_path / "runs") == {}
    (tmp_path / "new").touch()
    assert uncommitted_changes(runs, tmp_path / "runs") == {tmp_path: 1}


def test_other_shared_folders_mean_one_after_another(tmp_path: Path) -> None:
    for name in ("plain", "plain-too"):
        (tmp_path / name).mkdir()
    lines: list[Record] = [{"workspace": "plain"}, {"workspace": "plain/../plain/x"}, {"workspace": "plain-too"}]
    runs = planned(defaults(tmp_path), *lines)
    assert [run.share for run in runs.values()] == [str(tmp_path / "plain"), str(tmp_path / "plain"), ""]


@given(st.sets(st.text(min_size=1)), st.integers(1, 9))
def test_shards_have_each_run_once(ids: set[str], count: int) -> None:
    shards = [Shard(index, count) for index in range(1, count + 1)]
    assert all(sum(shard.has(each) for shard in shards) == 1 for each in ids)


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/0", "a/b", "-1/2", "1/2/3"])
def test_wrong_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not of the form i/n"):
        Shard.parse(text)


ENTRIES = st.lists(
    st.builds(
        Entry,
        goal_id=st.uuids().map(str),
        priority=st.integers(-2, 2),
        share=st.sampled_from(["", "", "a", "b"]),
        limits=st.integers(1, 9).map(lambda limit: {"turns": limit}),
        used=st.integers(0, 9).map(lambda used: {"turns": used}),
    ),
    max_size=12,
    unique_by=lambda entry: entry.goal_id,
)


@given(ENTRIES, st.integers(1, 4), st.integers(1, 40) | st.none(), st.randoms(use_true_random=False))
def test_bounds_hold_and_every_goal_has_an_end(
    entries: list[Entry], concurrency: int, total: int | None, random: Random
) -> None:
    """Whatever a goal uses within its limit, and in whatever order goals end."""
    before = sum(entry.used["turns"] for entry in entries)
    totals = {} if total is None else {"turns": float(total + before)}
    schedule = Schedule(entries, Bounds(concurrency, totals), {"turns": before})
    by_id = {entry.goal_id: entry for entry in entries}
    running: list[Entry] = []
    started, used, dropped = list[str](), before, dict[str, Refusal]()
    while True:
        while (goal_id := schedule.start_next()) is not None:
            started.append(goal_id)
            running.append(by_id[goal_id])
            shares = [entry.share for entry in running if entry.share]
            assert len(shares) == len(set(shares))
        assert len(running) == schedule.running <= concurrency
        dropped |= schedule.take_dropped()
        if not running:
            break
        entry = running.pop(random.randrange(len(running)))
        most = max(entry.limits["turns"], entry.used["turns"])
        now = random.randint(int(entry.used["turns"]), int(most))
        used += now - int(entry.used["turns"])
        schedule.end(entry.goal_id, {"turns": now}, failed=False)
    assert sorted([*started, *dropped]) == sorted(by_id)
    assert schedule.waiting == 0
    assert total is None or used <= total + before
    assert {why.outcome for why in dropped.values()} <= {TOTAL_BUDGET}


@given(st.lists(st.integers(-3, 3), max_size=20))
def test_higher_priority_starts_first_then_file_order(priorities: list[int]) -> None:
    entries = [Entry(str(number), priority) for number, priority in enumerate(priorities)]
    schedule = Schedule(entries, Bounds(concurrency=100), {})
    started = [schedule.start_next() for _ in entries]
    assert started == [entry.goal_id for entry in sorted(entries, key=lambda each: -each.priority)]


def test_goal_waits_for_what_another_may_leave() -> None:
    """It fits once the first has ended with less than its limit; a smaller one does not overtake it."""
    entries = [Entry(name, limits={"turns": limit}) for name, limit in (("a", 6), ("b", 6), ("c", 1))]
    schedule = Schedule(entries, Bounds(3, {"turns": 10}), {})
    assert [schedule.start_next(), schedule.start_next()] == ["a", None]
    schedule.end("a", {"turns": 2}, failed=False)
    assert [schedule.start_next(), schedule.start_next()] == ["b", "c"]


def test_goal_that_no_longer_fits_is_dropped_with_the_figures() -> None:
    schedule = Schedule([Entry("a", limits={"turns": 6})], Bounds(1, {"turns": 10}), {"turns": 5})
    assert schedule.start_next() is None
    reason = "5 of 10 turns are left for the batch; the goal may use 6"
    assert schedule.take_dropped() == {"a": Refusal(TOTAL_BUDGET, reason)}


def test_total_of_money_is_used_to_the_cent() -> None:
    goals = [Entry(name, limits={"cost": 0.1}) for name in "abcd"]
    schedule = Schedule(goals, Bounds(4, {"cost": 0.3}), {})
    assert [schedule.start_next() for _ in range(4)] == ["a", "b", "c", None]
    for name in "abc":
        schedule.end(name, {"cost": 0.1}, failed=False)
    assert schedule.start_next() is None
    reason = "$0.00 of $0.30 are left for the batch; the goal may use $0.10"
    assert schedule.take_dropped() == {"d": Refusal(TOTAL_BUDGET, reason)}


def test_no_goal_starts_after_the_last_accepted_failure() -> None:
    schedule = Schedule([Entry("a"), Entry("b"), Entry("c")], Bounds(2, max_failures=1), {})
    assert [schedule.start_next(), schedule.start_next()] == ["a", "b"]
    schedule.end("a", {}, failed=True)
    assert schedule.start_next() is None
    assert {name: why.outcome for name, why in schedule.take_dropped().items()} == {"c": FAILURES}


PLAYBOOK = "name: mine\ngoal: Write it\ncycles: 2\ndefault: {json: {summary: fine}}\n"


def planned_in(folder: Path, *lines: Record) -> list[PlannedRun]:
    common = defaults(folder, roles=None)
    return plan_runs(goals(*lines), common, "night", folder / "clones")


def test_playbook_suggests_what_a_line_leaves_open(tmp_path: Path) -> None:
    (tmp_path / "play.yaml").write_text(PLAYBOOK)
    lines: list[Record] = [{"playbook": "play.yaml"}, {"playbook": "play.yaml", "goal": "Other", "cycles": 7}]
    runs = completed(planned_in(tmp_path, *lines))
    assert [run.options.goal for run in runs] == ["Write it", "Other"]
    assert [run.options.cycles for run in runs] == [2, 7]


def test_problems_of_teams_goals_inputs_and_folders_are_found(tmp_path: Path) -> None:
    lines: list[Record] = [
        {"goal": "x", "flow": "cylces"},
        {"goal": ""},
        {"goal": "x", "inputs": {"no": 1}, "workspace": "missing"},
        {"goal": "x", "flow": "cylces"},
    ]
    with pytest.raises(DefinitionError) as caught:
        completed(planned_in(tmp_path, *lines))
    assert [str(each) for each in caught.value.problems] == [
        'goals.jsonl:1: unknown flow "cylces"; did you mean "cycles"?',
        "goals.jsonl:2: missing goal",
        'goals.jsonl:3: flow cycles: unknown input "no"',
        f"goals.jsonl:3: the workspace {tmp_path / 'missing'} does not exist or is not a folder",
    ]


def test_total_needs_a_limit_for_each_goal(tmp_path: Path) -> None:
    runs = planned_in(tmp_path, {"goal": "x", "max_turns": 3}, {"goal": "y"})
    require_limits(runs[:1], {"turns": 9})
    with pytest.raises(DefinitionError, match=r"goals.jsonl:2: --total-max-turns needs a limit for each goal"):
        require_limits(runs, {"turns": 9})


def test_total_cost_needs_the_price_of_what_goals_have_used() -> None:
    """A goal of an earlier version recorded no cost; one that has not started has used nothing."""
    fine = GoalResult("a", 1, "night-a", "/runs", totals={"turns": 1, "cost": 0.5, "unpriced_turns": 0})
    require_known_costs([fine, GoalResult("b", 2, "night-b", "/runs")])
    with pytest.raises(UsageError, match="2 turns of run night-c have no price"):
        require_known_costs([fine, GoalResult("c", 3, "night-c", "/runs", totals={"turns": 2})])


@pytest.mark.long
@pytest.mark.parametrize("place", ["workspace", "repository"])
def test_missing_login_is_found_before_anything_starts(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only here `batch` asks Codex for its login."""
    (tmp_path / "home").mkdir()
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "goals.jsonl").write_text(f'{{"goal": "x", "{place}": "home"}}\n')
    done = console("batch", "goals.jsonl", folder=tmp_path, variables={"HOME": str(tmp_path / "home")})
    assert done.returncode == ExitCode.WRONG_USAGE
    assert "Codex is not logged in" in done.stderr
    assert not (tmp_path / "runs").exists()
