"""Sending them: off unless OpenTelemetry's own variables name a receiver."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from codex_multi_role import __version__
from codex_multi_role.run_folder import Record

LOG = logging.getLogger(__name__)
RECEIVERS = tuple(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT" for signal in ("", "TRACES_", "METRICS_"))
DELIVERY_SECONDS = 5
Subscriber = Callable[[Record], None]


def wanted(environment: Mapping[str, str]) -> bool:
    """Whether a receiver is named and OpenTelemetry not switched off."""
    off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not off and any(environment.get(name, "").strip() for name in RECEIVERS)


@contextmanager
def exported(take: Subscriber | None) -> Iterator[Subscriber | None]:
    """A subscriber that tells ``take`` and, where it is `wanted`, OpenTelemetry; delivered when the context is left.

    What cannot be delivered is logged as a warning: it never changes a run.
    """
    if not wanted(os.environ):
        yield take
        return
    try:
        from codex_multi_role.telemetry.pipeline import Pipeline  # here: of an extra, and only for those who ask for it
    except ImportError as error:
        LOG.warning("telemetry is off: %s; `pip install 'codex-multi-role[otel]'` brings it", error)
        yield take
        return
    pipeline = Pipeline.to_receiver(__version__, DELIVERY_SECONDS)

    def both(record: Record) -> None:
        if take is not None:
            take(record)
        pipeline(record)

    try:
        yield both
    finally:
        pipeline.close()
        if pipeline.complaints:
            LOG.warning("telemetry was not delivered: %s", pipeline.complaints[0])
