"""Durable execution on DBOS: run the flow, record each step once, resume a stopped run."""

from codex_multi_role.engine.durable_run import DurableRun
from codex_multi_role.engine.flow_walk import CallableFlows
from codex_multi_role.engine.journal import Begin, open_journal, sqlite_url

__all__ = ["Begin", "CallableFlows", "DurableRun", "open_journal", "sqlite_url"]
