"""What differs from run to run by itself does not count as a difference; all else does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.extensions.replays.normalization import PathNames, normalize

HERE = PathNames({"workspace": Path("/work/me/shop"), "run folder": Path("/work/me/runs/1"), "home": Path("/work")})
THERE = PathNames({"workspace": Path("/srv/ci/shop two"), "run folder": Path("/srv/ci/r"), "home": Path("/home/ci")})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 failed in 0.12s", "1 failed in 61.70s (0:01:01)"),
        ("runs/20260131_101500_0123abcd/x", "runs/20261231_235959_fedc9876/x"),
        ("at 2026-01-31T10:15:00.123+00:00", "at 2027-02-01 11:16:01Z"),
        ("<Shop object at 0x7ff777fa51d0>", "<Shop object at 0x55aa77fa51d0>"),
        ('"seconds": 0.7', '"seconds": 12'),
        ("/tmp/tmpab12/x.py", "/tmp/other/x.py"),
        ("/tmp/tmpab12/copy/shop/x.py", "/tmp/other/copy/workspace/x.py"),
        ("a\nplatform linux -- Python 3.11.7, pytest-9\nb", "a\nplatform darwin -- Python 3.13.0, pytest-9\nb"),
        ("/tmp/pytest-of-me/pytest-3/test_a0", "/tmp/pytest-of-root/pytest-77/test_a0"),
        ('"solver/turn_001/analysis.md"', '"solver.2/turn_003/analysis.md"'),
        ('"solver/turn_001/analysis.md"', '"<<run folder>>/solver/turn_003/analysis.md"'),
        ("see tests/001/junit.xml", "see tests/002/junit.xml"),
    ],
)
def test_what_is_passed_over(one: str, other: str) -> None:
    assert normalize(one) == normalize(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("within 30 seconds", "within 60 seconds"), ("version 1.2", "version 1.3"), ("3 failed", "4 failed"), ("a ", "a")],
)
def test_what_is_not(one: str, other: str) -> None:
    assert normalize(one) != normalize(other)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("cd /work/me/shop && ls", "cd <<workspace>> && ls"),
        ("cc -I/work/me/shop/include", "cc -I<<workspace>>/include"),
        ("file:///work/me/shop.", "file://<<workspace>>."),
        ("/work/me/shop-old and /work/me/shop.bak", "<<home>>/me/shop-old and <<home>>/me/shop.bak"),
        ("/work/me/runs/1/solver", "<<run folder>>/solver"),
        ("/our/work is no home, /workshop neither", "/our/work is no home, /workshop neither"),
    ],
)
def test_paths_have_names(text: str, named: str) -> None:
    assert HERE.named(text) == named


def test_answer_is_put_into_another_workspace() -> None:
    call = {"arguments": json.dumps({"cmd": "ls", "workdir": "/work/me/shop"}), "n": [1, "/work/me/shop/a", None]}
    placed = THERE.placed(HERE.named(call))
    assert placed["n"] == [1, "/srv/ci/shop two/a", None]
    assert json.loads(placed["arguments"])["workdir"] == "/srv/ci/shop two"


def test_path_that_json_spells_otherwise_is_found() -> None:
    places = PathNames({"workspace": Path('/work/me/a "b" é')})
    assert json.loads(places.named(json.dumps({"at": '/work/me/a "b" é/x'}))) == {"at": "<<workspace>>/x"}


def test_root_of_all_has_no_name() -> None:
    assert PathNames({"home": Path("/")}).named("/etc/passwd") == "/etc/passwd"


@given(st.text(st.characters(codec="utf-8")))
def test_what_is_named_is_placed_again(text: str) -> None:
    if "<<" not in text:
        assert HERE.placed(HERE.named(text)) == text
