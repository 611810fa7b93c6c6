"""A run's events as OpenTelemetry spans and metrics, if the environment names a receiver (extra ``otel``)."""

from codex_multi_role.integrations.telemetry.export import exported

__all__ = ["exported"]
