"""OpenTelemetry's own parts put together: providers, processors and the exporter to a receiver."""

from __future__ import annotations

import logging
from typing import Self

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from codex_multi_role.run_folder import Record
from codex_multi_role.telemetry.metrics import RunMetrics
from codex_multi_role.telemetry.spans import RunSpans

NAME = "codex-multi-role"
LIBRARY = logging.getLogger("opentelemetry")


class _Complaints(logging.Handler):
    """Keeps what OpenTelemetry complains of: on a terminal it would be written into the view."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if len(self.said) < 10:
            self.said.append(record.getMessage())


class Pipeline:
    """Takes a run's events. ``complaints``: why something could not be delivered."""

    def __init__(self, tracing: TracerProvider, metering: MeterProvider, version: str) -> None:
        self._tracing = tracing
        self._metering = metering
        self._spans = RunSpans(tracing.get_tracer(NAME, version))
        self._metrics = RunMetrics(metering.get_meter(NAME, version))
        self._complaints = _Complaints()
        self._propagated, LIBRARY.propagate = LIBRARY.propagate, False
        LIBRARY.addHandler(self._complaints)

    @classmethod
    def to_receiver(cls, version: str, seconds: int) -> Self:
        """Over HTTP to where OpenTelemetry's variables say; each delivery takes ``seconds`` at most."""
        resource = Resource.create({SERVICE_NAME: NAME, SERVICE_VERSION: version})
        tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
        tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=seconds)))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(timeout=seconds))
        return cls(tracing, MeterProvider([reader], resource=resource, shutdown_on_exit=False), version)

    @property
    def complaints(self) -> list[str]:
        return self._complaints.said

    def __call__(self, record: Record) -> None:
        self._spans(record)
        self._metrics(record)

    def close(self) -> None:
        """Deliver what is left and end the threads."""
        self._spans.close()
        self._tracing.shutdown()
        self._metering.shutdown()
        LIBRARY.removeHandler(self._complaints)
        LIBRARY.propagate = self._propagated
