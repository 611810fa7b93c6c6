"""What is judged before a run of what templates read: results that cannot be there, and fields that schemas forbid.

Only what is certain counts: what every evaluation of a template reads, and a step that no path leads through before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain

from codex_multi_role.catalog.catalog import RoleSpecCatalog
from codex_multi_role.catalog.flow_expressions import paths_of
from codex_multi_role.catalog.flow_spec import FlowSpec, reached_from, step_place
from codex_multi_role.catalog.templates import TemplateFailed, render
from codex_multi_role.catalog.unknown_values import UnknownValue, tries
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.answer_requirements import Schema, said_about
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.flow.result_paths import NOT_VISITED, FlowReader, FlowTemplate, ResultRead
from codex_multi_role.flow.result_reads import check_measured
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.value_types import ANY, MAPPING, ValueType, type_of_schema


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


def check_contracts(contracts: Contracts, flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog) -> None:
    """Raise one `DefinitionError` for all fields that templates read and schemas forbid, or that have another type."""
    problems = Problems()
    for flow in flows.values():
        for index, step in enumerate(flow.steps):
            for role, schema, place in _written(flow, index, catalog):
                for read in contracts.reads(flow.name, step, role):
                    for problem in _conflicts(read, schema) if read.is_certain else ():
                        problems.add(read.place.error(f"{problem} ({place})", "Change the template or the schema."))
    problems.raise_found()


def _written(flow: FlowSpec, index: int, catalog: RoleSpecCatalog) -> Iterator[tuple[str, Schema, Place]]:
    """The schemas of the answers in a step, with the role that answers, and where each is written."""
    step, place = flow.steps[index], step_place(flow, index)
    if step.review is not None and step.review.fields:
        yield "", {"properties": step.review.fields}, place / "review" / "fields"
    roles = {role.name: (number, role) for number, role in enumerate(catalog.roles)}
    for name in step.asked:
        if step.reply is not None:
            yield name, step.reply, place / "reply"
        elif name in roles and (schema := roles[name][1].output_schema):
            number, role = roles[name]
            owner = Place(role.source, ("roles", number) if role.source == catalog.source else ())
            yield name, schema, owner / "output_schema"


def _conflicts(read: ResultRead, schema: Schema) -> Iterator[str]:
    """Why the template that reads the path always fails with answers that fit the schema."""
    for length in range(1, len(read.path) + 1):
        said = said_about(schema, read.path[:length])
        if said is False:  # a field of the answer itself may come from a tool, and is judged with the names of fields
            yield from [f"{read.written} is read here, but the schema of the answer forbids it"] if length > 1 else []
            return
        known, wanted = type_of_schema(said), _wanted(read, length)
        if known.kinds.isdisjoint(wanted.kinds):
            must = f"{read.written} must be {wanted.kinds_in_words} here"
            yield f"{must}, but the schema of the answer says {known.kinds_in_words}"
            return


def _wanted(read: ResultRead, length: int) -> ValueType:
    """What the first parts of a path must lead to, because the template fails with anything else."""
    if length == len(read.path):
        return read.use.required_type
    inside = read.path[length]
    is_field = isinstance(inside, str) and not hasattr(str, inside) and not hasattr(list, inside)
    return MAPPING if is_field else ANY
