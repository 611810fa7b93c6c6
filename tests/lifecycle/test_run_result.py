"""The result of a run: what the flow declares, as far as the run got."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codex_multi_role.flow import new_state
from codex_multi_role.lifecycle.run_result import MAX_TEXT_CHARACTERS, run_result
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace import Workspace
from tests.support.flows import flow_of

STEPS = "steps: [{id: measure, check: tests}, {id: report, check: tests}]"
FILES: list[dict[str, Any]] = [
    {"path": "a.py", "added": 3, "removed": 1},
    {"path": "logo.png", "added": None, "removed": None},
]


def result_of(
    tmp_path: Path, result: str, tests: Any = None, files: list[dict[str, Any]] | None = FILES, **left: Any
) -> Any:
    """The result of a flow with this ``result:`` whose step ``measure`` left ``left``."""
    flow = flow_of(f"{result}\n{STEPS}")
    state = new_state(flow, "a goal", {}, 1)
    state.enter("measure")
    state.leave("measure", left)
    state.latest_tests = tests
    folder = RunFolder.create(tmp_path / "runs")
    (tmp_path / "known.md").write_text("# It\n")
    return run_result(flow, state, folder, Workspace(tmp_path), files)


def test_flow_without_result_shows_changed_files(tmp_path: Path) -> None:
    """Not the tests as well: each view says how they ended."""
    tests = {"status": "failed", "passed": 3, "failed": 1, "errors": 1}
    assert result_of(tmp_path, "", tests) == {
        "title": "Changed files",
        "text": "a.py  +3 -1\nlogo.png  binary",
        "format": "text",
        "figures": {},
    }


def test_figures_keep_their_type_and_missing_ones_are_left_out(tmp_path: Path) -> None:
    declared = """
result:
  title: "Report of {{ goal }}"
  file: known.md
  text: ""
  format: markdown
  figures: {score: "{{ steps.measure.score }}", words: "{{ steps.report.words }}", nothing: "{{ none }}"}
"""
    assert result_of(tmp_path, declared, score=0.5) == {
        "title": "Report of a goal",
        "file": "known.md",
        "format": "markdown",
        "figures": {"score": 0.5},
    }


def test_run_that_produced_nothing_has_no_result(tmp_path: Path) -> None:
    declared = 'result: {title: Answer, text: "{{ steps.report.answer }}", file: answer.md, figures: {n: "{{ 1 }}"}}'
    assert result_of(tmp_path, declared) is None
    assert result_of(tmp_path, "", files=None) is None


def test_long_text_is_a_file_of_the_run(tmp_path: Path) -> None:
    text = "x\ty\n" * MAX_TEXT_CHARACTERS
    result = result_of(tmp_path, 'result: {title: T, text: "{{ steps.measure.text }}", format: markdown}', text=text)
    assert "text" not in result
    (file,) = tmp_path.glob(f"runs/*/{result['file']}")
    assert (file.name, file.read_text()) == ("result.md", text)
