"""Export to OpenTelemetry, off unless its own variables name a receiver."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from codex_multi_role.errors import how_to_add
from codex_multi_role.version import __version__

if TYPE_CHECKING:
    from codex_multi_role.extensions.telemetry.pipeline import Pipeline

LOG = logging.getLogger(__name__)
TRACES, METRICS = "TRACES_", "METRICS_"
GENERAL = ""


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
def exported() -> Iterator[Pipeline | None]:
    """Yield a subscriber that passes events to OpenTelemetry, if `wanted`; delivers at the end.

    A failed delivery is logged as a warning.
    """
    pipeline = _pipeline()
    if pipeline is None:
        yield None
        return
    try:
        yield pipeline
    finally:
        pipeline.close()
        if pipeline.complaints:
            LOG.warning("telemetry was not delivered: %s", pipeline.complaints[0])


def _pipeline() -> Pipeline | None:
    signals = wanted(os.environ)
    if not signals:
        return None
    try:
        from codex_multi_role.extensions.telemetry.pipeline import (
            Pipeline,  # here: part of an extra, and rarely needed
        )

        return Pipeline.to_receiver(__version__, traces=TRACES in signals, metrics=METRICS in signals)
    except ImportError as error:
        LOG.warning("telemetry is off: %s; install it with `%s`", error, how_to_add("otel"))
    except Exception as error:  # whatever OpenTelemetry raises for its variables
        LOG.warning("telemetry is off: %s", error)
    return None
