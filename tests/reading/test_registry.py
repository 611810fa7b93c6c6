"""Parts by name: which of several counts, and the message about one that is missing or broken."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.reading.registry import Registry, hint
from tests.support import plugins
from tests.support.plugins import distribution

PARTS: Registry[object] = Registry("part", "parts_of_a_test", {"sqrt": "math:sqrt"})
OWN = "codex_multi_role.errors:UsageError"


def install(folder: Path, name: str, points: Sequence[str]) -> str:
    """A distribution in a folder of its own, which is returned."""
    distribution(folder / name, name, "parts_of_a_test", points)
    return str(folder / name)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two packages with parts of one name, before and after our own."""
    first = install(tmp_path, "first", ["only = math:pi", "twice = math:pi", "ours = math:pi", "gone = math:no_such"])
    own = install(tmp_path, "own", [f"ours = {OWN}", "moved = codex_multi_role.no_such:part"])
    last = install(tmp_path, "last", ["twice = math:e", "ours = math:e"])
    monkeypatch.setattr(sys, "path", [first, own, last, *sys.path])


def test_first_on_the_path_counts_unless_one_is_ours(installed: None) -> None:
    import math

    assert (PARTS.find("only"), PARTS.find("twice"), PARTS.find("ours")) == (math.pi, math.pi, UsageError)
    assert PARTS.names() == ["gone", "moved", "only", "ours", "sqrt", "twice"]


@pytest.mark.parametrize(("name", "hint"), [("gone", "fix or remove it"), ("moved", "pip install -e .")])
def test_part_that_does_not_load_has_a_remedy(installed: None, name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"the part '{name}' .* does not load: ") as caught:
        PARTS.find(name)
    assert hint in str(caught.value.hint)


def test_missing_entry_points_of_ours_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, "first", ["only = math:pi"]))
    with pytest.raises(UsageError, match='unknown part "ours"') as caught:
        PARTS.find("ours")
    assert "pip install -e ." in str(caught.value.hint)


def test_unknown_part_needs_no_installation_if_ours_are_there(installed: None) -> None:
    with pytest.raises(UsageError, match='unknown part "our"; did you mean "ours"') as caught:
        PARTS.find("our")
    assert caught.value.hint == "Known: gone, moved, only, ours, sqrt, twice."


def test_entry_points_are_read_once(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    PARTS.find("only")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: pytest.fail("read again"))
    PARTS.find("twice")


def test_extension_advises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugins.install(tmp_path, monkeypatch, "hints", ["sunk"], 'sunk = "Bail it out."')
    assert (hint("sunk"), hint("afloat", "Sail on.")) == ("Bail it out.", "Sail on.")
