"""What is known before a run of the values of templates, and the mistakes in them that no run can make right.

A template is evaluated with values of which only the types are known, once for each sequence of decisions
(`explorations`). A comparison counts as a mistake if it never holds with the types that its sides have in any of them,
and a template if it fails in each, whatever the values are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import or_

from codex_multi_role.catalog import templates
from codex_multi_role.catalog.explorations import MAX_EXPLORATIONS, Exploration, Operation, UnknownField, explore
from codex_multi_role.catalog.flow_expressions import has_expressions
from codex_multi_role.catalog.unknown_values import UnknownValue, tries, type_of
from codex_multi_role.reading.nearest import did_you_mean, no_such
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.value_types import ANY, Fields, ValueType

NO_NAME = re.compile(r"\W")
_SIGNS = {"lt": "<", "lteq": "<=", "gt": ">", "gteq": ">="}
_VERDICT = re.compile(r"steps\.([^.]+)\.(status|verdict)")


def type_of_value(value: object, types: Fields) -> ValueType:
    """The type of ``value`` once its templates are rendered with names of these ``types``; `ANY` if that fails."""
    if not isinstance(value, str) or not has_expressions(value):
        return ValueType.of_constant(value)
    return _type(_explored(value, types))


def kinds_of_value(value: object, types: Fields) -> ValueType:
    """Of which kinds ``value`` can be, whatever the values are that its templates use."""
    if not isinstance(value, str) or not has_expressions(value):
        return ValueType.of_constant(value).kinds_only()
    found = _explored(value, types)
    is_certain = len(found) <= MAX_EXPLORATIONS and not any(each.failure and each.is_vague for each in found)
    return _type(found).kinds_only() if is_certain else ANY


def check_template(text: object, where: Place, types: Fields, wanted: ValueType = ANY) -> None:
    """As `templates.check_template`, also for unknown names and fields, and comparisons that are decided already.

    ``types``: those of the names that templates can use. ``wanted``: the value's. All mistakes are reported.
    """
    problems = Problems()
    for template, place in templates.templates_in(text, where):
        with problems.collected():
            templates.check_template(template, place)
            _check(template, place, types, wanted)
    problems.raise_found()


def check_expression(expression: str, where: Place, types: Fields) -> None:
    """Like `check_template`, for a ``when``: an expression without braces."""
    templates.check_expression(expression, where)
    _check(f"{{{{ {expression} }}}}", where, types)


def _explored(text: str, types: Fields) -> list[Exploration]:
    """All evaluations of a template, whose ``value`` is the type of its value."""
    context = _unknown_values(types)
    return explore(lambda: type_of(templates.value_of_text(text, context)))


def _unknown_values(types: Fields) -> Mapping[str, UnknownValue]:
    return {name: UnknownValue(name, type=known) for name, known in types.items()}


def _type(explorations: Sequence[Exploration]) -> ValueType:
    known = [each.value for each in explorations if each.failure is None]
    return reduce(or_, known) if known else ANY


def _check(text: str, where: Place, types: Fields, wanted: ValueType = ANY) -> None:
    names = templates.names_from_outside(text)
    used = {name: types.get(name, ANY) for name in names}
    found = _explored(text, used)
    fields = list({name: field for each in found for name, field in each.unknown_fields.items()}.values())
    for field in fields:
        _check_misread(field, text, where)
    problems = Problems()
    for name in sorted(names - types.keys()):
        problems.add(where.unknown("template name", name, types))
    for message, hint in [*map(_unknown, fields), *_never_decided(found)]:
        problems.add(where.error(message, hint))
    problems.raise_found()
    if wanted.kinds.isdisjoint((known := _type(found)).kinds):
        raise where.error(f"must be {wanted.in_words}, but {text} is {known.in_words}")
    if all(each.failure and not each.is_vague for each in found):
        failure = tries(partial(templates.render, text, _unknown_values(used), where)).failure
        if failure is not None:
            raise where.error(f"always fails: {failure.problem}", failure.hint)


def _check_misread(field: UnknownField, text: str, where: Place) -> None:
    """Raise `DefinitionError` for a step or role with more than letters in its name after a dot: ``steps.a-b``."""
    for name in field.type.fields:
        if re.split(NO_NAME, name)[0] == field.name and f"{field.owner}.{name}" in text:
            hint = f"Write {field.owner}['{name}'], or call it {re.sub(NO_NAME, '_', name)}."
            raise where.error(f"a template reads {field.owner}.{name} as several names", hint)


def _unknown(field: UnknownField) -> tuple[str, str]:
    """Message and hint, also for each of what follows."""
    known, is_first = field.type.fields, "." not in field.owner
    kind, owner = (field.owner.removesuffix("s"), "") if is_first else ("field", f"{field.owner}: ")
    message, hint = no_such(kind, field.name, known)
    nested = (name for name, each in known.items() if field.name in each.fields and not is_first)
    meant = [f"Write {field.owner}.{name}.{field.name}." for name in nested][:1]
    return f"{owner}{message}", " ".join([*meant, hint])


def _never_decided(explorations: Sequence[Exploration]) -> Iterator[tuple[str, str]]:
    """Each comparison that is never true, always true, or always fails, and sums that do."""
    whole = Exploration()
    for each in explorations:
        for number, operation in each.operations.items():
            whole.note_operation(number, operation)
    for operation in whole.operations.values():
        yield from _problems(operation)


def _problems(operation: Operation) -> Iterator[tuple[str, str]]:
    sign, left, right, is_turned, one, other = operation
    if sign == "add" and not one.can_be_less(other):
        yield f"{left} + {right} adds {one.kinds_in_words} and {other.kinds_in_words}", ""
    if sign in _SIGNS and not one.can_be_less(other):
        yield f"{left} {_SIGNS[sign]} {right} compares {one.kinds_in_words} with {other.kinds_in_words}", ""
    null = frozenset({"null"})  # such a comparison asks whether there is a value, whoever may know that
    if sign in ("eq", "ne", "in", "notin") and not one.can_equal(other) and null not in (one.kinds, other.kinds):
        part, compared, known, value = (right, left, other, one) if is_turned else (left, right, one, other)
        word = "is always different from" if sign.startswith("n") else "is never"
        texts = [each for each in value.values or () if isinstance(each, str)]
        named = did_you_mean(texts[0], map(str, known.values or ())) if len(texts) == 1 else ""
        yield f"{part} {word} {compared}: it is {known.in_words}{named}", _hint(part)


def _hint(part: str) -> str:
    """Which of the two words that a step has is meant: the engine's, or its role's or check's."""
    match = re.fullmatch(_VERDICT, part)
    if match is None:
        return ""
    if match[2] == "status":
        return f"status is how the step went; what its role or check said is steps.{match[1]}.verdict."
    return f"verdict is what the role or check said; how the step went is steps.{match[1]}.status."
