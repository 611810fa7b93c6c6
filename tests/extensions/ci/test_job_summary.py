"""The summary tells all that matters, and nobody else's text in it is Markdown, HTML, a link or a mention."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.ci.ended_run import EndedRun
from codex_multi_role.extensions.ci.job_summary import MOST_ROLES, job_summary
from codex_multi_role.extensions.ci.run_blocks import MOST_LISTED, cell, code, table
from codex_multi_role.presentation.pieces import Note, RoleNow
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.run_folder import Question, Questions, TurnFolder
from tests.support.continuous_integration import PYTEST_REPORT, leave_tests, make_ended
from tests.support.workflow_log import HOSTILE

OURS = {
    *("heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline", "text", "code_inline"),
    *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close", "softbreak"),
    *(f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")),
}
GITHUB = MarkdownIt("gfm-like")
"""As GitHub reads it: with tables, HTML and links that are not marked as such."""


def tokens(markdown: str) -> list[Token]:
    return [token for block in GITHUB.parse(markdown) for token in (block, *(block.children or []))]


def test_summary_contains_all_relevant_facts(tmp_path: Path) -> None:
    """These include outcome, exit code, goal, turns, tokens, roles, failed tests, warnings and the next command."""
    run = make_ended(tmp_path)
    (tmp_path / "workspace/tests").mkdir()
    (tmp_path / "workspace/tests/test_a.py").write_text("")
    leave_tests(run.folder, PYTEST_REPORT)
    told = job_summary(run)
    for part in (
        "## ❌ codex-multi-role: All cycles are used up",
        "`all 3 cycles are used up` (exit code 1: ended without reaching the goal)",
        "No model was asked: the answers came from the playbook `roman-numerals`.",
        "- goal: `Convert roman numerals`",
        "- turns: 5 (1 repair) in 12 s",
        "- tokens: 6,000 in, 170 out",
        f"- folder: `{run.folder and run.folder.path}`",
        "| `implementer` | 3 | 3,600 | 102 | $1.26 | 4.5 s | `what implementer did` |",
        "failed: 1 passed, 1 failed",
        "- `tests.test_a::test_bad` in `tests/test_a.py:7`: `assert 1 == 2`",
        "- `the disk is nearly full`",
        "- `codex-multi-role resume 20260131_101500_0a1b2c3d --runs-dir",
    ):
        assert part in told
    assert {token.type for token in tokens(told)} <= OURS


def test_result_comes_first_as_code(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    assert run.folder is not None
    text = "```\n<img src=x> @everyone\n" + "\n".join(HOSTILE)
    run.folder.write_record({**run.folder.record(), "result": {"title": "Answer", "text": text, "figures": {"n": 3}}})
    told = job_summary(run)
    assert told.index("### `Answer`") < told.index("- goal:")
    assert "- `n`: `3`" in told
    assert {token.type for token in tokens(told)} <= OURS | {"fence"}


def test_changed_files_are_listed(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    assert run.folder is not None
    TurnFolder.of(run.folder, "planner", 2).write_result({"changed_paths": ["own file.py", "ü.py"]})
    assert "### Files changed\n\n- `own file.py`\n- `ü.py`" in job_summary(run)


def test_parked_run_shows_its_question(tmp_path: Path) -> None:
    run = make_ended(tmp_path, 4)
    assert run.folder is not None
    Questions(run.folder.path).ask(
        Question("approve.1", "Keep it?\n# yes", "", "2026-01-31T10:15:00.000+00:00", None, None)
    )
    assert "### Waiting for an answer\n\n- `approve.1`: `Keep it? # yes`" in job_summary(run)


def test_long_lists_are_cut_and_say_so(tmp_path: Path) -> None:
    run = make_ended(tmp_path)
    run.course.notes[:] = [Note("", f"warning {number}", is_warning=True) for number in range(MOST_LISTED + 7)]
    assert "- and 7 more" in job_summary(run)


def test_it_is_never_longer_than_github_takes(tmp_path: Path) -> None:
    long = "𐍈" * 2000
    run = make_ended(tmp_path, 3, long, outcome=long, hint=long)
    run.course.started = replace(run.course.started, goal=long, flow=long, playbook=long)
    run.course.run.move(long, "")
    run.course.notes += [Note("", f"{number} {long}", is_warning=True) for number in range(MOST_LISTED)]
    run.course.roles = {str(number): RoleNow(name=long, turns=1, last=long) for number in range(MOST_ROLES)}
    assert run.folder is not None
    changed = [f"{number}{long}" for number in range(MOST_LISTED)]
    TurnFolder.of(run.folder, "planner", 1).write_result({"changed_paths": changed})
    for number in range(MOST_LISTED):
        Questions(run.folder.path).ask(Question(f"approve.{number}", long, "", "", None, None))
    failure = f'<failure message="{long}">{long}</failure>'
    cases = f'<testcase classname="{long}" name="{long}">{failure}</testcase>' * MOST_LISTED
    leave_tests(run.folder, f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    size = len(job_summary(run).encode())
    assert size < 1024 * 1024, size


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_code_wherever_it_stands(tmp_path: Path, text: str) -> None:
    run = make_ended(tmp_path, 3, text, outcome=text, hint=text)
    run.course.started = replace(run.course.started, goal=text, flow=text, playbook=text)
    run.course.notes.append(Note("", text, is_warning=True))
    assert run.folder is not None
    TurnFolder.of(run.folder, "planner", 1).write_result({"changed_paths": [text]})
    for role in run.course.roles.values():
        role.last = text
    found = tokens(job_summary(run))
    assert {token.type for token in found} <= OURS
    assert not [token for token in found if token.type == "text" and ("evil" in token.content or "@" in token.content)]


def test_where_no_run_began_it_says_why() -> None:
    told = job_summary(EndedRun.without_run(UsageError("no flow called x", "There are a, b.")))
    assert told.startswith("## ❌ codex-multi-role: No run\n\n`no flow called x` (exit code 2: ")
    assert "- `There are a, b.`" in told


LINES = st.text().map(lambda text: one_line(text, 500)) | st.sampled_from(HOSTILE).map(one_line)


@given(LINES)
def test_line_as_code_is_shown_as_it_is(line: str) -> None:
    kinds = [(token.type, token.content) for token in tokens(f"- so: {code(line)} (1)") if token.type == "code_inline"]
    assert kinds == ([("code_inline", line)] if line else [])


@given(LINES, LINES)
def test_no_text_leaves_its_cell(line: str, other: str) -> None:
    found = tokens("\n".join(table(["a", "b"], [[cell(line), cell(other)]])))
    assert [token.type for token in found].count("td_open") == 2
    assert {token.type for token in found} <= OURS
    assert [token for token in found if token.type == "text" and token.content.strip() not in ("", "a", "b")] == []
