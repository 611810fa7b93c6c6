"""Spans and metrics of real runs: taken by OpenTelemetry's own in-memory exporters, and by a receiver over HTTP."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from codex_multi_role import run
from codex_multi_role.extensions.telemetry import pipeline
from codex_multi_role.extensions.telemetry.extension import (
    GENERAL,
    METRICS,
    TRACES,
    exported,
    receiver_variable,
    wanted,
)
from codex_multi_role.extensions.telemetry.pipeline import ExportErrors, Pipeline
from codex_multi_role.playbook.loopback import LoopbackHandler, LoopbackServer
from codex_multi_role.run_folder import Record
from codex_multi_role.run_folder.events import RunEnded
from tests.support.prices import price_playbook
from tests.support.recorded_runs import in_order, started, turn, whole_run
from tests.support.teams import TeamFolder, say, with_flow
from tests.support.tools import command

pytestmark = pytest.mark.usefixtures("scripted_codex")

CANARY = "hunter2-hunter2"
Points = list[tuple[Record, HistogramDataPoint | NumberDataPoint]]


def taken(records: list[Record]) -> tuple[tuple[ReadableSpan, ...], dict[str, Points]]:
    """The spans and the metrics' points that the events come to, as the SDK hands them to an exporter."""
    spans, metrics = InMemorySpanExporter(), InMemoryMetricReader()
    tracing = TracerProvider(shutdown_on_exit=False)
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    taking = Pipeline(tracing, MeterProvider([metrics], shutdown_on_exit=False), "0", ExportErrors())
    for record in records:
        taking(record)
    data = metrics.get_metrics_data()
    points = {
        metric.name: [(dict(point.attributes or {}), point) for point in metric.data.data_points]
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    taking.close()
    return spans.get_finished_spans(), points  # type: ignore[return-value]  # no exponential histograms here


def of(spans: tuple[ReadableSpan, ...], name: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name == name]


def parent(span: ReadableSpan, spans: tuple[ReadableSpan, ...]) -> str:
    ids = {other.context.span_id: other.name for other in spans}
    return ids[span.parent.span_id] if span.parent else ""


def test_run_step_turn_and_tool_spans_are_nested(tmp_path: Path) -> None:
    steps = [{"call": "calculator", "arguments": {"expression": "6 * 7"}}, say("fine")]
    team = TeamFolder(
        tmp_path, {"one": {"tools": ["calculator"]}, "two": {}}, {"one": [{"steps": steps}], "two": [say()]}
    )
    with_flow(team, {"steps": [{"ask": "two"}]}, "inner")
    report = with_flow(team, {"steps": [{"ask": "one"}, {"call": "inner"}]}).run(flow="own")
    assert report.exit_code == 0, report
    spans, _ = taken(team.events)
    (whole,) = of(spans, "invoke_workflow own")
    assert whole.attributes is not None
    assert whole.attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert {parent(each, spans) for each in of(spans, "step one") + of(spans, "step inner")} == {"invoke_workflow own"}
    (one,) = of(spans, "invoke_agent one")
    (two,) = of(spans, "invoke_agent two")
    assert (parent(one, spans), parent(two, spans)) == ("step one", "step two")
    assert parent(of(spans, "step two")[0], spans) == "step inner"
    (tool,) = of(spans, "execute_tool calculator")
    assert parent(tool, spans) == "invoke_agent one"
    assert one.attributes is not None
    (ended,) = [each for each in team.of_type("turn_ended") if each["role"] == "one"]
    assert one.attributes["gen_ai.usage.input_tokens"] == ended["input_tokens"]
    assert one.attributes["gen_ai.request.model"] == "playbook"
    assert one.attributes["gen_ai.conversation.id"]
    for span in spans:
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.start_time <= span.end_time


def test_failed_run_has_a_span_that_says_why(tmp_path: Path) -> None:
    role = {"output_schema": {"properties": {"status": {"enum": ["DONE"]}}}}
    wrong = say(status="its own words")
    team = TeamFolder(tmp_path, {"one": role}, {"one": [{"steps": [wrong], "repairs": [wrong]}]})
    report = team.run(repair_attempts=1)
    assert "its own words" in report.reason
    spans, points = taken(team.events)
    assert not any("its own words" in span.to_json() for span in spans)
    (whole,) = of(spans, "invoke_workflow cycles")
    assert whole.attributes is not None
    assert (whole.status.status_code.name, whole.status.description) == ("ERROR", report.outcome)
    assert whole.attributes["error.type"] == report.outcome
    assert [span.status.status_code.name for span in of(spans, "invoke_agent one")] == ["ERROR", "ERROR"]
    ((told, repairs),) = points["codex_multi_role.repairs"]
    assert isinstance(repairs, NumberDataPoint)
    assert (told["gen_ai.agent.name"], repairs.value) == ("one", 1)


def test_tokens_costs_and_durations_are_histograms_by_agent(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    price_playbook(tmp_path / "roles/prices.yaml")
    report = team.run()
    spans, points = taken(team.events)
    [(_, cost)] = points["codex_multi_role.turn.cost"]
    assert isinstance(cost, HistogramDataPoint)
    costs = [span.attributes["codex_multi_role.turn.cost"] for span in of(spans, "invoke_agent one") if span.attributes]
    assert costs == [cost.sum] == [report.totals["cost"]]
    sums = {
        told["gen_ai.token.type"]: point.sum
        for told, point in points["gen_ai.client.token.usage"]
        if isinstance(point, HistogramDataPoint)
    }
    assert sums == {"input": report.totals["input_tokens"], "output": report.totals["output_tokens"]}
    assert points["gen_ai.client.operation.duration"][0][0]["gen_ai.agent.name"] == "one"
    assert points["codex_multi_role.run.duration"][0][0]["codex_multi_role.run.outcome"] == report.outcome


def test_killed_turn_is_not_measured_by_the_next_session() -> None:
    events = in_order(turn("planner", 1, 1, status="interrupted")[2], started(resumed=True), *turn("planner", 2, 1))
    spans, points = taken([event.as_record() for event in events])
    assert len(of(spans, "invoke_agent planner")) == 1
    [(_, cost)] = points["codex_multi_role.turn.cost"]
    assert isinstance(cost, HistogramDataPoint)
    assert cost.count == 1


def test_role_with_a_number_in_its_name_is_one_of_its_own() -> None:
    begun = replace(started(), roles=["planner", "planner.2"])
    turns = [turn(name, 1, 1)[2] for name in ("planner", "planner.2", "planner.2.2", "planner.3")]
    _, points = taken([event.as_record() for event in in_order(begun, *turns)])
    counts = [
        (told["gen_ai.agent.name"], point.count)
        for told, point in points["gen_ai.client.operation.duration"]
        if isinstance(point, HistogramDataPoint)
    ]
    assert counts == [("planner", 2), ("planner.2", 2)]


def test_run_that_was_killed_leaves_no_span_open() -> None:
    events = [event.as_record() for event in whole_run()]
    cut = events[: next(index for index, each in enumerate(events) if each["type"] == "turn_ended")]
    spans, _ = taken(cut)
    assert {"invoke_workflow cycles", "step team", "invoke_agent planner"} <= {span.name for span in spans}


@contextmanager
def receiver() -> Iterator[tuple[str, dict[str, list[bytes]]]]:
    """Its address, and the bodies that are sent to each path."""
    bodies: dict[str, list[bytes]] = {}

    class Receiver(LoopbackHandler):
        def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
            bodies.setdefault(self.path, []).append(self.body() or b"")
            self.answer(200, b"", {})

    with LoopbackServer("receiver", Receiver) as server:
        yield server.address, bodies


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_receiver_gets_spans_and_metrics_without_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No secret, prompt or answer is sent."""
    monkeypatch.setenv("MY_TOKEN", CANARY)
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [{"steps": [command(f"echo {CANARY}"), say("its own words")]}]})
    with receiver() as (url, bodies):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        assert run(team.options(goal="words of a prompt")).exit_code == 1
    (traces,) = [ExportTraceServiceRequest.FromString(body) for body in bodies["/v1/traces"]]
    names = {span.name for scope in traces.resource_spans[0].scope_spans for span in scope.spans}
    assert {"invoke_workflow cycles", "step team", "invoke_agent one", "execute_tool shell"} <= names
    metrics = ExportMetricsServiceRequest.FromString(bodies["/v1/metrics"][-1])
    told = {metric.name for scope in metrics.resource_metrics[0].scope_metrics for metric in scope.metrics}
    assert "gen_ai.client.token.usage" in told
    sent = b"".join(body for each in bodies.values() for body in each)
    assert [text for text in (CANARY, "its own words", "words of a prompt") if text.encode() in sent] == []


@pytest.mark.long
def test_receiver_that_is_not_there_changes_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Only here nothing listens."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    team = TeamFolder(tmp_path, {"one": {"behaviors": {"can_finish": True}}}, {"one": [say(status="DONE")]})
    with caplog.at_level(logging.WARNING, "codex_multi_role"):
        assert run(team.options()).exit_code == 0
    (record,) = [each for each in caplog.records if each.name.startswith("codex_multi_role")]
    assert record.getMessage().startswith("telemetry was not delivered: ")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5000"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "x"),
        ("OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER", "unknown"),
    ],
)
def test_variable_that_makes_no_sense_turns_it_off(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(receiver_variable(GENERAL), "http://127.0.0.1:9")
    monkeypatch.setenv(variable, value)
    before = threading.active_count()
    with exported() as subscriber:
        assert subscriber is None
    assert threading.active_count() == before
    (record,) = caplog.records
    assert record.getMessage().startswith("telemetry is off: ")


def test_event_that_means_nothing_to_it_changes_no_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(receiver_variable(TRACES), "http://127.0.0.1:9")
    ended = RunEnded("ended", "done", "", 0, totals={}, folder="/run").as_record()
    records = [{"type": "not_invented_yet"}, replace(started(), at=ended["at"]).as_record(), ended]
    with exported() as take:
        assert take is not None
        for record in records:
            take(record)
    assert caplog.records[0].getMessage() == "telemetry was not delivered: KeyError: 'seconds'"


@pytest.mark.parametrize(("which", "path"), [(TRACES, "/v1/traces"), (METRICS, "/v1/metrics")])
def test_only_what_has_a_receiver_is_sent(which: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    for name in ("OTLPSpanExporter", "OTLPMetricExporter"):
        monkeypatch.setattr(pipeline, name, noting(getattr(pipeline, name), built))
    with receiver() as (url, bodies):
        monkeypatch.setenv(receiver_variable(which), url + path)
        with exported() as take:
            assert take is not None
            for event in whole_run():
                take(event.as_record())
    assert list(bodies) == [path]
    assert len(built) == 1


def noting(kind: Callable[..., object], built: list[str]) -> Callable[..., object]:
    def build(**values: object) -> object:
        built.append(kind.__name__)
        return kind(**values)

    return build


class StuckTracing(TracerProvider):
    """Cannot be shut down before it is let go."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        super().__init__(shutdown_on_exit=False)
        self.let_go = threading.Event()
        self._meanwhile = meanwhile

    def shutdown(self) -> None:
        self._meanwhile()
        self.let_go.wait(60)


def test_delivery_that_takes_too_long_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "CLOSING_SECONDS", 0.01)
    tracing = StuckTracing()
    stuck = Pipeline(tracing, MeterProvider(shutdown_on_exit=False), "0", ExportErrors())
    stuck.close()
    tracing.let_go.set()
    assert stuck.complaints == ["it takes longer than 0.01 s"]


def test_ctrl_c_while_delivering_does_not_lose_the_report() -> None:
    tracing = StuckTracing(lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    interrupted = Pipeline(tracing, MeterProvider(shutdown_on_exit=False), "0", ExportErrors())
    interrupted.close()
    tracing.let_go.set()
    assert interrupted.complaints[0] == "interrupted"


@pytest.mark.real
def test_it_is_off_unless_a_receiver_is_named() -> None:
    assert not wanted({})
    assert not wanted({receiver_variable(GENERAL): " "})
    assert not wanted({receiver_variable(GENERAL): "http://127.0.0.1", "OTEL_SDK_DISABLED": "true"})
    assert wanted({receiver_variable(GENERAL): "http://127.0.0.1"}) == {TRACES, METRICS}
    assert wanted({receiver_variable(METRICS): "http://127.0.0.1"}) == {METRICS}
    program = (
        "import sys, codex_multi_role.api; print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
