"""What all models of YAML files share."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from codex_multi_role.catalog.definition import Definition
from codex_multi_role.catalog.prices import PricesFile
from codex_multi_role.catalog.step_spec import Step
from codex_multi_role.playbook import Playbook
from codex_multi_role.reading.registry import Registry

NUMBERS = {int, float, Decimal}
SCHEMAS: Registry[type[Definition]] = Registry("schema", "codex_multi_role.schemas", {})
OF_EXTENSIONS = [SCHEMAS.find(kind) for kind in SCHEMAS.names()]


def types_in(annotation: object) -> set[object]:
    return {annotation}.union(*map(types_in, get_args(annotation)))


def all_models(model: type[Definition] = Definition) -> Iterator[type[Definition]]:
    yield model
    for each in sorted(model.__subclasses__(), key=lambda each: each.__name__):  # in whichever order they were imported
        yield from all_models(each)


def numbers() -> dict[str, Any]:
    """Each field that accepts a number, of every model: its annotation, by the names of both."""
    return {
        f"{model.__name__}.{name}": Annotated[field.annotation, "", *field.metadata]
        for model in all_models()
        for name, field in model.model_fields.items()
        if types_in(field.annotation) & NUMBERS
    }


def test_models_with_numbers_are_found() -> None:
    owners = {name.partition(".")[0] for name in numbers()}
    assert {
        "ModelPrice",
        "Usage",
        "StepLimits",
        "ForEach",
        "RoleSpec",
        *(each.__name__ for each in OF_EXTENSIONS),
    } <= owners
    assert {PricesFile, Playbook, Step} <= set(all_models())


@pytest.mark.parametrize("name", numbers())
@pytest.mark.parametrize("other", [True, "1"])
def test_no_field_takes_a_boolean_or_a_text_for_a_number(name: str, other: object) -> None:
    annotation = numbers()[name]
    if isinstance(other, str) and str in types_in(annotation):
        return
    with pytest.raises(ValidationError, match=r"must be a (whole )?number, not"):
        TypeAdapter(annotation).validate_python(other)
