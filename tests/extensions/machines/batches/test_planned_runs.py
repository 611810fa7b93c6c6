"""From goals to runs: names, options, repositories, shards, and who shares a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.extensions.machines.batches.planned_runs import (
    Defaults,
    PlannedRun,
    Shard,
    plan_runs,
    repository_names,
    uncommitted_changes,
)
from tests.support.batches import defaults, goals
from tests.support.teams import Record
from tests.support.workspaces import git


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
    git(tmp_path / "repo", "init", "-q")
    git(tmp_path / "repo", "commit", "-q", "--allow-empty", "-m", "Start")
    lines: list[Record] = [{"workspace": "repo"}, {"workspace": "repo/below"}, {"workspace": "repo", "worktree": False}]
    runs = planned(defaults(tmp_path), *lines)
    assert [run.options.place.worktree for run in runs.values()] == [True, True, False]
    assert [bool(run.share) for run in runs.values()] == [False, False, True]
    assert not planned(defaults(tmp_path), lines[0])["1"].options.place.worktree


def test_uncommitted_changes_of_worktrees_are_counted(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Start")
    runs = planned(defaults(tmp_path), {}, {}).values()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/ours").touch()
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
