"""Totals that all runs of a batch share: a run starts only if all it may spend still fits."""

from __future__ import annotations

import math
from collections.abc import Mapping

import sqlalchemy as sa

from codex_multi_role.extensions.machines.workers.database_tables import batches, runs, server_seconds
from codex_multi_role.presentation.wording import part_of_total
from codex_multi_role.run_folder.cost import exceeds

TOTALS = {"turns": ("turns",), "tokens": ("input_tokens", "output_tokens"), "seconds": ("seconds",), "cost": ("cost",)}
"""What can be limited, and the figures in ``run.json`` that count towards it."""
CONCURRENCY = "concurrency"
"""The limit on runs at the same time, beside the totals."""


def record_batch(connection: sa.Connection, name: str, limits: Mapping[str, float]) -> None:
    """Set the totals of a batch; a resumed batch may have others."""
    connection.execute(sa.delete(batches).where(batches.c.name == name))
    row = {"name": name, "limits": dict(limits), "submitted_at": server_seconds()}
    connection.execute(sa.insert(batches).values(row))


def recorded_limits(connection: sa.Connection, name: str) -> Mapping[str, float]:
    """The totals of a batch as they are now; empty if it is not known."""
    return connection.scalar(sa.select(batches.c.limits).where(batches.c.name == name)) or {}


def what_exceeds(connection: sa.Connection, run_id: str, batch: str | None, limits: Mapping[str, float]) -> str:
    """Which total the run, with these ``limits`` of its own, could exceed if it started now; empty if none.

    What it has spent before is part of its limits.

    The batch stays locked until the transaction ends, so that two runs cannot take the same rest of a total.
    """
    if batch is None:
        return ""
    locked = sa.select(batches.c.limits).where(batches.c.name == batch).with_for_update()
    totals: Mapping[str, float] = connection.scalar(locked) or {}
    running = sa.select(sa.func.count()).where(runs.c.batch == batch, runs.c.state == "running")
    if int(connection.scalar(running) or 0) >= (at_once := totals.get(CONCURRENCY, math.inf)):
        return f"{at_once:g} runs of the batch are running"
    for name, most in totals.items() - {(CONCURRENCY, at_once)}:
        used = float(connection.scalar(_used(batch, name).where(runs.c.run_id != run_id)) or 0)
        if exceeds(used + limits.get(name, most), most):
            return f"the batch has used or reserved {part_of_total(name, used, most)}"
    return ""


def _used(batch: str, name: str) -> sa.Select[tuple[float]]:
    """What ended runs have spent, and what running ones may spend."""
    figures = (runs.c.record["totals"][each].as_float() for each in TOTALS[name])
    spent = sum((sa.func.coalesce(each, 0.0) for each in figures), start=sa.literal(0.0))
    reserved = sa.func.coalesce(runs.c.request["limits"][name].as_float(), 0.0)
    counted = sa.case((runs.c.state == "running", reserved), else_=spent)
    return sa.select(sa.func.sum(counted)).where(runs.c.batch == batch)
