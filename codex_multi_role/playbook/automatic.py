"""The automatic playbook: every role of a team gets a small valid answer, made from its JSON Schema.

Without a schema, the answer has the fields that the flow uses.

It is an ordinary playbook, which the run keeps beside its other YAML; so a resumed run plays the same answers, and a
person can copy and edit it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpec, RoleSpecCatalog
from codex_multi_role.catalog.explorations import Path, ValueUse
from codex_multi_role.catalog.flow_expressions import has_expressions
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.flow.result_paths import ResultRead
from codex_multi_role.host.spelling import with_texts
from codex_multi_role.playbook.example import NoExample, count_variants, example, is_valid
from codex_multi_role.playbook.script import AUTOMATIC, SUFFIX, Playbook

Schema = Mapping[str, Any]
Asks = dict[str, Schema | None]
"""What one role is asked for, by step; the empty name is the role's own answer."""

NAME = f"{AUTOMATIC} (automatic answers)"
GOAL = "Try this team with automatic answers."
"""The goal of an automatic run that is given none."""
MAX_VARIANTS = 6
DONE, CONTINUE = "DONE", "CONTINUE"
HEADER = """\
# Made by --playbook auto: small valid answers, derived from the JSON Schema of each role and step, or from the fields
# that the flow uses. No model was asked.
# Copy this file to edit it, and play it with --playbook FILE.
"""


def automatic_playbook(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog) -> Playbook:
    """Answers for every role that ``flows`` ask. Raises `DefinitionError` that names a role without a valid answer."""
    contracts = Contracts(flows, next(iter(flows)), catalog.roles)
    roles = {role.name: [_visit(role, asks, contracts, flows)] for role, asks in _asks(flows, catalog)}
    script = {
        "name": NAME,
        "description": "Answers made from the JSON Schemas of the roles.",
        "roles": roles,
        "repeat_last": True,
    }
    text = HEADER + yaml.safe_dump(script, sort_keys=False, allow_unicode=True)
    return Playbook.parse(text, catalog.source.parent / "playbooks" / f"{AUTOMATIC}{SUFFIX}")


def _asks(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog) -> Iterator[tuple[RoleSpec, Asks]]:
    """The asked roles in the catalog's order. Raises `DefinitionError` for steps that cannot be told apart."""
    for role in catalog.roles:
        asks: Asks = {}
        for flow in flows.values():
            for step in flow.steps:
                if {role.name, EVERY_ROLE}.isdisjoint(step.asked):
                    continue
                name = "" if step.reply is None else step.id
                schema = role.output_schema if step.reply is None else step.reply
                if asks.setdefault(name, schema) != schema:
                    raise _ambiguous(role, name)
        if asks:
            yield role, asks


def _ambiguous(role: RoleSpec, step: str) -> DefinitionError:
    return DefinitionError(
        f'--playbook {AUTOMATIC}: two flows ask the role {role.name} in a step "{step}", for different replies',
        "Rename one of the steps.",
    )


def _visit(role: RoleSpec, asks: Asks, contracts: Contracts, flows: Mapping[str, FlowSpec]) -> dict[str, Any]:
    """The script's entry for the role: by asking step, if the steps ask for different replies."""
    answers = {}
    for step in sorted(asks, key=len, reverse=True):  # a longer id may begin with a shorter one
        schema = _with_used_fields(role, asks[step], schema_from_use(contracts, flows, role.name, step))
        answers[step] = _choose(_answers(role, schema, step))
    if len(answers) == 1:
        return next(iter(answers.values()))
    whens = {step: {"when": f"unit.split('/')[-1].startswith('{step}.')"} if step else {} for step in answers}
    return {"choose": [{**whens[step], **answer} for step, answer in answers.items()]}


def _with_used_fields(role: RoleSpec, schema: Schema | None, used: Schema) -> Schema:
    """``schema`` with the fields required that a flow uses; without a schema, those fields beside the usual two."""
    fields, names = used.get("properties", {}), used.get("required", ())
    if schema is not None:
        declared = schema.get("properties", {})
        required = dict.fromkeys([*schema.get("required", declared), *(name for name in names if name in declared)])
        return {**schema, "required": list(required)} if names else schema
    words = f"Automatic answer of {role.name}; no model was asked."
    usual = {"summary": {"default": words}, "status": {"default": CONTINUE}}
    merged = {name: {**usual.get(name, {}), **fields.get(name, {})} for name in (*usual, *names)}
    return {"type": "object", "required": list(merged), "properties": merged}


def _choose(answers: Sequence[Any]) -> dict[str, Any]:
    """The answers in turn, from visit to visit."""
    if len(answers) == 1:
        return {"json": _escaped(answers[0])}
    count = len(answers)
    whens = [{"when": f"visit % {count} == {number % count}"} for number in range(1, count)] + [{}]
    in_turn = zip(whens, answers, strict=True)
    return {"choose": [{**when, "json": _escaped(answer)} for when, answer in in_turn]}


def _escaped(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """``value`` with its texts kept as they are by the playbook's templates."""
    return with_texts(value, lambda text: f"{{% raw %}}{text}{{% endraw %}}" if has_expressions(text) else text)


def _answers(role: RoleSpec, schema: Schema, step: str) -> list[Any]:
    """Different answers of one ask, in the order of the visits. Raises `DefinitionError`."""
    may_finish = role.behaviors.can_finish
    try:
        count = min(max(count_variants(schema), 2 if may_finish else 1), MAX_VARIANTS)
        answers = [
            _as_handoff(role, schema, example(schema, number), done=may_finish and number % 2 == 1)
            for number in range(count)
        ]
    except NoExample as error:
        raise _underivable(role, step, error) from error
    return answers if any(answer != answers[0] for answer in answers) else answers[:1]


def _as_handoff(role: RoleSpec, schema: Schema, answer: Any, *, done: bool) -> Any:  # noqa: ANN401 - any JSON
    """``answer`` with the status DONE exactly if ``done``, as far as the schema allows; and never empty."""
    if answer == {}:  # which would count as no answer
        answer = {"summary": f"Automatic answer of {role.name}; no model was asked."}
    if not isinstance(answer, dict):
        raise NoExample("$: a reply must be an object")
    listed = schema.get("properties", {}).get("status", {})
    stated = listed.get("enum", ()) if isinstance(listed, Mapping) else ()
    candidates = ({**answer, "status": status} for status in (DONE, CONTINUE, *stated))
    fitting = [each for each in (answer, *candidates) if is_valid(schema, each)]
    return next((each for each in fitting if (str(each.get("status", "")).upper() == DONE) == done), answer)


def _underivable(role: RoleSpec, step: str, error: Exception) -> DefinitionError:
    where = f"step {step}" if step else f"{role.source}: role {role.name}"
    return DefinitionError(
        f"{where}: --playbook {AUTOMATIC} found no valid answer for the JSON Schema: {error}",
        "Add `examples: [...]` to that part of the schema, or write a playbook of your own.",
    )


OTHER = "automatic"
"""A text that no condition names."""


def schema_from_use(
    contracts: Contracts, flows: Mapping[str, FlowSpec], role: str, reply_of: str = ""
) -> dict[str, Any]:
    """A JSON Schema with the fields of the role's answer that ``flows`` use, all of them required.

    ``reply_of``: the step whose ``reply`` it is; otherwise it is the answer of the role itself.
    """
    schema: dict[str, Any] = {"type": "object"}
    for flow in flows.values():
        for step in flow.steps:
            if {role, EVERY_ROLE} & {*step.asked} and reply_of == ("" if step.reply is None else step.id):
                for read in contracts.reads(flow.name, step, role):
                    _add(schema, read.path, _shape(read))
    return schema


def _add(schema: dict[str, Any], path: Path, shape: Mapping[str, Any]) -> None:
    """Add a field to an object's schema. Of two uses the more specific one counts."""
    if not (shape or isinstance(path[-1], str)):
        path, shape = path[:-1], {"type": "array"}
    for name in path:
        if not isinstance(name, str):
            schema.setdefault("type", "array")
            schema = schema.setdefault("items", {})
            continue
        schema["required"] = [*dict.fromkeys([*schema.get("required", []), name])]
        schema = schema.setdefault("properties", {}).setdefault(name, {})
    known = schema.get("enum", [])
    values = {"enum": known + [value for value in shape["enum"] if value not in known]} if "enum" in shape else {}
    schema |= {**shape, **schema, **values}


def _shape(read: ResultRead) -> dict[str, Any]:
    """The schema of a value that fits its use, with values for both outcomes of a comparison."""
    if read.compared:
        return {"enum": [*_others(read.compared[0]), *read.compared]}
    kind = {ValueUse.DECIDED: "boolean", ValueUse.COUNTED: "array"}.get(read.use, read.use.type)
    return {"type": kind} if kind not in ("", "string") else {}


def _others(value: object) -> list[object]:
    """Values beside ``value``, for the other outcome of a comparison."""
    if isinstance(value, bool):
        return [not value]
    return [value - 1, value + 1] if isinstance(value, int | float) else [OTHER]
