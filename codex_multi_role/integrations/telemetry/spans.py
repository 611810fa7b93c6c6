"""Spans of a run, from its events: run → step → turn → tool call.

Follows the semantic conventions for generative AI (https://opentelemetry.io/docs/specs/semconv/gen-ai/): the run is an
``invoke_workflow``, a turn an ``invoke_agent``, a tool call an ``execute_tool``. They contain no prompts or answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from codex_multi_role.run_folder import Record

PROVIDER = "openai"
"""The protocol's provider; which server answers is up to Codex."""
OWN = "codex_multi_role"
Attributes = dict[str, str | int | float | bool]


class RunSpans:
    """Receives a run's events in order; times are those of the events, so that a recorded run gives the same spans."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._run: Span | None = None
        self._steps: dict[str, Span] = {}
        self._turns: dict[tuple[str, int], Span] = {}

    def __call__(self, record: Record) -> None:
        handler = _HANDLERS.get(record["type"])
        if handler is not None and (self._run is not None or record["type"] == "run_started"):
            handler(self, record)

    def close(self, at: str = "") -> None:
        """End all spans that are still open; how they ended is unknown."""
        for span in [*self._turns.values(), *self._steps.values(), *([self._run] if self._run else [])]:
            span.end(nanoseconds(at) if at else None)
        self._turns.clear()
        self._steps.clear()
        self._run = None

    def run_started(self, record: Record) -> None:
        self.close(record["at"])
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": record["flow"],
            f"{OWN}.run.id": record["run_id"],
            f"{OWN}.run.resumed": record["resumed"],
            f"{OWN}.run.cycles": record["cycles"],
        }
        self._run = self._start(f"invoke_workflow {record['flow']}", attributes, record["at"], None)

    def step_started(self, record: Record) -> None:
        """Start a step's span; the previous step of its walk ends, with everything it called."""
        walk = _walk(record["step"])
        self._end_steps(walk, record["at"])
        name = record["step"].rpartition("/")[2]
        attributes: Attributes = {f"{OWN}.step.name": record["step"], f"{OWN}.step.visit": record["visit"]}
        self._steps[walk] = self._start(f"step {name}", attributes, record["at"], self._parent_of(walk))

    def turn_started(self, record: Record) -> None:
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": PROVIDER,
            "gen_ai.agent.name": record["role"],
            f"{OWN}.turn.number": record["turn"],
            f"{OWN}.turn.attempt": record["attempt"],
            f"{OWN}.turn.repair": record["repair_of"] is not None,
        }
        optional = {"gen_ai.request.model": record.get("model"), "gen_ai.conversation.id": record.get("thread_id")}
        attributes |= {name: value for name, value in optional.items() if value}
        parent = self._steps.get(_walk(record.get("unit", "")), self._run)
        span = self._start(f"invoke_agent {record['role']}", attributes, record["at"], parent, SpanKind.CLIENT)
        self._turns[record["role"], record["turn"]] = span

    def turn_ended(self, record: Record) -> None:
        span = self._turns.pop((record["role"], record["turn"]), None)
        if span is None:
            return
        span.set_attributes(
            {
                "gen_ai.usage.input_tokens": record["input_tokens"],
                "gen_ai.usage.output_tokens": record["output_tokens"],
                f"{OWN}.turn.outcome": record["outcome"],
            }
        )
        _end(span, record, failed=record["status"] != "completed")

    def tool_called(self, record: Record) -> None:
        self._tool(record, record["tool"], "function", failed=not record["success"])

    def command_ended(self, record: Record) -> None:
        self._tool(record, "shell", "extension", failed=record["exit_code"] != 0)

    def approval(self, record: Record) -> None:
        span = self._turns.get((record["role"], record["turn"]))
        if span is not None:
            attributes = {f"{OWN}.approval.method": record["method"], f"{OWN}.approval.decision": record["decision"]}
            span.add_event("approval", attributes, nanoseconds(record["at"]))

    def run_ended(self, record: Record) -> None:
        self._end_steps("", record["at"])
        for span in self._turns.values():
            span.end(nanoseconds(record["at"]))
        self._turns.clear()
        if self._run is not None:
            self._run.set_attributes({f"{OWN}.run.outcome": record["outcome"], f"{OWN}.exit_code": record["exit_code"]})
            _end(self._run, record, failed=record["exit_code"] != 0)
            self._run = None

    def _tool(self, record: Record, name: str, kind: str, *, failed: bool) -> None:
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": kind,
        }
        began = datetime.fromisoformat(record["at"]) - timedelta(seconds=record["seconds"])
        parent = self._turns.get((record["role"], record["turn"]), self._run)
        span = self._start(f"execute_tool {name}", attributes, began.isoformat(), parent)
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(nanoseconds(record["at"]))

    def _start(
        self, name: str, attributes: Attributes, at: str, parent: Span | None, kind: SpanKind = SpanKind.INTERNAL
    ) -> Span:
        context = set_span_in_context(parent) if parent is not None else Context()
        return self._tracer.start_span(name, context, kind, attributes, start_time=nanoseconds(at))

    def _parent_of(self, walk: str) -> Span | None:
        """Return the step whose call or item the walk belongs to."""
        return self._steps.get(_walk(walk.removesuffix("/")), self._run) if walk else self._run

    def _end_steps(self, walk: str, at: str) -> None:
        for each in [each for each in self._steps if each.startswith(walk)]:
            self._steps.pop(each).end(nanoseconds(at))


def _walk(key: str) -> str:
    """Return the caller in a step's or unit's key: ``batch.1.3/`` of ``batch.1.3/analyse``, otherwise empty."""
    return "".join(key.rpartition("/")[:2])


def _end(span: Span, record: Record, *, failed: bool) -> None:
    if failed:
        span.set_attribute("error.type", record["outcome"] or record["status"])
        span.set_status(Status(StatusCode.ERROR, record["outcome"]))
    span.end(nanoseconds(record["at"]))


def nanoseconds(at: str) -> int:
    """Convert an event's ``at`` to nanoseconds since 1970."""
    return int(datetime.fromisoformat(at).timestamp() * 1_000_000) * 1000


_HANDLERS: Mapping[str, Callable[[RunSpans, Record], None]] = {
    "run_started": RunSpans.run_started,
    "step_started": RunSpans.step_started,
    "turn_started": RunSpans.turn_started,
    "turn_ended": RunSpans.turn_ended,
    "tool_called": RunSpans.tool_called,
    "command_ended": RunSpans.command_ended,
    "approval": RunSpans.approval,
    "run_ended": RunSpans.run_ended,
}
