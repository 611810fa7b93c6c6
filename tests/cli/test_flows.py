from __future__ import annotations

import json
from pathlib import Path

import pytest

from .console import console
from .test_roles import CATALOG

FLOW = """
description: Think once, then do.
steps:
  - ask: thinker
  - ask: doer
    next: [{end: done}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "team" / "flows").mkdir(parents=True)
    (tmp_path / "team" / "catalog.yaml").write_text(CATALOG)
    (tmp_path / "team" / "flows" / "once.yaml").write_text(FLOW)
    return tmp_path


def test_list_has_the_own_and_the_shipped_flows(project: Path) -> None:
    done = console("flows", "list", "--roles", "team", folder=project)
    assert "once" in done.stdout
    assert "Think once, then do." in done.stdout
    assert "cycles" in done.stdout
    listed = json.loads(console("flows", "list", "--json", "--roles", "team", folder=project).stdout)
    assert "once" in [flow["name"] for flow in listed]


def test_show_is_the_file_or_what_was_read(project: Path) -> None:
    assert FLOW.strip() in console("flows", "show", "once", "--roles", "team", folder=project).stdout
    shown = json.loads(console("flows", "show", "once", "--json", "--roles", "team", folder=project).stdout)
    assert [step["id"] for step in shown["steps"]] == ["thinker", "doer"]


def test_validate_shows_the_worst_case(project: Path) -> None:
    done = console("flows", "validate", "--roles", "team", "once", folder=project)
    assert done.returncode == 0
    assert done.stdout.startswith("ok: once: at most 2 turns and 4 repair turns of 2 processes in ")


def test_validate_looks_at_all_flows_and_names_what_is_wrong(project: Path) -> None:
    (project / "team" / "flows" / "wrong.yaml").write_text("steps:\n  - ask: thinkr\n")
    done = console("flows", "validate", "--roles", "team", folder=project)
    assert done.returncode == 2
    assert "ok: once" in done.stdout
    assert "ok: cycles" in done.stdout
    assert "wrong.yaml" in done.stderr
    assert "thinker" in done.stderr


def test_an_endless_flow_is_refused(project: Path) -> None:
    (project / "team" / "flows" / "endless.yaml").write_text("steps:\n  - ask: thinker\n    next: [{to: thinker}]\n")
    done = console("flows", "validate", "--roles", "team", "endless", folder=project)
    assert done.returncode == 2
    assert "endless.yaml" in done.stderr


def test_an_unknown_flow_gets_the_nearest_name(project: Path) -> None:
    done = console("flows", "validate", "--roles", "team", "onec", folder=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'did you mean "once"?' in done.stderr
