"""DBOS, imported without its library for times of day: no run has a schedule.

That library asks the program ``file`` about the Python that imports it, wherever PATH finds it and without a deadline.
"""

from __future__ import annotations

from codex_multi_role.host.importing import without_module

with without_module("croniter", croniter=None):
    from dbos import DBOS, DBOSClient, SetWorkflowID, StepOptions, error

DBOSBaseException = error.DBOSBaseException
"""What DBOS raises past `except Exception`: the workflow was cancelled from outside, or another process works on it."""

__all__ = ["DBOS", "DBOSBaseException", "DBOSClient", "SetWorkflowID", "StepOptions"]
