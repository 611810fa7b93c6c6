"""4. Limits are reserved before a turn starts, and survive resume."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.codex.client import RoleClient
from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.extensions.machines.batches.schedule import Schedule
from codex_multi_role.extensions.machines.workers.run_requests import RunRequest
from codex_multi_role.lifecycle.kept_definitions import remembered_options
from codex_multi_role.lifecycle.members import Members
from codex_multi_role.run_folder.turn_folder import list_turns, own_turns
from codex_multi_role.run_options import limits_in
from codex_multi_role.steps.budget import Budget, Cap, Limits, Price
from codex_multi_role.steps.turn_events import TurnUsage
from codex_multi_role.steps.work_clock import WorkClock
from tests.promises.breakage import Broken
from tests.promises.change import ReplacedFunction, replaced, returns

USED_UP = "engine/test_caps.py::test_used_up_limit_parks_the_run_and_says_where_it_went"


def _uncounted(reserve: Callable[..., None], self: Budget, role: RoleSpec) -> None:
    reserve(self, role)
    self._turns[role.name] -= 1


def _without_ledger(
    init: Callable[..., None], self: Budget, limits: Limits, ledger: object, clock: WorkClock, price: Price
) -> None:
    init(self, limits, (), clock, price)


def _at_price_of_role(
    add: Callable[..., None], self: TurnUsage, usage: TokenUsage, sub_agent_model: str | None = None
) -> None:
    add(self, usage)


def _unchecked(limit_of: str) -> ReplacedFunction:
    return replaced(Budget._caps, lambda caps, *given: filter(lambda cap: cap.what != limit_of, caps(*given)))


LIMITS: Broken = {
    "a goal reserves its limits before it starts": (
        returns(Schedule._lack, ""),
        "extensions/machines/batches/test_planned_runs.py::test_goal_waits_for_what_another_may_leave",
    ),
    "a run on workers reserves the limits that it has now": (
        replaced(vars(RunRequest)["limits"].fget, lambda _, self: limits_in(self.options)),
        "extensions/machines/workers/test_queued_runs.py::test_run_resumed_with_another_limit_reserves_that[sqlite-saved]",
    ),
    "a sub-agent counts at the price of its own model": (
        replaced(TurnUsage.add, _at_price_of_role),
        "engine/test_costs.py::test_sub_agent_is_priced_at_its_own_model[v1]",
    ),
    "a turn is reserved": (
        returns(Budget.reserve_turn, None),
        USED_UP,
        "engine/test_caps.py::test_repair_turns_are_reserved_too",
    ),
    "it is reserved before it starts": (
        replaced(Cap.is_used_up, lambda _, self: self.is_exceeded()),
        USED_UP,
        "engine/test_caps.py::test_repair_turns_are_reserved_too",
    ),
    "turns begun side by side do not share one reservation": (replaced(Budget.reserve_turn, _uncounted), USED_UP),
    "turns are limited": (_unchecked("turns"), f"{USED_UP}[limit0-3-3 of 3 turns are used: one 2, two 1]"),
    "tokens are limited": (
        _unchecked("tokens"),
        f"{USED_UP}[limit1-2-200 of 150 tokens are used: one 100, two 100]",
    ),
    "no turn follows one that such a limit cannot count": (
        returns(Budget.note_unknown_usage, None),
        "engine/test_costs.py::test_limit_that_cannot_count_ends_the_run_after_the_turn",
    ),
    "a request that exceeds a limit ends its turn": (
        replaced(Cap.is_exceeded, lambda _, self: False),
        "engine/test_caps.py::test_turn_ends_at_the_request_that_exceeds_the_limit",
    ),
    "it ends the other running turns": (
        returns(RoleClient.wake, None),
        "engine/test_caps.py::test_other_running_turns_end_with_it",
    ),
    "what an interrupted turn used counts": (
        returns(TokenUsage.as_record, {"input": 0, "output": 0}),
        "engine/test_caps.py::test_turn_ends_at_the_request_that_exceeds_the_limit",
    ),
    "seconds are limited": (
        _unchecked("seconds"),
        "engine/test_caps.py::test_seconds_are_those_the_run_was_worked_on",
    ),
    "processes are limited": (
        replaced(
            Members.fleet,
            lambda fleet, self, events: fleet(
                replace(
                    self,
                    definitions=replace(self.definitions, options=self.definitions.options.changed(max_processes=None)),
                ),
                events,
            ),
        ),
        "engine/test_left_over.py::test_six_parallel_items_share_two_processes",
    ),
    "what earlier sessions used counts": (
        replaced(Budget.__init__, _without_ledger),
        "engine/test_caps.py::test_what_was_used_counts_once_across_sessions",
    ),
    "the seconds of earlier sessions count": (
        replaced(WorkClock.__init__, lambda init, self, before, *rest: init(self, 0.0, *rest)),
        "engine/test_caps.py::test_seconds_of_a_killed_session_count_up_to_its_latest_turn",
    ),
    "a resumed run keeps its limits": (
        replaced(
            remembered_options,
            lambda remembered, *given: remembered(*given).changed(max_turns=None),
        ),
        "engine/test_caps.py::test_what_was_used_counts_once_across_sessions",
    ),
    "a fork does not pay for what it inherited": (
        replaced(own_turns, lambda _, run: ((role, turn.result()) for role, turn in list_turns(run))),
        "engine/test_fork.py::test_fork_inherits_past_records_but_counts_only_own_turns",
    ),
}
