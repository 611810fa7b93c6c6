"""Contracts beside the JSON Schemas that authors wrote: what is sent, and where the two contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from codex_multi_role.catalog.catalog import RoleSpecCatalog
from codex_multi_role.catalog.definition import closed_properties
from codex_multi_role.catalog.flow_spec import FlowSpec, step_place
from codex_multi_role.flow.answer_requirements import Contract, FieldRequirement, said_about
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.flow.result_paths import ResultRead
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.value_types import ANY, IN_WORDS, MAPPING, ValueType, type_of_schema

Schema = dict[str, Any]


def with_contract(schema: Mapping[str, Any], contract: Contract) -> Schema:
    """The schema with what it leaves open and the contract requires. ``contract``: what is beside that schema."""
    whole = deepcopy(dict(schema))
    for one in sorted(contract, key=lambda each: len(each.path)):
        if said_about(schema, one.path) is not True:
            _add(whole, one)
    return whole


def sent_schema(schema: Mapping[str, Any] | None, contract: Contract) -> Mapping[str, Any] | None:
    """The schema for the provider: a contract is part of a closed one only, which providers can enforce."""
    return with_contract(schema, contract) if schema and closed_properties(schema) is not None else schema


def _add(schema: Schema, one: FieldRequirement) -> None:
    for number, part in enumerate(one.path):
        if not isinstance(part, str):
            schema = schema.setdefault("items", {})
            continue
        if one.is_required and number == len(one.path) - 1:
            schema["required"] = [*dict.fromkeys([*schema.get("required", []), part])]
        schema = schema.setdefault("properties", {}).setdefault(part, {})
    if one.type in IN_WORDS:
        schema.setdefault("type", one.type)
    if one.most is not None:
        schema.setdefault("maxItems", one.most)


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
