"""Steps and transitions in words, for graphs and explanations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, StepSpec
from codex_multi_role.catalog.flow_expressions import whole_expression
from codex_multi_role.catalog.flow_spec import ways_out
from codex_multi_role.flow.ends import visits_used_up
from codex_multi_role.flow.routing import End


@dataclass(frozen=True)
class Arrow:
    """A transition to another step's ID or to an end. ``label``: when it is taken; empty for the only one."""

    label: str
    to: str | End


def arrows(flow: FlowSpec, index: int) -> tuple[Arrow, ...]:
    """The transitions from the step at ``index``, in the order in which they are tried."""
    step = flow.steps[index]
    routes = ways_out(flow, index)
    found = [
        Arrow(
            one_line(route.when) if route.when is not None else "otherwise" if len(routes) > 1 else "",
            route.to if route.to is not None else End(route.end or "", route.exit or 0),
        )
        for route in routes
    ]
    used_up = visits_used_up(step)
    return tuple(found if used_up is None else [Arrow(f"visit {(step.max_visits or 0) + 1}", used_up), *found])


def step_words(step: StepSpec) -> str:
    """What the step does: ``ask planner``."""
    if step.ask is not None:
        return "ask every role" if step.ask == EVERY_ROLE else f"ask {step.ask}"
    if step.review is not None:
        return f"review: {one_line(step.review)}"
    return f"{step.kind} {one_line(str(getattr(step, step.kind)))}"


def step_notes(step: StepSpec) -> Iterator[str]:
    """What modifies the step: fan-out, isolation, retries, limits, variables."""
    if step.for_each is not None:
        yield _fan_out(step)
    if step.needs is not None:
        yield "each once those it needs are done"
    if step.isolate is not None:
        yield f"in a {step.isolate} of its own"
    if step.retry is not None:
        yield f"up to {step.retry.attempts} tries"
    if step.on_error == "skip":
        yield "a failure does not end the run"
    if step.time_limit_seconds is not None:
        yield f"{step.default} after {step.time_limit_seconds:g} s"
    if step.max_depth is not None:
        yield f"at most {step.max_depth} deep"
    if step.max_visits is not None:
        yield f"at most {step.max_visits} visits"
    if step.set:
        yield f"sets {', '.join(step.set)}"


def end_words(end: End) -> str:
    """``timeout, exit 1``."""
    return f"{one_line(end.outcome)}, exit {end.exit_code}"


def one_line(text: str) -> str:
    """A question or condition on one line; YAML may spread it over several."""
    return " ".join(text.split())


def _fan_out(step: StepSpec) -> str:
    if isinstance(step.for_each, list):
        items = f"{len(step.for_each)} item{'s'[len(step.for_each) == 1 :]}"
    else:
        items = f"{_bare(step.for_each or '')}, {step.max_items} at most"
    at_once = "one" if step.concurrency == 1 else _bare(str(step.concurrency))
    return f"for each {step.as_} of {items}, {at_once} at a time"


def _bare(text: str) -> str:
    """The text without braces, if it is a single expression."""
    return one_line(whole_expression(text) or text)
