"""The setup of OpenTelemetry: providers, processors and the exporter to a receiver."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Self

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from codex_multi_role.extensions.telemetry.signals import RunMetrics, RunSpans
from codex_multi_role.run_folder import Record, event_of

NAME = "codex-multi-role"
LIBRARY = logging.getLogger("opentelemetry")
DELIVERY_SECONDS = 5
CLOSING_SECONDS = 10.0
MOST_COMPLAINTS = 10


class ExportErrors(logging.Handler):
    """Collects OpenTelemetry's warnings, which would otherwise appear in the middle of a terminal's view."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []
        self._propagated, LIBRARY.propagate = LIBRARY.propagate, False
        LIBRARY.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.add(record.getMessage())

    def add(self, complaint: str) -> None:
        if len(self.said) < MOST_COMPLAINTS:
            self.said.append(complaint)

    def close(self) -> None:
        LIBRARY.removeHandler(self)
        LIBRARY.propagate = self._propagated
        super().close()


class Pipeline:
    """Takes the records of a run's events, and never raises. ``complaints``: why something could not be delivered."""

    def __init__(
        self, tracing: TracerProvider, metering: MeterProvider, version: str, complaints: ExportErrors
    ) -> None:
        self._tracing = tracing
        self._metering = metering
        self._spans = RunSpans(tracing.get_tracer(NAME, version))
        self._metrics = RunMetrics(metering.get_meter(NAME, version))
        self._complaints = complaints

    @classmethod
    def to_receiver(cls, version: str, *, traces: bool, metrics: bool) -> Self:
        """Export over HTTP to the receiver in OpenTelemetry's variables, in at most `DELIVERY_SECONDS` per delivery.

        Raises whatever OpenTelemetry raises for invalid variables.
        """
        with ExitStack() as undo:
            complaints = undo.enter_context(closing(ExportErrors()))
            resource = Resource.create({SERVICE_NAME: NAME, SERVICE_VERSION: version})
            tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
            undo.callback(tracing.shutdown)
            if traces:
                tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=DELIVERY_SECONDS)))
            readers = [PeriodicExportingMetricReader(OTLPMetricExporter(timeout=DELIVERY_SECONDS))] if metrics else []
            metering = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
            undo.pop_all()
            return cls(tracing, metering, version, complaints)

    @property
    def complaints(self) -> list[str]:
        return self._complaints.said

    def __call__(self, record: Record) -> None:
        with self._collecting_export_errors():
            event = event_of(record)
            self._spans(event)
            self._metrics(event)

    def close(self) -> None:
        """Deliver the rest and end the threads within `CLOSING_SECONDS`; a timeout or Ctrl-C is a complaint."""
        ending = threading.Thread(target=self._end, name="telemetry-end", daemon=True)
        try:
            ending.start()
            ending.join(CLOSING_SECONDS)
        except KeyboardInterrupt:
            self._complaints.add("interrupted")
        if ending.is_alive():
            self._complaints.add(f"it takes longer than {CLOSING_SECONDS:g} s")

    def _end(self) -> None:
        for end in (self._spans.close, self._tracing.shutdown, self._metering.shutdown, self._complaints.close):
            with self._collecting_export_errors():
                end()

    @contextmanager
    def _collecting_export_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # telemetry never changes a run
            self._complaints.add(f"{type(error).__name__}: {error}")
