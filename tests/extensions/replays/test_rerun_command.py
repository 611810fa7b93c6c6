"""The command ``rerun``: what its dry run prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.console import console
from tests.support.prices import price_playbook
from tests.support.teams import TeamFolder, say, warnings, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")


def test_dry_run_says_what_the_new_run_costs_at_most(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    with_flow(team, {"steps": [{"ask": "one"}]}).run(flow="own")
    price_playbook(team.folder / "roles/prices.yaml", 10)
    unchanged = console("rerun", "--dry-run", folder=team.folder)
    assert (unchanged.stdout, unchanged.stderr) == ("", "1 turn taken over, 0 asked, 0 may be asked\n")
    team.roles["one"]["prompt_text"] = "Do it again."
    team.write_catalog()
    unlimited = console("rerun", "--dry-run", folder=team.folder)
    assert ": asked, " in unlimited.stdout
    assert unlimited.stderr.endswith("the new run: no bound in money: set --max-tokens or --max-cost\n")
    limited = console("rerun", "--dry-run", "--max-cost=0.5", "--json", folder=team.folder)
    *_, forecast = map(json.loads, limited.stdout.splitlines())
    assert (forecast["taken"], forecast["asked"]) == (0, 1)
    assert forecast["cost"] == sum(forecast["tokens"].values()) / 100_000
    assert forecast["at_most"].startswith("at most $0.50, and the model calls in progress then")


@pytest.mark.real
def test_dry_run_says_that_unknown_turns_may_follow(tmp_path: Path) -> None:
    """The path after an edited check may lead to a turn that the earlier run did not have."""
    check = {"id": "k", "check": "command", "with": {"argv": ["true"]}}
    way = {"next": [{"when": "steps.k.exit_code == 0", "end": "fine"}, {"to": "b"}]}
    steps = [{"ask": "one"}, {**check, **way}, {"id": "b", "ask": "one"}]
    team = with_flow(TeamFolder(tmp_path, {"one": {}}, {"one": [say()]}), {"steps": steps})
    team.run(flow="own")
    with_flow(team, {"steps": [steps[0], {**check, **way, "with": {"argv": ["false"]}}, steps[2]]})
    summary = console("rerun", "--dry-run", folder=team.folder).stderr
    assert "0 may be asked; other turns may follow\n" in summary
    assert "the new run: no bound in money" in summary


def test_dry_run_says_that_more_cycles_ask_more_turns(tmp_path: Path) -> None:
    """Prompts may name the cycles, so that each turn of the earlier run may be asked, too."""
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [say()], "two": [say()]}, {"repeat_last": True})
    team.run(cycles=1)
    dry = console("rerun", "--dry-run", "--cycles=3", folder=team.folder)
    assert dry.stdout.startswith("team: one 1: may be asked, ")
    assert dry.stdout.endswith(": it comes after a change: cycles\n")
    assert "0 turns taken over, 0 asked, 2 may be asked; " in dry.stderr
    last = console("rerun", "--dry-run", "--cycles=3", "--json", folder=team.folder).stdout.splitlines()[-1]
    assert json.loads(last)["more_may_follow"]


FORMER = {
    "own": [
        {"ask": "one", "max_visits": 2},
        {"id": "look", "check": "command", "with": {"argv": ["false"]}, "on_error": "skip", "repeatable": False},
        {"id": "ok", "review": "Ship?", "options": ["ship"], "show": "{{ goal }}"},
        {"id": "in", "call": "inner", "on_error": "skip", "max_depth": 2},
    ],
    "inner": [{"ask": "one", "for_each": [1], "as": "n", "on_error": "skip", "isolate": "worktree", "merge": "none"}],
}


def test_run_with_former_keys_continues_beside_rewritten_files(tmp_path: Path) -> None:
    """Its own copy stays as it was recorded, without a note; a flow in the present keys is no change of it."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()] * 4})
    for name, steps in FORMER.items():
        with_flow(team, {"steps": steps}, name)
    assert team.run(flow="own").exit_code == 4
    notes = [note for note in warnings(team.events) if ": former keys: " in note]
    assert [Path(note.partition(":")[0]).name for note in notes] == ["own.yaml", "inner.yaml"]
    assert console("answer", "latest", "option=ship", folder=team.folder).returncode == 0
    assert (team.resume().exit_code, warnings(team.events)) == (0, [])
    assert {*console("flows", "migrate", folder=team.folder).stderr.split()} > {"roles/flows/own.yaml"}
    assert console("rerun", "--dry-run", folder=team.folder).stderr == "2 turns taken over, 0 asked, 0 may be asked\n"
    for again in (("fork", "latest", "--from", "look"), ("rerun", "latest")):
        done = console(*again, folder=team.folder)
        assert (done.returncode, "former keys" in done.stderr) == (4, False), done.stderr
    assert "look" in console("show", "latest", folder=team.folder).stdout
