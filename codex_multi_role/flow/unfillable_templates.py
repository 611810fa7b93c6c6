"""Templates that need the result of a step that cannot have run before them or, at the end of a run, may not have run.

Only what is certain counts: what every evaluation of a template reads, and a step that no path leads through before.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import chain

from codex_multi_role.catalog.flow_expressions import paths_of
from codex_multi_role.catalog.flow_spec import FlowSpec, reached_from
from codex_multi_role.catalog.templates import TemplateFailed, render
from codex_multi_role.catalog.unknown_values import UnknownValue, tries
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.result_paths import NOT_VISITED, FlowReader, FlowTemplate
from codex_multi_role.flow.result_reads import check_measured
from codex_multi_role.reading.places import Place, Problems


def check_reads(flows: Mapping[str, FlowSpec]) -> None:
    """Check a flow and those that it calls, also that steps which only measure are read: `check_measured`.

    Raises one ``DefinitionError`` for all mistakes.
    """
    problems = Problems()
    problems.collect(check_measured, flows)
    for flow in flows.values():
        _check_fillable(flow, problems)
    problems.raise_found()


def _check_fillable(flow: FlowSpec, problems: Problems) -> None:
    """Find the templates that cannot be filled in when a run first reaches them."""
    reader, ids = FlowReader(flow, {}), {step.id for step in flow.steps}
    for index, step in enumerate(flow.steps):
        unknown = ids - _visited_before(flow, index)
        before = reader.without(unknown).of_step(index).before
        reads = reader.without(unknown - {step.id}).of_step(index)
        for template in chain(before, reads.after, *reads.whens[:1]):
            _check(template, unknown, problems)
    for final, place in flow.final_checks:
        for key, value in final.with_.items():
            problems.collect(_check_at_the_end, flow, value, place / "with" / key)


def _check_at_the_end(flow: FlowSpec, value: object, place: Place) -> None:
    """A run can end in its first step, before any role has answered."""
    names = ("goal", "inputs", "cycle", "cycles", "vars", "outcome", "exit_code")
    steps = {step.id: NOT_VISITED for step in flow.steps}
    context = {**{name: UnknownValue(name) for name in names}, "roles": {}, "steps": steps}
    if failure := tries(partial(render, value, context, place)).failure:
        message = f"{failure}: finally also runs if the run has ended before"
        raise DefinitionError(message, failure.hint, failure.file, failure.position)


def _check(template: FlowTemplate, unknown: set[str], problems: Problems) -> None:
    named = {path[1] for path in paths_of(template.text) if path[0] == "steps" and len(path) > 1}
    failure = None if named.isdisjoint(unknown) else template.failure
    for path in failure.missing if isinstance(failure, TemplateFailed) else ():
        if path[0] == "steps" and path[1] in unknown:
            problems.add(
                template.place.error(
                    f"{'.'.join(path)} cannot have a value here: no path leads through the step {path[1]} before",
                    f"Use the result of an earlier step, or a default: {'.'.join(path)} | default('').",
                )
            )


def _visited_before(flow: FlowSpec, index: int) -> set[str]:
    """The steps that some path leads through before the first visit of the step at ``index``."""
    first, step = flow.steps[0], flow.steps[index]
    found = [] if step is first else [first, *reached_from(flow, 0, before=lambda each: each is step)]
    return {each.id for each in found} - {step.id}
