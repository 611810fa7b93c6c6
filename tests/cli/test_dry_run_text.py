"""``run --dry-run`` as a user starts it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.catalogs import write_team
from tests.support.console import console

FLOW = """
steps:
  - ask: thinker
  - {id: measure, check: command, with: {argv: ["true", "{{ steps.thinker.word }}"]}}
  - {id: sure, review: "Really {{ goal }}?", show: "{{ roles.thinker }}"}
  - {ask: doer, for_each: [a, b], prompt: "Do {{ item }}."}
"""
DRY = ["run", "--roles", "team", "--flow", "once", "--goal", "go", "--dry-run"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_team(tmp_path, once=FLOW)


def test_people_read_the_prompts_and_nothing_is_left_behind(project: Path) -> None:
    done = console(*DRY, folder=project)
    assert done.returncode == 0
    titles = [line for line in done.stdout.splitlines() if line.startswith("=== ")]
    assert titles == [
        "=== 1. thinker: ask thinker ===",
        "=== 2. measure: check command ===",
        "=== 3. sure: review ===",
        "=== 4. doer: ask doer, item 1 of 2 ===",
    ]
    assert "Role: thinker" in done.stdout
    assert '"<thinker.word>"' in done.stdout
    assert "Really go?\n\n<thinker>\n" in done.stdout
    assert "Do a." in done.stdout
    assert done.stderr == "2 prompts in the first pass; nothing was started, written or spent\n"
    assert [path.name for path in project.iterdir()] == ["team"]


def test_machines_read_one_record_a_line(project: Path) -> None:
    done = console(*DRY, "--json", folder=project)
    assert (done.returncode, done.stderr) == (0, "")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(record["type"], record["step"]) for record in records] == [
        ("ask", "thinker"),
        ("check", "measure"),
        ("review", "sure"),
        ("ask", "doer"),
    ]


def test_quiet_only_says_what_is_wrong(project: Path) -> None:
    done = console(*DRY, "--quiet", folder=project)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (project / "team" / "flows" / "once.yaml").write_text("steps:\n  - ask: thinkr\n")
    wrong = console(*DRY, "--quiet", folder=project)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert 'did you mean "thinker"?' in wrong.stderr
