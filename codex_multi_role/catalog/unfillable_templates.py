"""Templates that no run can fill in: they need the result of a step that cannot have run before them.

Only what is certain counts: a part that is always evaluated, and a step that no path leads through before.
"""

from __future__ import annotations

from codex_multi_role.catalog.flow_spec import FlowSpec, ways_out
from codex_multi_role.catalog.reached_values import ITEM
from codex_multi_role.catalog.result_paths import ResultRead, reads_of_flow
from codex_multi_role.reading.places import Problems

KNOWN_BEFORE = frozenset({"visits", "status", "error", "verdict", "handoff", *dir(dict)})
"""What templates can read of a step before its first visit."""


def check_fillable(flow: FlowSpec) -> None:
    """Raise one ``DefinitionError`` for all templates that cannot be filled in when a run first reaches them."""
    problems = Problems()
    ids = {step.id for step in flow.steps}
    for index, (step, reads) in enumerate(zip(flow.steps, reads_of_flow(flow, {}), strict=True)):
        unknown = ids - _visited_before(flow, index)
        for read in reads.before:
            _check(read, unknown, problems)
        for read in (*reads.after, *(each for when in reads.whens[:1] for each in when)):
            _check(read, unknown - {step.id}, problems)
    problems.raise_found()


def _check(read: ResultRead, unknown: set[str], problems: Problems) -> None:
    is_needed = read.is_certain and read.of in unknown and read.path and ITEM not in read.path
    if is_needed and (field := read.path[0]) not in KNOWN_BEFORE:
        with problems.collected():
            raise read.place.error(
                f"steps.{read.of}.{field} cannot have a value here: no path leads through the step {read.of} before",
                f"Use the result of an earlier step, or a default: steps.{read.of}.{field} | default('').",
            )


def _visited_before(flow: FlowSpec, index: int) -> set[str]:
    """The steps that some path leads through before the first visit of the step at ``index``."""
    positions = {step.id: position for position, step in enumerate(flow.steps)}
    reached, waiting = set[str](), [flow.steps[0].id]
    while waiting:
        step_id = waiting.pop()
        if step_id not in reached and positions[step_id] != index:
            reached.add(step_id)
            waiting += [route.to for route in ways_out(flow, positions[step_id]) if route.to is not None]
    return reached
