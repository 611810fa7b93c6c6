"""A run's usage and durations as OpenTelemetry metrics: those of the GenAI conventions, and a few of our own."""

from __future__ import annotations

from opentelemetry.metrics import Meter

from codex_multi_role.integrations.telemetry.spans import OWN, PROVIDER, Attributes
from codex_multi_role.run_folder import RunEvent, events


class RunMetrics:
    """Receives a run's events in order."""

    def __init__(self, meter: Meter) -> None:
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Number of input and output tokens of a turn."
        )
        self._turns = meter.create_histogram("gen_ai.client.operation.duration", "s", "How long a turn took.")
        self._runs = meter.create_histogram(f"{OWN}.run.duration", "s", "How long a session worked on a run.")
        self._repairs = meter.create_counter(f"{OWN}.repairs", "{repair}", "Answers that had to be mended.")
        self._approvals = meter.create_counter(f"{OWN}.approvals", "{approval}", "Approval requests, and the answers.")
        self._flow = ""
        self._roles: frozenset[str] = frozenset()
        self._worked_before = 0.0
        self._models: dict[str, str] = {}

    def __call__(self, event: RunEvent) -> None:
        match event:
            case events.RunStarted():
                self._flow, self._roles = event.flow, frozenset(event.roles)
                self._worked_before = event.worked_seconds
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
                self._runs.record(event.totals["seconds"] - self._worked_before, attributes)

    def _turn_ended(self, event: events.TurnEnded) -> None:
        common = self._agent(event.role)
        for kind, tokens in (("input", event.input_tokens), ("output", event.output_tokens)):
            self._tokens.record(tokens, {**common, "gen_ai.token.type": kind})
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
