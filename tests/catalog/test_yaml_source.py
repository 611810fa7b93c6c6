"""YAML files, and what all models of them share."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from codex_multi_role.catalog.definition import Definition
from codex_multi_role.catalog.prices import PricesFile
from codex_multi_role.catalog.step_spec import Step
from codex_multi_role.errors import DefinitionError
from codex_multi_role.playbook import Playbook
from codex_multi_role.reading.registry import Registry
from codex_multi_role.reading.yaml_source import MAX_BYTES, load_yaml, parse_text, read_text, validate
from tests.support.catalogs import Write, problem_of, raised

_HERE = Path("a.yaml")
_JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcxyz", max_size=3), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


def test_file_becomes_json_shaped_data_and_dates_stay_text(write: Write) -> None:
    path = write("\ufeffa: [1, 2.5, yes, null, ü]\nb: {c: 2024-01-31, d: 2024-01-31 10:00:00}\n")
    assert load_yaml(path) == {
        "a": [1, 2.5, True, None, "ü"],
        "b": {"c": "2024-01-31", "d": "2024-01-31 10:00:00"},
    }


def test_anchors_and_merge_keys_work(write: Write) -> None:
    assert load_yaml(write("base: &b {x: 1, y: 2}\nother: {<<: *b, y: 3}\nagain: {inner: {<<: *b, x: 0}}\n")) == {
        "base": {"x": 1, "y": 2},
        "other": {"x": 1, "y": 3},
        "again": {"inner": {"x": 0, "y": 2}},
    }


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 'duplicate key "a"'),
        ('roles:\n  - name: x\n    "name": y\n', 3, 'duplicate key "name"'),
        ("a: [1\nb: 2\n", 2, "a list or a mapping in brackets is not closed"),
        ("a: 1\n\tb: 2\n", 2, "a tab is not allowed here"),
        ("", 1, "the file is empty"),
        ("a: 1\n---\nb: 2\n", 2, "a file has only one document"),
        (b"a: 1\nb: \xff\n", 2, "not UTF-8"),
        ("a: \x01", 1, "it contains a control character"),
        ("a: !!python/object:os.system {}\n", 1, "tags such as !!set are not supported"),
        ("a: !!set {x}\n", 1, "tags such as !!set are not supported"),
        ("a: !!bool x\n", 1, "not of type bool"),
        ('a: !!float ""\n', 1, "not of type float"),
        ("a: .nan\n", 1, "a number that JSON and TOML cannot hold"),
        (f"a: {2**63}\n", 1, "a number that JSON and TOML cannot hold"),
        (f"a: {'9' * 5000}\n", 1, "a number that JSON and TOML cannot hold"),
        (f"a: {'1:' * 400_000}1\n", 1, "a number that JSON and TOML cannot hold"),
        ('a: "\\ud800"\n', 1, "invalid Unicode character escape"),
        ("a: *nowhere\n", 1, "the alias (*) has no anchor (&)"),
        ("a: &a\n  b: [*a]\n", 2, "*a contains itself"),
        ("? [x, y]\n: 1\n", 1, "a key must be a text or a number"),
        ("- " * 100 + "a", 1, "nested more than 64 levels deep"),
    ],
)
def test_every_mistake_names_file_and_line(write: Write, content: str | bytes, line: int, problem: str) -> None:
    path = write(content)
    error = raised(DefinitionError, load_yaml, path)
    assert str(error).startswith(f"{path}:{line}:")
    assert problem in str(error)


def _laughs(levels: int) -> str:
    lines = ["l0: &l0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "bomb",
    [
        _laughs(10),
        "a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 100 + "]",
        "m0: &m0 {x: " + "y" * 10_000 + "}\n" + "".join(f"m{n}: [" + "*m0, " * 100 + "]\n" for n in range(1, 9)),
    ],
    ids=["billion laughs", "one long scalar", "many aliases of one mapping"],
)
def test_aliases_that_explode_are_refused(bomb: str) -> None:
    with pytest.raises(DefinitionError, match=r"a\.yaml:\d+:\d+: its aliases \(\*\) make the file too large"):
        parse_text(bomb, _HERE)


def test_long_chain_of_aliases_counts_as_deep() -> None:
    chain = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 100))
    with pytest.raises(DefinitionError, match=r":64:\d+: nested more than 64 levels deep"):
        parse_text(chain, _HERE)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "[{", "&a [", "[[], "])
def test_million_openings_are_an_error_and_not_a_crash(opening: str) -> None:
    """libyaml's own composer dies of these with a segmentation fault."""
    with pytest.raises(DefinitionError, match=r"^a\.yaml:1:\d+: "):
        parse_text(opening * (MAX_BYTES // len(opening)), _HERE)


def test_what_cannot_be_read_says_why(tmp_path: Path, write: Write) -> None:
    os.mkfifo(tmp_path / "fifo")
    large = write(b"a" * (MAX_BYTES + 1), "large.yaml")
    expected = {
        tmp_path / "missing.yaml": "No such file or directory",
        tmp_path: "not a regular file",
        tmp_path / "fifo": "not a regular file",
        Path("/dev/zero"): "not a regular file",
        tmp_path / ("x" * 300): "File name too long",
        tmp_path / "a\0b": "embedded null byte",
        large: f"larger than {MAX_BYTES} bytes",
    }
    for path, reason in expected.items():
        assert str(raised(DefinitionError, read_text, path)) == f"{path}: cannot be read: {reason}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [('{"a": 1,\n "b" 2}', r"2:6: not valid JSON"), ("[" * 100_000, r"1:\d+: "), ("1" * 5000, "1:1: "), ("", "1:1: ")],
)
def test_json_mistakes_name_the_line(text: str, problem: str) -> None:
    with pytest.raises(DefinitionError, match=rf"^a\.json:{problem}"):
        parse_text(text, Path("a.json"))


@given(_JSON_VALUES.filter(lambda value: value is not None))
def test_json_text_reads_the_same_as_yaml(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert parse_text(text, Path("a.json")) == value


@given(st.text(st.characters(codec="utf-8")) | st.text(" \n-:[]{}&*!|>'\"?#,%@ab1<~"))
def test_any_text_is_data_or_a_definition_error(text: str) -> None:
    problem = problem_of(partial(parse_text, text, _HERE))
    assert not problem or re.match(r"a\.yaml:\d+:\d+: ", problem)


class _Flags(BaseModel):
    model_config = ConfigDict(extra="forbid")
    allow_write: bool = False
    allow_read: bool = True


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    prompt_flags: _Flags = _Flags()
    with_: dict[str, _Flags] = Field(default_factory=dict, alias="with")


class _Team(BaseModel):
    model_config = ConfigDict(extra="forbid")
    roles: tuple[_Entry, ...] = Field(default=(), min_length=1)


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (
            {"roles": [{"name": "a"}, {"name": "b", "prompt_flags": {"allow_wirte": True}}]},
            'a.yaml: roles[1]: prompt_flags: unknown key "allow_wirte"; did you mean "allow_write"?',
            "Known keys: allow_write, allow_read.",
        ),
        ({"roles": [{"nmae": "a"}]}, 'a.yaml: roles[0]: unknown key "nmae"; did you mean "name"?', "Known"),
        ({"roles": [{"name": "a", "wiht": {}}]}, 'a.yaml: roles[0]: unknown key "wiht"; did you mean "with"?', "Known"),
        (
            {"roles": [{"name": "a", "with": {"name": {"allowread": 1}}}]},
            'a.yaml: roles[0]: with.name: unknown key "allowread"; did you mean "allow_read"?',
            "Known keys: allow_write, allow_read.",
        ),
        ({"roles": [{"name": "a", "zzz": 1}]}, 'a.yaml: roles[0]: unknown key "zzz"', "Known keys: name, prompt_flags"),
        ({"roles": [{}]}, 'a.yaml: roles[0]: missing key "name"', ""),
        ({"roles": [{"name": 5}]}, "a.yaml: roles[0]: name: must be text, not 5", ""),
        ({"roles": []}, "a.yaml: roles: must not be empty", ""),
        ({"roles": "abc"}, 'a.yaml: roles: must be a list, not "abc"', ""),
        ({"roles": [{"name": "a", "prompt_flags": 3}]}, "a.yaml: roles[0]: prompt_flags: must be a mapping, not 3", ""),
        (
            {"roles": [{"name": "a", "prompt_flags": {"allow_read": "perhaps"}}]},
            'a.yaml: roles[0]: prompt_flags.allow_read: must be true or false, not "perhaps"',
            "",
        ),
        (["x" * 100], f'a.yaml: must be a mapping, not ["{"x" * 58}…', ""),
    ],
)
def test_validation_names_the_key_path_and_the_nearest_key(data: object, message: str, hint: str) -> None:
    error = raised(DefinitionError, validate, _Team, data, _HERE)
    assert str(error) == message
    assert error.hint.startswith(hint)
    assert bool(error.hint) == bool(hint)


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
