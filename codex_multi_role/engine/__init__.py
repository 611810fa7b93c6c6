"""Durable execution: run the flow, record each step once, resume a stopped run.

DBOS, for journals in a shared database, is imported with `engine.shared_journal`, because it loads slowly.
"""

from codex_multi_role.engine.durable_run import DurableRun
from codex_multi_role.engine.flow_walk import CallableFlows

__all__ = ["CallableFlows", "DurableRun"]
