"""What is probably not meant in a flow that is right: results that nothing reads, failures that end as a success."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog, RouteSpec, StepSpec
from codex_multi_role.catalog.flow_spec import reached_from, step_place
from codex_multi_role.flow.conditions import known_truth
from codex_multi_role.flow.result_reads import is_used
from codex_multi_role.flow.step_fields import KnownCheck
from codex_multi_role.reading.value_types import ANY


def notes_on(flow: FlowSpec, catalog: RoleSpecCatalog, checks: Mapping[str, KnownCheck]) -> Iterator[str]:
    """Notes on a flow without an error in it, whose steps do these ``checks``, by name."""
    yield from former_keys_of(flow)
    for index, step in enumerate(flow.steps):
        place = step_place(flow, index)
        check = checks[step.check] if step.check is not None else None
        changes_nothing = _only_answers(step, catalog) if check is None else check.is_only_read
        # The last answer of a run is its result.
        may_continue = not flow.internal and any(each is not step for each in reached_from(flow, index))
        if changes_nothing and may_continue and not is_used(flow, index):
            yield f"{place}: nothing reads the result of the step, and it changes nothing else"
        if step.retry is not None and check is not None and check.repeats_itself:
            yield f"{place / 'retry'}: the check {step.check} gives the same result again, unless its files change"
        for number, route in enumerate(step.next):
            if route.end and "exit" not in route.model_fields_set and _says_that_it_is_bad(route, step, check):
                meant = "add `exit: 1`, or `exit: 0` if that is meant"
                yield f"{place / 'next' / number}: the flow ends with exit code 0 after a bad result; {meant}"


def former_keys_of(flow: FlowSpec) -> Iterator[str]:
    """The note on a flow in a former spelling, and the command that rewrites it."""
    if flow.former_keys:
        rewrite = f"codex-multi-role flows migrate {shlex.quote(str(flow.source))}"
        yield f"{flow.source}: former keys: {', '.join(flow.former_keys)}; `{rewrite}` rewrites them"


def _only_answers(step: StepSpec, catalog: RoleSpecCatalog) -> bool:
    """Whether the roles of the step neither change files nor decide by themselves how the run ends."""
    asked = [role for role in catalog.roles if role.name in step.asked]
    return bool(asked) and not any(role.may_change_workspace or role.behaviors.can_finish for role in asked)


def _says_that_it_is_bad(route: RouteSpec, step: StepSpec, check: KnownCheck | None) -> bool:
    """Whether the condition may hold for a bad result of the step, a rejection or a bad verdict, and for no other."""
    name, every, bad = "approved", frozenset[object]({True, False}), frozenset[object]({False})
    if check is not None:
        name, every, bad = "verdict", check.result.fields.get("status", ANY).values or frozenset(), frozenset(check.bad)
    elif step.review is None or route.when is None:
        return False
    may_hold = {each for each in every if known_truth(route.when, {("steps", step.id, name): each}) is not False}
    return bool(may_hold) and may_hold <= bad
