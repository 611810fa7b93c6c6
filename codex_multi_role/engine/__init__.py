"""Durable execution: run the flow, record each step once, resume a stopped run."""

from codex_multi_role.engine.durable_run import DurableRun
from codex_multi_role.engine.flow_walk import CallableFlows

__all__ = ["CallableFlows", "DurableRun"]
