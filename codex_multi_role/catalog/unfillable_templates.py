"""Templates that no run can fill in: they need the result of a step that cannot have run before them.

Only what is certain counts: what every evaluation of a template reads, and a step that no path leads through before.
"""

from __future__ import annotations

from collections.abc import Iterable

from codex_multi_role.catalog.flow_spec import FlowSpec, ways_out
from codex_multi_role.catalog.noted_values import Step
from codex_multi_role.catalog.result_paths import FlowReader, TemplateReads
from codex_multi_role.catalog.template_reads import Source, Wanted
from codex_multi_role.catalog.value_uses import ITEM
from codex_multi_role.reading.places import Problems

NOT_VISITED = {"visits": 0, "status": "not_started", "error": "", "verdict": ""}


def check_fillable(flow: FlowSpec) -> None:
    """Raise one ``DefinitionError`` for all templates that cannot be filled in when a run first reaches them."""
    problems = Problems()
    ids = {step.id for step in flow.steps}
    for index, (step, reads) in enumerate(FlowReader(flow, {}).reads().items()):
        unknown = ids - _visited_before(flow, index)
        _check(flow, reads.before, unknown, problems)
        _check(flow, (*reads.after, *(each for when in reads.whens[:1] for each in when)), unknown - {step}, problems)
    problems.raise_found()


def _check(flow: FlowSpec, templates: Iterable[TemplateReads], unknown: set[str], problems: Problems) -> None:
    states = {Step(flow.name, each): [NOT_VISITED] for each in unknown}
    for template in templates:
        wanted = (Wanted(Source(Step(flow.name, each)), states) for each in unknown)
        reads = [read for each in wanted for read in template.of(each) if read.is_certain and ITEM not in read.path]
        for of, field, place in dict.fromkeys((read.of, read.path[0], read.place) for read in reads):
            with problems.collected():
                raise place.error(
                    f"steps.{of}.{field} cannot have a value here: no path leads through the step {of} before",
                    f"Use the result of an earlier step, or a default: steps.{of}.{field} | default('').",
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
