"""The step kind ``call``: another flow, with a state of its own."""

from __future__ import annotations

from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.unit import StepOutcome, Unit


def call_step(run: RunResources, unit: Unit) -> StepOutcome:
    """Walk the called flow with rendered inputs. How it ended is output to route on, not a failure."""
    return unit.call_flow(unit, unit.fill("with"))
