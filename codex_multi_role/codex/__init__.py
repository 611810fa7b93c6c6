"""The only place that knows JSON-RPC and the Codex binary."""
