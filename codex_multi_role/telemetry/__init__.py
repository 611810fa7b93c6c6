"""A run's events as OpenTelemetry spans and metrics, where the environment says where to send them (extra ``otel``)."""

from codex_multi_role.telemetry.export import exported

__all__ = ["exported"]
