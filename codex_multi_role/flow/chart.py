"""A flow as it is drawn and explained: its steps in order, what each does, and where it leads. Pure data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, StepSpec
from codex_multi_role.catalog.flow_expressions import whole_expression
from codex_multi_role.catalog.flow_spec import ways_out, with_called
from codex_multi_role.catalog.step_spec import ForEach
from codex_multi_role.flow.conditions import depth_of
from codex_multi_role.flow.routing import End, ends, visits_used_up

NEXT, AHEAD, BACK, OUT = "next", "ahead", "back", "out"


@dataclass(frozen=True)
class Arrow:
    """A transition to another step's ID or to an end. ``label``: when it is taken; empty for the only one.

    ``leads``: to the following step (`NEXT`), one further on (`AHEAD`), the same or an earlier one (`BACK`), or to an
    end (`OUT`).
    """

    label: str
    to: str | End
    leads: str


@dataclass(frozen=True)
class Node:
    """A step: what it does, what modifies that, and its transitions in the order in which they are tried."""

    step: StepSpec
    words: str
    notes: tuple[str, ...]
    arrows: tuple[Arrow, ...]

    @property
    def id(self) -> str:
        return self.step.id

    @property
    def ends(self) -> tuple[End, ...]:
        """The ends that it can lead to, each once."""
        return tuple(dict.fromkeys(arrow.to for arrow in self.arrows if isinstance(arrow.to, End)))


@dataclass(frozen=True)
class Chart:
    """One flow; ``ends`` in flow order, each once."""

    name: str
    description: str
    nodes: tuple[Node, ...]
    ends: tuple[End, ...]


def charts(flows: Mapping[str, FlowSpec], name: str) -> tuple[Chart, ...]:
    """The flow ``name``, then each flow that it calls, once."""
    return tuple(map(chart_of, with_called(flows, name)))


def chart_of(flow: FlowSpec) -> Chart:
    places = {step.id: index for index, step in enumerate(flow.steps)}
    nodes = [
        Node(step, step_words(step), tuple(step_notes(step)), tuple(_arrows(flow, index, places)))
        for index, step in enumerate(flow.steps)
    ]
    return Chart(flow.name, one_line(flow.description), tuple(nodes), ends(flow))


def _arrows(flow: FlowSpec, index: int, places: Mapping[str, int]) -> Iterator[Arrow]:
    routes = ways_out(flow, index)
    if (used_up := visits_used_up(flow.steps[index])) is not None:
        yield Arrow(f"visit {(flow.steps[index].limits.visits or 0) + 1}", used_up, OUT)
    for route in routes:
        label = one_line(route.when) if route.when is not None else "otherwise" if len(routes) > 1 else ""
        if route.to is None:
            yield Arrow(label, End(route.end or "", route.exit or 0), OUT)
        else:
            yield Arrow(label, route.to, _direction(places[route.to] - index))


def _direction(distance: int) -> str:
    return NEXT if distance == 1 else AHEAD if distance > 1 else BACK


def step_words(step: StepSpec) -> str:
    """What the step does: ``ask planner``."""
    if step.ask is not None:
        if step.roles and not step.asks_at_once:
            return f"ask one of {', '.join(step.roles)}"
        return "ask every role" if step.ask == EVERY_ROLE else f"ask {', '.join(step.asked)}"
    if step.review is not None:
        return f"review: {one_line(step.review.question)}"
    return f"{step.kind} {one_line(str(getattr(step, step.kind)))}"


def step_notes(step: StepSpec) -> Iterator[str]:
    """What modifies the step: fan-out, isolation, retries, limits, variables."""
    if (fan_out := step.for_each) is not None:
        at_once = "at once" if fan_out.concurrency == len(step.roles) else f"{fan_out.concurrency} at a time"
        yield at_once if step.asks_at_once else _fan_out(fan_out)
        if fan_out.until is not None:
            yield f"until {one_line(fan_out.until)}"
        if fan_out.needs is not None:
            yield "each after the items it depends on"
    if step.isolate is not None:
        yield "in a worktree of its own"
    if step.retry is not None:
        yield f"up to {step.retry.attempts} tries"
    if "failed" in (step.allow if fan_out is None else fan_out.allow):
        yield "a failure does not end the run"
    if step.review is not None and (after := step.review.after) is not None:
        yield f"{after.answer} after {after.seconds:g} s"
    if (depth := depth_of(step)) is not None:
        yield f"at most {depth} deep"
    if step.limits.visits is not None:
        yield f"at most {step.limits.visits} visits"
    if step.set:
        yield f"sets {', '.join(step.set)}"


def end_words(end: End) -> str:
    """``timeout, exit 1``."""
    return f"{one_line(end.outcome)}, exit {end.exit_code}"


def one_line(text: str) -> str:
    """A question or condition on one line; YAML may spread it over several."""
    return " ".join(text.split())


def _fan_out(fan_out: ForEach) -> str:
    if isinstance(fan_out.items, list):
        items = f"{len(fan_out.items)} item{'s'[len(fan_out.items) == 1 :]}"
    else:
        items = f"{_bare(fan_out.items)}, {fan_out.max_items} at most"
    at_once = "one" if fan_out.concurrency == 1 else _bare(str(fan_out.concurrency))
    return f"for each {fan_out.as_} of {items}, {at_once} at a time"


def _bare(text: str) -> str:
    """The text without braces, if it is a single expression."""
    return one_line(whole_expression(text) or text)
