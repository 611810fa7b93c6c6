"""What happens if a step goes wrong, in words: it failed, or its result is bad."""

from __future__ import annotations

from codex_multi_role.catalog import StepSpec
from codex_multi_role.catalog.result_reads import routes_on_result
from codex_multi_role.flow.routing import continues


def if_wrong(step: StepSpec, what_is_bad: str) -> str:
    """``what_is_bad``: which results of the step are bad; empty if none can be."""
    tries = f"up to {step.retry.attempts} tries" if step.retry is not None else ""
    return "; ".join(filter(None, (tries, _if_failed(step), _if_bad(step, what_is_bad))))


def _if_failed(step: StepSpec) -> str:
    if step.review is not None:
        return ""
    whose = "a failed item" if step.for_each is not None else "a failure"
    return f"{whose} {'is skipped' if step.on_error == 'skip' else 'ends the run with exit 3'}"


def _if_bad(step: StepSpec, what_is_bad: str) -> str:
    if step.for_each is not None and step.on_error == "skip":
        what_is_bad = "no good item"
    if not what_is_bad:
        return ""
    bad = f"a bad result ({what_is_bad})"
    if continues(step):
        return f"{bad} does not count"
    if routes_on_result(step):
        return f"with {bad}, next decides; if no entry is taken, the flow ends with exit 1"
    return f"{bad} ends the flow with exit 1"
