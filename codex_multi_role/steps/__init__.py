"""What steps work with: the live parts of a run, and the interface of the step kinds, each of which has its own file.

A kind runs through a recorder, so that finished work is never repeated. The kinds themselves are imported from their
files (`ask`, `carry_out`), because a run needs them only once its processes start.
"""

from codex_multi_role.steps.resources import (
    Recorder,
    RunProgress,
    RunResources,
    RunServices,
    RunSettings,
    TestSettings,
    Work,
)
from codex_multi_role.steps.turn_record import NEW_THREAD
from codex_multi_role.steps.unit import StepOutcome, Unit, merge_failure, merged_back, step_failure

__all__ = [
    "NEW_THREAD",
    "Recorder",
    "RunProgress",
    "RunResources",
    "RunServices",
    "RunSettings",
    "StepOutcome",
    "TestSettings",
    "Unit",
    "Work",
    "merge_failure",
    "merged_back",
    "step_failure",
]
