"""Five things that a newcomer does, each from an empty home, at a real terminal, with what a person would look for."""

from __future__ import annotations

import re
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.console import Session, at_terminal
from tests.support.workspaces import write_files

pytestmark = pytest.mark.real

PROGRAM = [sys.executable, "-m", "codex_multi_role"]
PROMPT = "Ctrl-D leaves the question open"
REVOKED = """
name: broken
roles:
  planner:
    - fault: {status: 401, message: "the key was revoked"}
"""
REVIEWED = """
name: reviewed
steps:
  - id: write
    ask: writer
  - id: look
    review: "Is it good enough?"
    next:
      - {when: "steps.look.approved", end: published}
      - {when: "steps.write.visits < 3", to: write}
      - {end: gave_up, exit: 1}
"""
WRITER = """
version: 1
roles:
  - name: writer
    prompt_text: Write one sentence.
    output_schema: {type: object, required: [summary], properties: {summary: {type: string}}}
"""
WRITTEN = """
name: written
roles:
  writer:
    - json: {summary: a first try}
    - json: {summary: a better one}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def typed(project: Path, *arguments: str, exit_code: int = 0) -> str:
    """What a command prints on its terminal, without colours."""
    with on_own_terminal(project, *arguments) as session:
        assert session.end() == exit_code, session.drawn
    return plain(session)


def on_own_terminal(project: Path, *arguments: str) -> AbstractContextManager[Session]:
    return at_terminal([*PROGRAM, *arguments], project, HOME=str(project.parent / "home"))


def plain(session: Session) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", session.drawn).replace("\r", "")


def test_own_team_is_changed_checked_and_tried_without_a_model(project: Path) -> None:
    typed(project, "init", "--for", "coding")
    catalog = project / "roles" / "catalog.yaml"
    catalog.write_text(
        catalog.read_text().replace("You plan the work of a small team", "You plan as little as you can")
    )
    assert "ok: roles/catalog.yaml: planner, implementer, tester, reviewer" in typed(project, "roles", "validate")
    assert "You plan as little as you can" in typed(project, "--goal", "Add a --version flag", "--dry-run")
    drawn = typed(project, "--playbook", "auto")
    assert "the answers came from the playbook auto (automatic answers)" in drawn
    assert "Done: reviewer said DONE" in drawn


@pytest.mark.long
def test_failed_run_says_why_and_is_resumed(project: Path) -> None:
    """No short test resumes a failed run as the terminal says."""
    (project / "broken.yaml").write_text(REVOKED)
    drawn = typed(project, "--goal", "g", "--playbook", "broken.yaml", exit_code=3)
    assert "the key was revoked" in drawn
    following = re.search(r"next +codex-multi-role (resume \S+)", drawn)
    assert following is not None
    assert "the key was revoked" in typed(project, "show", "latest")
    assert "Done: integrator said DONE" in typed(project, *following[1].split(), "--playbook", "roman-numerals")


def test_flow_with_loop_and_review_is_written_and_run(project: Path) -> None:
    write_files(project, {"roles/catalog.yaml": WRITER, "roles/flows/reviewed.yaml": REVIEWED, "written.yaml": WRITTEN})
    assert "reviewed" in typed(project, "flows", "validate", "reviewed")
    arguments = ["--flow", "reviewed", "--goal", "g", "--playbook", "written.yaml"]
    with on_own_terminal(project, *arguments) as session:
        session.wait_for("Is it good enough?")
        session.wait_for(PROMPT)
        session.type("n too long\n")
        session.wait_for("review look.2")
        session.wait_for(PROMPT)
        session.type("y\n")
        assert session.end() == 0, session.drawn
    assert "Published" in plain(session)
