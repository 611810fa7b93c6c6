"""The text of a pull request is evidence: nothing is invented, dressed up, or able to act on the git host."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from codex_multi_role.cli.run import run
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.results.pull_request.description import (
    MAX_BODY_BYTES,
    TITLE_CHARACTERS,
    Description,
    describe,
)
from codex_multi_role.extensions.results.run_history import history_of
from codex_multi_role.reading.shipped import packaged_roles
from codex_multi_role.run_folder import events as e
from codex_multi_role.run_options import OPTIONS, RunOptions
from tests.support.continuous_integration import PYTEST_REPORT, leave_tests
from tests.support.histories import History
from tests.support.long_run import by_default
from tests.support.recorded_runs import started
from tests.support.workflow_log import HOSTILE

pytestmark = pytest.mark.real

OURS = {
    *("heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline", "text", "code_inline", "fence"),
    *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close", "softbreak"),
}


def made(folder: Path, goal: str = "Convert roman numerals", **record: Any) -> History:
    """A run that reached its goal with a turn of each of two roles."""
    history = History(folder, {"a.txt": "one\n"}, {"a.txt": "one\n"})
    options = RunOptions(goal=goal, cycles=2, playbook="roman-numerals", run_tests=False).as_record()
    ended = {"status": "succeeded", "exit_code": 0, "reason": "writer said DONE", "totals": {"turns": 2}}
    shutil.copytree(packaged_roles(), history.run.catalog_path)
    team = {"roles_source": str(packaged_roles() / "catalog.yaml"), "catalog_file": "catalog.yaml"}
    team["playbook_file"] = "roman-numerals.yaml"
    history.run.write_record({**history.run.record(), **ended, **team, "options": options, **record})
    history.happened(e.RunStarted(**{**vars(started()), "goal": goal}))
    return history


def described(history: History) -> Description:
    return describe(history_of(history.run))


def add_tests(history: History, number: int, status: str, passed: int, failed: int) -> None:
    history.happened(e.TestsStarted(number, "", 0))
    history.happened(e.TestsEnded(number, status, passed, failed, 0, 0, 0.1))


def test_text_has_the_evidence_of_the_run(tmp_path: Path) -> None:
    figures = {"lowest mutation score": 87.5}
    history = made(tmp_path, result={"title": "Tests", "text": "all pass", "figures": figures})
    add_tests(history, 1, "passed", 3, 0)
    history.turn("writer", {"a.txt": "one\ntwo\n"}, summary="added a line")
    history.turn("tester", {"test_a.py": "def test(): pass\n"})
    history.happened(e.Warning("the disk is nearly full"))
    add_tests(history, 2, "failed", 1, 1)
    leave_tests(history.run, PYTEST_REPORT)
    text = described(history)
    assert text.title == "Convert roman numerals"
    assert text.body.startswith(
        "The run succeeded. `writer said DONE` (exit code 0: goal reached)\n"
        "No model was asked: the answers came from the playbook `roman-numerals`.\n\n"
        "- goal: `Convert roman numerals`\n"
    )
    for part in (
        "- turns: 2 in 0.0 s\n- tokens: 0 in, 0 out",
        "### `Tests`\n\n- `lowest mutation score`: `87.5`\n\n```text\nall pass\n```",
        "### Tests\n\n- before: passed: 3 passed\n- after: failed: 1 passed, 1 failed\n  - `tests.test_a::test_bad`",
        "### What the roles did\n\n- `writer`: 1 turn, tokens: 1 in, 1 out\n  - turn 1: `added a line`\n",
        "- `tester`: 1 turn, tokens: 1 in, 1 out\n",
        "\n a.txt     | 1 +\n test_a.py | 1 +\n 2 files changed, 2 insertions(+)\n create mode 100644 test_a.py\n```",
        "### Warnings\n\n- `the disk is nearly full`",
        "codex-multi-role run --goal 'Convert roman numerals' --cycles 2 --playbook roman-numerals --no-run-tests\n",
        f"git checkout {history.run.record()['repository']['commit']}\n",
        "codex-multi-role export first --branch NAME --repo .\n",
    ):
        assert part in text.body, f"{part}\n--- in ---\n{text.body}"
    assert str(tmp_path) not in text.body


def test_unknown_facts_are_named_as_unknown(tmp_path: Path) -> None:
    history = made(tmp_path)
    history.turn("writer", {"a.txt": "1\n"})
    assert "### Tests\n\nNo test run was recorded." in described(history).body
    add_tests(history, 1, "passed", 1, 0)
    leave_tests(history.run, "", status="passed", failed=0)
    body = described(history).body
    assert "- before: unknown: no tests ran before the first change\n- first result: passed: 1 passed\n" in body
    assert "- after: passed: 1 passed\n" in body
    history.turn("writer", {"a.txt": "2\n"})
    assert "- after: passed: 1 passed (before the last turn that changed files)" in described(history).body


def test_origin_of_answers_and_turns_is_named(tmp_path: Path) -> None:
    """A replay asks no model, and a fork has turns that another run made."""
    history = made(tmp_path, recording="version", forked_from={"run_id": "earlier", "step": "team", "visit": 1})
    history.turn("writer", {"a.txt": "1\n"})
    body = described(history).body
    assert "No model was asked: the answers came from the recording `version`.\n" in body
    assert "- fork of: `earlier`; the turns and files below include those before it\n" in body


def test_tests_after_changes_between_turns_are_not_before(tmp_path: Path) -> None:
    history = made(tmp_path)
    history.between({"a.txt": "changed\n"})
    add_tests(history, 1, "passed", 1, 0)
    history.turn("writer", {"a.txt": "1\n"})
    leave_tests(history.run, "", status="passed", failed=0)
    assert "- before: unknown" in described(history).body


@pytest.mark.parametrize(
    ("ended", "news"),
    [
        ({"status": "ended", "exit_code": 1, "reason": "out of cycles"}, "The run ended without reaching its goal."),
        ({"status": "running", "exit_code": None, "reason": ""}, "The run was killed."),
        ({"status": "parked", "exit_code": 4, "reason": "asks"}, "The run is parked."),
    ],
)
def test_run_without_its_goal_says_so_first(tmp_path: Path, ended: dict[str, Any], news: str) -> None:
    history = made(tmp_path, **ended)
    history.turn("writer", {"a.txt": "1\n"})
    text = described(history)
    assert text.title == "Goal not reached: Convert roman numerals"
    assert text.body.startswith(news)


def test_run_without_changes_is_refused(tmp_path: Path) -> None:
    history = made(tmp_path)
    history.turn("reader", {})
    history.ended()
    with pytest.raises(UsageError, match="run first changed no files"):
        described(history)


@pytest.mark.parametrize("text", by_default([HOSTILE[5], HOSTILE[7]], [*HOSTILE, "fixes #1 GH-2 !3 <b>x</b>"]))
def test_foreign_text_does_nothing_on_the_host(tmp_path: Path, text: str) -> None:
    history = made(tmp_path, goal=text, reason=text, result={"title": text, "text": text, "figures": {text: text}})
    history.turn("writer", {"a.txt": "1\n", "@everyone #1.txt": "2\n"}, summary=text)
    history.happened(e.Warning(text))
    told = described(history)
    parsed = [each for block in MarkdownIt("gfm-like").parse(told.body) for each in (block, *(block.children or []))]
    assert {token.type for token in parsed} <= OURS
    shown = " ".join(token.content for token in parsed if token.type == "text")
    for part in ("evil", "@", "#", "owned"):
        assert part not in shown


def test_no_line_is_a_quick_action_of_gitlab(tmp_path: Path) -> None:
    """Not even in a block of code that contains a fence."""
    text = "```\n/merge\n/assign @everyone\n```"
    history = made(tmp_path, goal=text, result={"title": "x", "text": text, "figures": {}})
    history.turn("writer", {"a.txt": "1\n"}, summary=text)
    body = described(history).body
    assert "\n /merge\n" in body
    assert not [line for line in body.splitlines() if line.startswith("/")]
    assert "# the command of the run cannot be shown here" in body


def test_title_refers_to_nothing(tmp_path: Path) -> None:
    history = made(tmp_path, goal="\n\x1b[2Jfixes #1 for @everyone,\n see https://evil.example")
    history.turn("writer", {"a.txt": "1\n"})
    assert described(history).title == "[2Jfixes # 1 for @ everyone,"


def test_command_of_the_run_has_its_options(tmp_path: Path) -> None:
    """All that differ, as `run` takes them."""
    given = {
        "goal": "it's\nthis",
        "inputs": {"a": "b c"},
        "config": ("x=1", "y=2"),
        "repair_attempts": 0,
        "max_turns": 3,
    }
    history = made(tmp_path, options=RunOptions(**given, test_sandbox=False).as_record())  # type: ignore[arg-type]
    history.turn("writer", {"a.txt": "1\n"})
    body = described(history).body
    [command] = [part for part in body.split("codex-multi-role ") if part.startswith("run ")]
    parsed = run.make_context("run", shlex.split(command)[1:], resilient_parsing=True).params
    assert {name: parsed[name] for name in ("goal", "config", "repair_attempts", "max_turns", "test_sandbox")} == {
        **{name: given[name] for name in ("goal", "config", "repair_attempts", "max_turns")},
        "test_sandbox": False,
    }
    assert {each.flag for each in OPTIONS.values()} <= {flag for each in run.params for flag in each.opts}


def test_long_texts_are_cut_and_say_so(tmp_path: Path) -> None:
    long = "𐍈" * 3000
    text = "\n".join([long] * 60)
    history = made(tmp_path, goal=long, reason=long, result={"title": long, "text": text, "figures": {}})
    history.turn("writer", {"a.txt": "1\n"}, summary=long)
    ended = history.events[-1]
    for _ in range(11):
        history.happened(ended)
    for number in range(60):
        history.happened(e.Warning(f"{number} {long}"))
    told = described(history)
    assert len(told.title) <= TITLE_CHARACTERS
    assert len(told.body.encode()) <= MAX_BODY_BYTES
    assert "Left out, because a body has at most 65,536 characters: result, warnings." in told.body
    assert "  - and 2 more\n" in told.body
    assert "its options are in run.json" in told.body
