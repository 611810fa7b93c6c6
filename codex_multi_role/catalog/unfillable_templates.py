"""Templates that need the result of a step that cannot have run before them or, at the end of a run, may not have run.

Only what is certain counts: what every evaluation of a template reads, and a step that no path leads through before.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from codex_multi_role.catalog.explorations import StepName
from codex_multi_role.catalog.flow_spec import FlowSpec, ways_out
from codex_multi_role.catalog.result_paths import FlowReader, TemplateReads
from codex_multi_role.catalog.template_reads import Source, Wanted
from codex_multi_role.catalog.templates import render
from codex_multi_role.catalog.unknown_values import UnknownValue, tries
from codex_multi_role.catalog.value_uses import ITEM
from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.places import Place, Problems

NOT_VISITED = {"visits": 0, "status": "not_started", "error": "", "verdict": ""}


def check_fillable(flow: FlowSpec) -> None:
    """Raise one ``DefinitionError`` for all templates that cannot be filled in when a run first reaches them."""
    problems = Problems()
    ids = {step.id for step in flow.steps}
    for index, (step, reads) in enumerate(FlowReader(flow, {}).reads().items()):
        unknown = ids - _visited_before(flow, index)
        _check(flow, reads.before, unknown, problems)
        _check(flow, (*reads.after, *(each for when in reads.whens[:1] for each in when)), unknown - {step}, problems)
    for final, place in flow.final_checks:
        for key, value in final.with_.items():
            with problems.collected():
                _check_at_the_end(flow, value, place / "with" / key)
    problems.raise_found()


def _check_at_the_end(flow: FlowSpec, value: object, place: Place) -> None:
    """A run can end in its first step, before any role has answered."""
    names = ("goal", "inputs", "cycle", "cycles", "vars", "outcome", "exit_code")
    steps = {step.id: NOT_VISITED for step in flow.steps}
    context = {**{name: UnknownValue(name) for name in names}, "roles": {}, "steps": steps}
    if failure := tries(partial(render, value, context, place)).failure:
        message = f"{failure}: finally also runs if the run has ended before"
        raise DefinitionError(message, failure.hint, failure.file, failure.position)


def _check(flow: FlowSpec, templates: Iterable[TemplateReads], unknown: set[str], problems: Problems) -> None:
    states = {StepName(flow.name, each): [NOT_VISITED] for each in unknown}
    for template in templates:
        wanted = (Wanted(Source(StepName(flow.name, each)), states) for each in unknown)
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
