"""Durable execution on DBOS: run the flow, record each step once, resume a stopped run.

DBOS itself is imported with `engine.journal`, because it loads slowly.
"""

from codex_multi_role.engine.durable_run import DurableRun
from codex_multi_role.engine.flow_walk import CallableFlows
from codex_multi_role.engine.head_start import HeadStart
from codex_multi_role.engine.journal_file import create_journal_file, sqlite_url

__all__ = ["CallableFlows", "DurableRun", "HeadStart", "create_journal_file", "sqlite_url"]
