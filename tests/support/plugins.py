"""Packages with parts of their own, installed as far as Python can tell."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest


def distribution(folder: Path, name: str, group: str, points: Iterable[str]) -> None:
    """Make ``folder`` provide the distribution ``name`` with ``points``, such as ``slow = module:slow``."""
    information = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("\n".join([f"[{group}]", *points, ""]))


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    names: Iterable[str],
    source: str,
    more: Iterable[str] = (),
) -> None:
    """Make ``source`` importable as ``extra_<kind>``, with an entry point ``codex_multi_role.<kind>`` for each name."""
    module = f"extra_{kind}"
    points = (*(f"{name} = {module}:{name}" for name in names), *more)
    distribution(folder, f"extra-{kind}", f"codex_multi_role.{kind}", points)
    (folder / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, module, raising=False)
