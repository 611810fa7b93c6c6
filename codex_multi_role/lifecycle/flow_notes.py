"""What is probably not meant in a flow that is right: results that nothing reads, failures that end as a success."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jinja2 import nodes

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog, RouteSpec, StepSpec
from codex_multi_role.catalog.flow_expressions import name_or_constant, parse_expression
from codex_multi_role.catalog.flow_spec import reached_from, step_place
from codex_multi_role.checks import Check, find_check
from codex_multi_role.checks.contract import CheckResult, no_time
from codex_multi_role.flow.result_reads import is_used
from codex_multi_role.reading.value_types import type_of_model

FAILURES = (
    *("abort", "bad", "broken", "cancel", "decline", "deny", "error", "fail", "gave", "invalid", "red"),
    *("refuse", "reject", "time"),
)
"""Beginnings of words in the name of an end that is a failure."""


def notes_on(flows: Mapping[str, FlowSpec], name: str, catalog: RoleSpecCatalog) -> Iterator[str]:
    """Notes on the flow ``name`` of ``flows``, which are those that it calls, without an error in any of them."""
    flow = flows[name]
    for index, step in enumerate(flow.steps):
        place = step_place(flow, index)
        if _leaves_only_its_result(step, catalog) and _may_continue(flow, index) and not is_used(flow, index):
            yield f"{place}: nothing reads the result of the step, and it changes nothing else"
        if step.retry is not None and step.check is not None and _repeats_itself(find_check(step.check)):
            yield f"{place / 'retry'}: the check {step.check} gives the same result again, unless its files change"
        for number, route in enumerate(step.next):
            if _is_failure(route) and _says_that_it_is_bad(route, step):
                yield f"{place / 'next' / number}: the flow ends with exit code 0; add `exit: 1` if that is a failure"


def _leaves_only_its_result(step: StepSpec, catalog: RoleSpecCatalog) -> bool:
    """Whether the step neither changes files nor decides by itself how the run ends."""
    if step.check is not None:
        check = find_check(step.check)
        return check.read_only and not check.what_is_bad and not _only_passes_or_fails(check)
    asked = [role for role in catalog.roles if role.name in step.asked]
    return bool(asked) and not any(role.may_change_workspace or role.behaviors.can_finish for role in asked)


def _only_passes_or_fails(check: Check) -> bool:
    """Whether all results of the check have the same status: it is there to fail if something is missing."""
    status = None if check.result is None else type_of_model(check.result).fields.get("status")
    return status is not None and status.values is not None and len(status.values) == 1


def _may_continue(flow: FlowSpec, index: int) -> bool:
    """Whether another step may follow: the last answer of a run is its result."""
    return not flow.internal and any(each is not flow.steps[index] for each in reached_from(flow, index))


def _repeats_itself(check: Check) -> bool:
    return check.read_only and check.max_seconds is no_time


def _is_failure(route: RouteSpec) -> bool:
    words = (route.end or "").casefold().replace("-", "_").split("_")
    return not route.exit and any(word.startswith(failure) for word in words for failure in FAILURES)


def _says_that_it_is_bad(route: RouteSpec, step: StepSpec) -> bool:
    """Whether the condition holds only for a bad result of the step: a rejection, or a bad verdict of its check."""
    match parse_expression(route.when) if route.when else None:
        case nodes.Not(node=result):
            return name_or_constant(result) == ("steps", step.id, "approved")
        case nodes.Compare(expr=result, ops=[nodes.Operand(op=sign, expr=nodes.Const(value=word))]):
            is_verdict = name_or_constant(result) == ("steps", step.id, "verdict") and step.check is not None
            return is_verdict and (word in _bad_words(step)) == (sign == "eq")
    return False


def _bad_words(step: StepSpec) -> tuple[str, ...]:
    kind = find_check(step.check or "").result
    return tuple(kind.bad) if kind is not None and issubclass(kind, CheckResult) else ()
