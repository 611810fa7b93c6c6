from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.places import Place, Problems

FILE = """\
version: 1
roles:
  - name: planner
    prompt_flags: {allow_wirte: true}
  - role_file: team/writer.yaml
  - prompt_text: nameless
steps:
  - id: work
    next:
      - {to: nowhere}
  - review: fine?
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((), ":1:1"),
        (("version",), ":1:1: version"),
        (("roles",), ":2:1: roles"),
        (("roles", 0), ":3:5: role planner"),
        (("roles", 0, "prompt_flags", "allow_wirte"), ":4:20: role planner: prompt_flags.allow_wirte"),
        (("roles", 1, "role_file"), ":5:5: role writer: role_file"),
        (("roles", 2, "prompt_text"), ":6:5: roles[2]: prompt_text"),
        (("roles", 0, "missing", "deep"), ":3:5: role planner: missing.deep"),
        (("steps", 0, "next", 0, "to"), ":10:10: step work: next[0].to"),
        (("steps", 1), ":11:5: steps[1]"),
        (("roles", 7), ":2:1: roles[7]"),
    ],
)
def test_place_has_line_column_and_name(tmp_path: Path, path: tuple[int | str, ...], expected: str) -> None:
    """What the file does not have is at the place of the nearest thing around it."""
    file = tmp_path / "catalog.yaml"
    file.write_text(FILE)
    assert str(Place(file, path)) == f"{file}{expected}"


def test_unknown_key_is_named_once(tmp_path: Path) -> None:
    file = tmp_path / "catalog.yaml"
    file.write_text(FILE)
    error = (Place(file) / "roles" / 0 / "prompt_flags").unknown_key("allow_wirte", ["allow_write", "allow_read"])
    expected = 'role planner: prompt_flags: unknown key "allow_wirte"; did you mean "allow_write"?'
    assert str(error) == f"{file}:4:20: {expected}"
    assert error.hint == "Known keys: allow_write, allow_read."
    text = Place(file).unknown_key("or the other", ["description"])
    assert text.hint == "If it continues the text before it, put that whole text in quotes. Known keys: description."


@pytest.mark.parametrize("content", [None, "a: [", "[" * 100_000, b"\xff"])
def test_place_in_unreadable_file_is_the_file(tmp_path: Path, content: str | bytes | None) -> None:
    file = tmp_path / "a.yaml"
    if content is not None:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    assert str(Place(file, ("a",))) == f"{file}: a"


def test_problems_are_reported_together_and_once() -> None:
    problems = Problems()
    problems.raise_found()
    for message, hint in (("a", "do this"), ("b", ""), ("a", "do this"), ("c", "do that")):
        with problems.collected():
            raise DefinitionError(message, hint)
    with pytest.raises(DefinitionError) as caught:
        problems.raise_found()
    assert str(caught.value) == "a\nb\nc"
    assert caught.value.hint == "do this do that"
    assert [str(each) for each in caught.value.problems] == ["a", "b", "c"]
    outer = Problems()
    with outer.collected():
        raise caught.value
    with pytest.raises(DefinitionError, match=r"^a\nb\nc$"):
        outer.raise_found()
