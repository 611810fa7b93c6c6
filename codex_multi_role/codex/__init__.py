"""The only package that knows JSON-RPC and the Codex binary."""
