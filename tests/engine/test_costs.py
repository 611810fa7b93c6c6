"""What turns cost, recorded and limited, on real runs."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from codex_multi_role import RunReport
from codex_multi_role.catalog import RoleSpec
from codex_multi_role.errors import BudgetUsedUp, DefinitionError
from codex_multi_role.lifecycle.definitions import load_definitions
from codex_multi_role.presentation.course import Course
from codex_multi_role.run_folder import read_events
from codex_multi_role.steps.budget import Budget, Limits
from codex_multi_role.steps.work_clock import WorkClock
from tests.support.console import console
from tests.support.models import Body, Items, any_model, call, message
from tests.support.prices import price_playbook, write_prices
from tests.support.sub_agents import DONE
from tests.support.teams import Record, TeamFolder, read, say, warnings

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

ONE = RoleSpec(name="one", prompt_text="Do it.")
DOLLAR = Decimal(1)


def budget(cost: Decimal, *ledger: Record) -> Budget:
    """A dollar per token of ``m``; other models have no price."""
    clock = WorkClock(0.0, lambda: 0.0)
    turns = [("one", turn) for turn in ledger]
    return Budget(Limits(cost=cost), turns, clock, lambda model, used: used.total * DOLLAR if model == "m" else None)


def test_turn_counts_at_what_it_cost_when_it_was_recorded() -> None:
    turn = {"tokens": {"input": 1, "output": 0}, "model": "m", "cost": 5.0}
    with pytest.raises(BudgetUsedUp, match=r"\$5\.00 of \$5\.00 are used: one \$5\.00"):
        budget(5 * DOLLAR, turn).reserve_turn(ONE)


def test_turn_of_an_earlier_version_counts_at_current_prices() -> None:
    turn = {"tokens": {"input": 3, "output": 1}, "model": "m"}
    with pytest.raises(BudgetUsedUp, match=r"\$4\.00 of \$4\.00 are used"):
        budget(4 * DOLLAR, turn).reserve_turn(ONE)


def test_unpriced_turn_of_several_models_counts_at_the_current_price_of_each() -> None:
    one, three = ({"input": count, "output": 0} for count in (1, 3))
    turn = {"tokens": {"input": 4, "output": 0}, "tokens_by_model": {"m": one, "gone": three}, "model": "m"}
    with pytest.raises(BudgetUsedUp, match="it is missing for gone"):
        budget(9 * DOLLAR, turn).require_prices(ONE, "m")


def test_no_turn_starts_while_a_price_is_unknown() -> None:
    with pytest.raises(BudgetUsedUp, match="it is missing for other") as caught:
        budget(9 * DOLLAR).require_prices(ONE, "other")
    assert "--prices FILE" in caught.value.hint
    earlier = {"tokens": {"input": 1, "output": 0}, "model": "gone", "cost": None}
    with pytest.raises(BudgetUsedUp, match="it is missing for gone"):
        budget(9 * DOLLAR, earlier).require_prices(ONE, "m")
    unused = {"tokens": {"input": 0, "output": 0}, "model": "gone", "cost": None}
    budget(9 * DOLLAR, unused).require_prices(ONE, "m")


def two(folder: Path) -> TeamFolder:
    return TeamFolder(folder, {"one": {}, "two": {}}, {"one": [say()], "two": [say()]})


def test_run_without_a_price_says_so(tmp_path: Path) -> None:
    report = two(tmp_path).run()
    assert (report.totals["cost"], report.totals["unpriced_turns"]) == (None, 2)
    assert read(report.folder / "one/turn_001/turn.json")["cost"] is None


def test_cost_is_recorded_and_limited(tmp_path: Path) -> None:
    """The run keeps its price list: a change beside the catalog does not reach a resumed run, another list does."""
    team = two(tmp_path)
    price_playbook(tmp_path / "roles/prices.yaml")
    report = team.run(max_cost=0.1)
    assert (report.exit_code, report.outcome) == (5, "budget_used_up")
    turn = read(report.folder / "one/turn_001/turn.json")
    assert turn["prices"] == "2026-01-31"
    assert turn["cost"] == pytest.approx((turn["tokens"]["input"] + turn["tokens"]["output"]) / 1000)
    assert report.totals["cost"] == turn["cost"] == team.of_type("turn_ended")[0]["cost"]

    price_playbook(tmp_path / "roles/prices.yaml", 0.0)
    kept = team.resume(max_cost=100.0)
    assert kept.exit_code == 1
    assert kept.totals["cost"] > turn["cost"]
    own = price_playbook(tmp_path / "own.yaml", 1.0)
    assert load_definitions(team.options(prices=own)).prices.models["playbook"].input == 1


def test_turn_whose_end_a_kill_left_unpublished_counts(tmp_path: Path) -> None:
    """It counts once, and for its role, step and the rest of the budget as well."""
    team = two(tmp_path)
    prices = price_playbook(tmp_path / "prices.yaml")
    report = team.run(max_turns=1, prices=prices)
    events = report.folder / "events.jsonl"
    lines = events.read_text().splitlines(keepends=True)
    events.write_text("".join(lines[: next(index for index, line in enumerate(lines) if '"turn_ended"' in line)]))
    totals = team.resume(max_turns=9).totals
    course = Course.of(read_events(events))
    assert team.events[0]["role"] == "one"
    assert [role.turns for role in course.roles.values()] == [1, 1]
    assert float(course.used.cost.amount) == float(sum(each.amount for each in course.step_costs.values()))
    assert float(course.used.cost.amount) == pytest.approx(totals["cost"])
    assert course.left(course.at)["turns"] == 9 - 2


def test_maximum_cost_without_a_price_is_refused_at_once(tmp_path: Path) -> None:
    team = two(tmp_path)
    own = write_prices(tmp_path / "own.yaml", other=(1.0, 1.0, 1.0))
    with pytest.raises(DefinitionError) as caught:
        team.run(max_cost=1.0, prices=own)
    assert str(caught.value.problems[0]).startswith(f"{own}:3:1: models: ")
    assert "playbook has none (roles one, two)" in str(caught.value)
    assert caught.value.hint.startswith("Name a list that has it: --prices FILE")
    with pytest.raises(DefinitionError, match="Codex chooses that of the roles one, two"):
        team.run(max_cost=1.0, playbook=None, config=('model_provider="ollama"',))
    assert not team.runs.exists()


@pytest.mark.usefixtures("real_codex")
def test_rerouted_turn_is_priced_at_the_model_that_answers(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {"model": "cheap"}}, {"one": []})
    own = write_prices(tmp_path / "own.yaml", cheap=(1.0, 1.0, 1.0), dear=(1000.0, 1000.0, 1000.0))
    with any_model(lambda _: message('{"summary": "fine"}')) as model:
        model.headers["OpenAI-Model"] = "dear"
        report = team.run(playbook=None, config=model.config, prices=own)
    turn = read(report.folder / "one/turn_001/turn.json")
    assert turn["model"] == "dear"
    assert turn["cost"] == pytest.approx((turn["tokens"]["input"] + turn["tokens"]["output"]) / 1000)
    assert any("the model dear answers instead of cheap" in each for each in warnings(team.events))


FIRST_KIND = ("m", "gpt-6.1-sol", "multi_agent_v1", {"message": "sub-task"})
SECOND_KIND = (
    "gpt-6.1-sol",
    "gpt-6-luna",
    "collaboration",
    {"message": "sub-task", "task_name": "sub", "fork_turns": "none"},
)
"""Codex has two kinds of sub-agents; the model of a role decides which: it, that of the sub-agent, and how to ask."""


def with_a_sub_agent(folder: Path, kind: tuple[str, str, str, Record]) -> tuple[TeamFolder, RunReport]:
    """A run whose role starts a sub-agent with another model, of which a token costs a dollar."""
    own, others, namespace, arguments = kind

    def answer(body: Body) -> Items:
        if body["model"] == others:
            return message("sub-task done")
        started = '"c1"' in json.dumps(body["input"])
        return message(DONE) if started else call("spawn_agent", "c1", namespace, model=others, **arguments)

    team = TeamFolder(folder, {"one": {"model": own, "codex_config": {"agents.enabled": True}}}, {"one": []})
    prices = write_prices(folder / "own.yaml", **{own: (0.0,) * 3, others: (10.0**6,) * 3})
    with any_model(answer) as model:
        report = team.run(playbook=None, config=model.config, prices=prices)
    assert any(body["model"] == others for body in model.bodies)
    return team, report


@pytest.mark.extensions
@pytest.mark.usefixtures("real_codex")
@pytest.mark.parametrize("kind", [FIRST_KIND, SECOND_KIND], ids=["v1", "v2"])
def test_sub_agent_is_priced_at_its_own_model(tmp_path: Path, kind: tuple[str, str, str, Record]) -> None:
    """Also by a dry run of its repetition."""
    team, report = with_a_sub_agent(tmp_path, kind)
    turn = read(report.folder / "one/turn_001/turn.json")
    by_model = turn["tokens_by_model"]
    assert set(by_model) == set(kind[:2])
    assert {each: sum(tokens[each] for tokens in by_model.values()) for each in turn["tokens"]} == turn["tokens"]
    used = by_model[kind[1]]
    assert turn["cost"] == report.totals["cost"] == used["input"] + used["output"] > 0
    team.roles["one"]["prompt_text"] = "Do it again."
    team.write_catalog()
    dry = json.loads(console("rerun", "--dry-run", "--json", folder=team.folder).stdout.splitlines()[0])
    assert dry["cost"] == turn["cost"]


@pytest.mark.extensions
@pytest.mark.usefixtures("real_codex")
def test_limit_that_cannot_count_ends_the_run_after_the_turn(tmp_path: Path) -> None:
    """A provider reports no usage. A rerun without the limit takes over the answer, and says that it has no price."""
    team = TeamFolder(tmp_path, {"one": {"model": "m"}}, {"one": []})
    own = write_prices(tmp_path / "own.yaml", m=(1.0, 1.0, 1.0))
    with any_model(lambda _: message('{"summary": "fine"}'), usage=lambda _: None) as model:
        report = team.run(playbook=None, config=model.config, prices=own, cycles=3, max_cost=1.0)
        assert (report.exit_code, report.outcome) == (5, "budget_used_up")
        assert report.reason.endswith("the provider of role one reported none or invalid ones")
        assert team.turns() == [("one", 1, "completed")]
        from codex_multi_role.extensions.replays import rerun

        again = rerun(report.run_id, runs_dir=team.runs, changes={"max_cost": None}, on_event=team.events.append)
    turns = [read(again.folder / f"one/turn_{number:03d}/turn.json") for number in (1, 2, 3)]
    assert [bool(turn.get("reused_from")) for turn in turns] == [True, False, False]
    assert (again.exit_code, again.totals["cost"], again.totals["unpriced_turns"]) == (1, None, 2)


def test_tokens_of_a_turn_that_hits_a_bug_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def store(*_: object) -> None:
        raise ZeroDivisionError("no")

    monkeypatch.setattr("codex_multi_role.steps.turn.Attempt._store", store)
    team = two(tmp_path)
    price_playbook(tmp_path / "roles/prices.yaml")
    report = team.run()
    turn = read(report.folder / "one/turn_001/turn.json")
    assert report.outcome == "internal_error"
    assert (turn["status"], turn["reason"]) == ("failed", "internal_error: ZeroDivisionError: no")
    assert turn["tokens"]["input"] > 0 < turn["cost"]


def test_resumed_run_with_other_roles_keeps_its_price_list(tmp_path: Path) -> None:
    short = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [say()], "two": [say()]})
    short.run(cycles=1, prices=price_playbook(short.folder / "own.yaml", 10), max_turns=1)
    others = shutil.copytree(short.folder / "roles", short.folder / "others")
    price_playbook(others / "prices.yaml", 20)
    report = short.resume(roles=others, max_turns=9)
    assert (
        read(report.folder / "run.json")["totals"]["cost"]
        == sum(report.totals[kind] for kind in ("input_tokens", "output_tokens")) / 100_000
    )
