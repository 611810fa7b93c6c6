from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.checks import RunFacts, find_check
from codex_multi_role.checks.data_file import MAX_DOCUMENT_BYTES, parse_document, parse_json, read_document
from codex_multi_role.checks.text_files import read_file, write_file
from codex_multi_role.errors import CheckFailed, CodexMultiRoleError, UsageError
from codex_multi_role.workspace import Workspace
from tests.support.checks import MakeContext

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_is_read_as_it_was_written(value: object) -> None:
    assert parse_json(json.dumps(value)) == value


@given(st.text() | st.text(alphabet="[]{}:,-?!&*#|>'\"%@` \n\tab01.<=~", max_size=60))
def test_no_text_is_too_wild(text: str) -> None:
    for name in ("a.yaml", "a.json"):
        try:
            value = parse_document(text, name)
        except ValueError:
            continue
        assert json.loads(json.dumps(value, allow_nan=False)) == value


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("a: [1, 2.5, true, null, x]", "a.yaml", {"a": [1, 2.5, True, None, "x"]}),
        ("day: 2024-01-31\n1: one", "a.yml", {"day": "2024-01-31", "1": "one"}),
        ('{"a": [1]}', "a.JSON", {"a": [1]}),
        ("", "a.yaml", None),
        ("a: &x [1]\nb: *x", "a.yaml", {"a": [1], "b": [1]}),
        ('"\\ud800 \\ud83d\\ude00"', "a.json", "? \U0001f600"),
    ],
)
def test_what_a_document_says(text: str, name: str, value: object) -> None:
    assert parse_document(text, name) == value


@pytest.mark.parametrize(
    ("text", "name", "problem"),
    [
        ("{", "a.json", "line 1, column 2: Expecting property name"),
        ("a: [\nb", "a.yaml", "line 3: "),
        ("a: 1\n---\nb: 2", "a.yaml", "line 2: "),
        ("a: &x [*x]", "a.yaml", "contains itself"),
        ("a: 1\na: 2", "a.yaml", "line 2: duplicate key"),
        ("!!python/object:os.system {}", "a.yaml", "line 1: could not determine a constructor"),
        ("[NaN]", "a.json", "not JSON compliant"),
        ("[1e999]", "a.json", "not JSON compliant"),
        ("a: .inf", "a.yaml", "line 1: a number that JSON and TOML cannot hold"),
        ("[" * 100_000, "a.json", "nested more than 64 levels deep"),
        ("[" * 500, "a.yaml", "nested more than 64 levels deep"),
        ("[" * 100_000, "a.yaml", "64 levels deep|maximum nesting depth"),  # the second from newer libyaml itself
        ("1:" * 50_000 + "1", "a.yaml", "line 1: a number that JSON and TOML cannot hold"),
        ("9" * 5_000, "a.json", "4300 digits"),
        ("\x00", "a.yaml", "not allowed"),
        ("0b_", "a.yaml", "not of type int"),
    ],
)
def test_invalid_document_is_rejected_with_its_problem(text: str, name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_document(text, name)


def test_depth_that_is_still_taken() -> None:
    for name in ("a.json", "a.yaml"):
        assert parse_document("[" * 64 + "]" * 64, name)


@given(st.floats())
def test_float_survives_or_is_refused(number: float) -> None:
    if math.isfinite(number):
        assert parse_json(json.dumps(number)) == number
    else:
        with pytest.raises(ValueError, match="JSON compliant"):
            parse_json(json.dumps(number))


def test_reading_is_bounded_and_stays_inside(tmp_path: Path) -> None:
    (tmp_path / "large.json").write_bytes(b" " * (MAX_DOCUMENT_BYTES + 1))
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9")
    (tmp_path / "marked.json").write_bytes(b"\xef\xbb\xbf[1]")
    (tmp_path / "away.json").symlink_to("/etc/hostname")
    workspace = Workspace(tmp_path)
    assert read_document(workspace, "marked.json", "check x: file") == "[1]"
    for name, problem in {
        "large.json": "larger than",
        "latin.yaml": "line 2: not UTF-8 text",
        "missing.json": "No such file or directory",
    }.items():
        with pytest.raises(ValueError, match=f"{name}: .*{problem}"):
            read_document(workspace, name, "check x: file")
    for name in ("away.json", "../up.json", "/etc/hostname", ".git/config", ""):
        with pytest.raises(UsageError, match=r"^check x: file: (unsafe|invalid) path"):
            read_document(workspace, name, "check x: file")


def test_what_is_written_is_read(make_context: MakeContext) -> None:
    context = make_context({}, path="deep/a.txt", content="öne\n")
    assert write_file(context)["status"] == "written"
    assert read_file(make_context({}, path="deep/a.txt"))["content"] == "öne\n"


@pytest.mark.parametrize("path", ["../up.txt", "/etc/passwd", ".git/config"])
def test_nothing_outside_is_read_or_written(make_context: MakeContext, path: str) -> None:
    with pytest.raises(CodexMultiRoleError, match="unsafe path"):
        read_file(make_context({}, path=path))
    with pytest.raises(CheckFailed, match="was not written: unsafe path"):
        write_file(make_context({}, path=path, content="x"))


def test_non_utf8_file_is_reported(make_context: MakeContext) -> None:
    context = make_context({}, path="a.bin")
    (context.workspace.root / "a.bin").write_bytes(b"\xff\x00")
    with pytest.raises(CheckFailed, match=r"a\.bin: line 1: not UTF-8 text"):
        read_file(context)


def test_answer_is_written_to_the_run_folder(make_context: MakeContext) -> None:
    context = make_context({}, text="It is 42.\n\n")
    run = context.folder.parent
    facts = RunFacts("one", "plan-solve", "", run, "answer.1", [])
    assert find_check("answer")(replace(context, run=lambda: facts)) == {"status": "written", "file": "answer.md"}
    assert (run / "answer.md").read_text() == "It is 42.\n"


def test_empty_answer_is_none(make_context: MakeContext) -> None:
    with pytest.raises(UsageError, match="check answer: "):
        find_check("answer")(make_context({}, text=""))
