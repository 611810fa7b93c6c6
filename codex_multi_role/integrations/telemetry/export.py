"""Export to OpenTelemetry, off unless its own variables name a receiver."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from codex_multi_role.run_folder import Record
from codex_multi_role.version import __version__

if TYPE_CHECKING:
    from codex_multi_role.integrations.telemetry.pipeline import Pipeline

LOG = logging.getLogger(__name__)
TRACES, METRICS = "TRACES_", "METRICS_"
GENERAL = ""
Subscriber = Callable[[Record], None]


def receiver_variable(signal: str) -> str:
    """Return OpenTelemetry's variable for the receiver of a signal or, for `GENERAL`, of every signal."""
    return f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT"


def wanted(environment: Mapping[str, str]) -> set[str]:
    """Return the signals that have a receiver, their own or the general one; empty if OpenTelemetry is off."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return set()
    named = {each for each in (GENERAL, TRACES, METRICS) if environment.get(receiver_variable(each), "").strip()}
    return {TRACES, METRICS} if GENERAL in named else named


@contextmanager
def exported(take: Subscriber | None) -> Iterator[Subscriber | None]:
    """Yield a subscriber that passes events to ``take`` and, if `wanted`, to OpenTelemetry; delivers at the end.

    A failed delivery is logged as a warning and never changes a run.
    """
    pipeline = _pipeline()
    if pipeline is None:
        yield take
        return

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


def _pipeline() -> Pipeline | None:
    signals = wanted(os.environ)
    if not signals:
        return None
    try:
        from codex_multi_role.integrations.telemetry.pipeline import (
            Pipeline,  # here: part of an extra, and rarely needed
        )

        return Pipeline.to_receiver(__version__, traces=TRACES in signals, metrics=METRICS in signals)
    except ImportError as error:
        LOG.warning("telemetry is off: %s; install it with `pip install 'codex-multi-role[otel]'`", error)
    except Exception as error:  # whatever OpenTelemetry raises for its variables
        LOG.warning("telemetry is off: %s", error)
    return None
