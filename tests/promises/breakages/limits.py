"""4. Limits are reserved before a turn starts, and survive resume."""

from __future__ import annotations

from functools import partial

from tests.promises.breakage import Breakage

broken = partial(Breakage, 4)
USED_UP = "engine/test_budget.py::test_used_up_limit_parks_the_run_and_says_where_it_went"

LIMITS = (
    broken(
        "a turn is reserved",
        "steps/turn.py",
        "        run.services.budget.reserve_turn(asked.role.name)\n",
        "",
        (USED_UP, "engine/test_budget.py::test_repair_turns_are_reserved_too"),
    ),
    broken(
        "it is reserved before it starts",
        "steps/budget.py",
        "        if limit is None or used < limit:\n",
        "        if limit is None or used <= limit:\n",
        (USED_UP, "engine/test_budget.py::test_repair_turns_are_reserved_too"),
    ),
    broken(
        "turns begun side by side do not share one reservation",
        "steps/budget.py",
        "            self._turns[role] += 1\n\n    def spend",
        "\n    def spend",
        (USED_UP,),
    ),
    broken(
        "turns are limited",
        "steps/budget.py",
        '            self._check("turns", self._turns.total(), self._limits.turns, self._turns)\n',
        "",
        (f"{USED_UP}[limit0-3-3 of 3 turns are used: one 2, two 1]",),
    ),
    broken(
        "tokens are limited",
        "steps/budget.py",
        '            self._check("tokens", self._tokens.total(), self._limits.tokens, self._tokens)\n',
        "",
        (f"{USED_UP}[limit1-2-200 of 150 tokens are used: one 100, two 100]",),
    ),
    broken(
        "seconds are limited",
        "steps/budget.py",
        '            self._check("seconds", self._clock.seconds, self._limits.seconds, self._seconds)\n',
        "",
        ("engine/test_budget.py::test_seconds_are_those_the_run_was_worked_on",),
    ),
    broken(
        "processes are limited",
        "lifecycle/members.py",
        "            most=self.definitions.options.max_processes,\n",
        "            most=None,\n",
        ("engine/test_processes.py::test_six_parallel_items_share_two_processes",),
    ),
    broken(
        "what earlier sessions used counts",
        "steps/budget.py",
        "        for role, turn in ledger:\n",
        "        for role, turn in list(ledger)[:0]:\n",
        ("engine/test_budget.py::test_what_was_used_counts_once_across_sessions",),
    ),
    broken(
        "the seconds of earlier sessions count",
        "lifecycle/session.py",
        "WorkClock(self._record.worked_before)",
        "WorkClock(0.0)",
        ("engine/test_budget.py::test_seconds_of_a_killed_session_count_up_to_its_latest_turn",),
    ),
    broken(
        "a resumed run keeps its limits",
        "lifecycle/kept_definitions.py",
        "    if remembered.playbook is None:\n",
        "    remembered = replace(remembered, max_turns=None)\n    if remembered.playbook is None:\n",
        ("engine/test_budget.py::test_what_was_used_counts_once_across_sessions",),
    ),
    broken(
        "a fork does not pay for what it inherited",
        "run_folder/turn_folder.py",
        "    return ((role, result) for role, result in results if not result.get(INHERITED))\n",
        "    return ((role, result) for role, result in results)\n",
        ("engine/test_fork.py::test_fork_inherits_past_records_but_counts_only_own_turns",),
    ),
)
