"""The step kinds, one per file. A kind runs through a recorder, so that finished work is never repeated."""

from codex_multi_role.steps.ask import Ask, ask, payload_from, role_for
from codex_multi_role.steps.carry_out import KINDS, carry_out
from codex_multi_role.steps.resources import (
    Recorder,
    RunProgress,
    RunResources,
    RunServices,
    RunSettings,
    TestSettings,
    Work,
)
from codex_multi_role.steps.turn_record import CURRENT_THREAD, NEW_THREAD
from codex_multi_role.steps.unit import StepKind, StepOutcome, Unit, merged_back

__all__ = [
    "CURRENT_THREAD",
    "KINDS",
    "NEW_THREAD",
    "Ask",
    "Recorder",
    "RunProgress",
    "RunResources",
    "RunServices",
    "RunSettings",
    "StepKind",
    "StepOutcome",
    "TestSettings",
    "Unit",
    "Work",
    "ask",
    "carry_out",
    "merged_back",
    "payload_from",
    "role_for",
]
