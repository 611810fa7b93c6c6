"""A run's events as OpenTelemetry spans and metrics, if the environment names a receiver (extra ``otel``)."""
