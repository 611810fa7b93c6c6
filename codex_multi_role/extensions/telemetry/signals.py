"""A run's events as OpenTelemetry spans and metrics: run → step → turn → tool call, and their usage and durations.

Follows the semantic conventions for generative AI (https://opentelemetry.io/docs/specs/semconv/gen-ai/): the run is an
``invoke_workflow``, a turn an ``invoke_agent``, a tool call an ``execute_tool``. They contain no prompts or answers.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal

from opentelemetry.context import Context
from opentelemetry.metrics import Meter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from codex_multi_role.run_folder import RunEvent, events
from codex_multi_role.run_folder.cost import Cost

PROVIDER = "openai"
"""The protocol's provider; which server answers is up to Codex."""
OWN = "codex_multi_role"
_TRY = re.compile(r"(/try-\d+)?/$")
Attributes = dict[str, str | int | float | bool]


class RunSpans:
    """Receives a run's events in order; times are those of the events, so that a recorded run gives the same spans."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._run: Span | None = None
        self._earlier_cost = Decimal()
        self._steps: dict[str, Span] = {}
        self._turns: dict[tuple[str, int], Span] = {}

    def __call__(self, event: RunEvent) -> None:
        match event:
            case events.RunStarted():
                self._run_started(event)
            case _ if self._run is None:
                pass
            case events.StepStarted():
                self._step_started(event)
            case events.TurnStarted():
                self._turn_started(event)
            case events.TurnEnded():
                self._turn_ended(event)
            case events.ToolCalled():
                self._tool(event, event.tool, "function", failed=not event.success)
            case events.CommandEnded():
                self._tool(event, "shell", "extension", failed=event.exit_code != 0)
            case events.Approval():
                self._approval(event)
            case events.AddedEvent():
                self._run.add_event(event.type, dict(event.figures()), nanoseconds(event.at))
            case events.RunEnded():
                self._run_ended(event, self._run)

    def close(self, at: str = "") -> None:
        """End all spans that are still open; how they ended is unknown."""
        for span in [*self._turns.values(), *self._steps.values(), *([self._run] if self._run else [])]:
            span.end(nanoseconds(at) if at else None)
        self._turns.clear()
        self._steps.clear()
        self._run = None

    def _run_started(self, event: events.RunStarted) -> None:
        self.close(event.at)
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": event.flow,
            f"{OWN}.run.id": event.run_id,
            f"{OWN}.run.resumed": event.resumed,
            f"{OWN}.run.cycles": event.cycles,
        }
        self._earlier_cost = Cost.of(event.earlier_cost).amount
        self._run = self._start(f"invoke_workflow {event.flow}", attributes, event.at, None)

    def _step_started(self, event: events.StepStarted) -> None:
        """Start a step's span; the previous step of its walk ends, with everything it called."""
        walk = _walk(event.step)
        self._end_steps(walk, event.at)
        name = event.step.rpartition("/")[2]
        attributes: Attributes = {f"{OWN}.step.name": event.step, f"{OWN}.step.visit": event.visit}
        self._steps[walk] = self._start(f"step {name}", attributes, event.at, self._parent_of(walk))

    def _turn_started(self, event: events.TurnStarted) -> None:
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": PROVIDER,
            "gen_ai.agent.name": event.role,
            f"{OWN}.turn.number": event.turn,
            f"{OWN}.turn.attempt": event.attempt,
            f"{OWN}.turn.repair": event.repair_of is not None,
        }
        optional = {"gen_ai.request.model": event.model, "gen_ai.conversation.id": event.thread_id}
        attributes |= {name: value for name, value in optional.items() if value}
        parent = self._steps.get(_walk(event.unit), self._run)
        span = self._start(f"invoke_agent {event.role}", attributes, event.at, parent, SpanKind.CLIENT)
        self._turns[event.role, event.turn] = span

    def _turn_ended(self, event: events.TurnEnded) -> None:
        span = self._turns.pop((event.role, event.turn), None)
        if span is None:
            return
        cost = {} if event.cost is None else {f"{OWN}.turn.cost": event.cost}
        span.set_attributes(
            {
                **cost,
                "gen_ai.usage.input_tokens": event.input_tokens,
                "gen_ai.usage.output_tokens": event.output_tokens,
                f"{OWN}.turn.outcome": event.outcome,
            }
        )
        _end(span, event, failed=event.status != "completed")

    def _approval(self, event: events.Approval) -> None:
        span = self._turns.get((event.role, event.turn))
        if span is not None:
            attributes = {f"{OWN}.approval.method": event.method, f"{OWN}.approval.decision": event.decision}
            span.add_event("approval", attributes, nanoseconds(event.at))

    def _run_ended(self, event: events.RunEnded, run: Span) -> None:
        self._end_steps("", event.at)
        for span in self._turns.values():
            span.end(nanoseconds(event.at))
        self._turns.clear()
        run.set_attributes({f"{OWN}.run.outcome": event.outcome, f"{OWN}.exit_code": event.exit_code})
        if (cost := Cost.of_totals(event.totals).known) is not None:
            run.set_attribute(f"{OWN}.run.cost", float(cost - self._earlier_cost))
        _end(run, event, failed=event.exit_code != 0)
        self._run = None

    def _tool(self, event: events.ToolCalled | events.CommandEnded, name: str, kind: str, *, failed: bool) -> None:
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": kind,
        }
        began = datetime.fromisoformat(event.at) - timedelta(seconds=event.seconds)
        parent = self._turns.get((event.role, event.turn), self._run)
        span = self._start(f"execute_tool {name}", attributes, began.isoformat(), parent)
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(nanoseconds(event.at))

    def _start(
        self, name: str, attributes: Attributes, at: str, parent: Span | None, kind: SpanKind = SpanKind.INTERNAL
    ) -> Span:
        context = set_span_in_context(parent) if parent is not None else Context()
        return self._tracer.start_span(name, context, kind, attributes, start_time=nanoseconds(at))

    def _parent_of(self, walk: str) -> Span | None:
        """Return the step whose call or item the walk belongs to."""
        return self._steps.get(_walk(_TRY.sub("", walk)), self._run) if walk else self._run

    def _end_steps(self, walk: str, at: str) -> None:
        for each in [each for each in self._steps if each.startswith(walk)]:
            self._steps.pop(each).end(nanoseconds(at))


def _walk(key: str) -> str:
    """Return the caller in a step's or unit's key: ``batch.1.3/`` of ``batch.1.3/analyse``, otherwise empty."""
    return "".join(key.rpartition("/")[:2])


def _end(span: Span, event: events.TurnEnded | events.RunEnded, *, failed: bool) -> None:
    if failed:
        span.set_attribute("error.type", event.outcome or event.status)
        span.set_status(Status(StatusCode.ERROR, event.outcome))
    span.end(nanoseconds(event.at))


def nanoseconds(at: str) -> int:
    """Convert an event's ``at`` to nanoseconds since 1970."""
    return int(datetime.fromisoformat(at).timestamp() * 1_000_000) * 1000


class RunMetrics:
    """Receives a run's events in order."""

    def __init__(self, meter: Meter) -> None:
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Number of input and output tokens of a turn."
        )
        self._cost = meter.create_histogram(f"{OWN}.turn.cost", "{USD}", "Cost of a turn, if its model has a price.")
        self._turns = meter.create_histogram("gen_ai.client.operation.duration", "s", "Duration of a turn.")
        self._runs = meter.create_histogram(f"{OWN}.run.duration", "s", "Time that a process worked on a run.")
        self._repairs = meter.create_counter(f"{OWN}.repairs", "{repair}", "Answers that were repaired.")
        self._approvals = meter.create_counter(f"{OWN}.approvals", "{approval}", "Approval requests and their answers.")
        self._flow = ""
        self._roles: frozenset[str] = frozenset()
        self._worked_before = 0.0
        self._models: dict[str, str] = {}

    def __call__(self, event: RunEvent) -> None:
        match event:
            case events.RunStarted():
                self._flow, self._roles = event.flow, frozenset(event.roles)
                self._worked_before = event.worked_seconds
            case _ if not self._flow:
                pass  # the end of a turn of a session that was killed
            case events.TurnStarted():
                self._models[event.role] = event.model
                if event.repair_of is not None:
                    self._repairs.add(1, {**self._agent(event.role), f"{OWN}.repair": "asked again"})
            case events.ReplyRepaired():
                self._repairs.add(1, {**self._agent(event.role), f"{OWN}.repair": event.how})
            case events.Approval():
                attributes = {f"{OWN}.approval.decision": event.decision, f"{OWN}.approval.method": event.method}
                self._approvals.add(1, {**self._agent(event.role), **attributes})
            case events.TurnEnded():
                self._turn_ended(event)
            case events.RunEnded():
                attributes = {"gen_ai.workflow.name": self._flow, f"{OWN}.run.outcome": event.outcome}
                self._runs.record((event.totals["seconds"] or 0.0) - self._worked_before, attributes)

    def _turn_ended(self, event: events.TurnEnded) -> None:
        common = self._agent(event.role)
        for kind, tokens in (("input", event.input_tokens), ("output", event.output_tokens)):
            self._tokens.record(tokens, {**common, "gen_ai.token.type": kind})
        if event.cost is not None:
            self._cost.record(event.cost, common)
        failed = {"error.type": event.outcome} if event.status != "completed" else {}
        self._turns.record(event.seconds, {**common, **failed})

    def _agent(self, role: str) -> Attributes:
        """Return the attributes of a role, not of its processes: a fan-out of hundreds is one series."""
        name = role if role in self._roles else role.rpartition(".")[0]
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": PROVIDER,
            "gen_ai.agent.name": name,
            "gen_ai.workflow.name": self._flow,
        }
        model = self._models.get(role)
        return {**attributes, "gen_ai.request.model": model} if model else attributes
