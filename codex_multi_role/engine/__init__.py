"""Durable execution on DBOS: run the flow, record each step once, resume a stopped run."""

from codex_multi_role.engine.durable_run import DurableRun
from codex_multi_role.engine.flow_walk import CallableFlows
from codex_multi_role.engine.journal import begin, open_journal, sqlite_url

__all__ = ["CallableFlows", "DurableRun", "begin", "open_journal", "sqlite_url"]
