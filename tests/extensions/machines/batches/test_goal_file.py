"""A goal file: what it accepts, and every problem of it at once."""

from __future__ import annotations

import json
from io import BytesIO
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.errors import DefinitionError, ExitCode, RunStatus, UsageError
from codex_multi_role.extensions.machines.batches import goal_file
from codex_multi_role.extensions.machines.batches.goal_file import Goal, read_goals
from codex_multi_role.extensions.machines.batches.goal_results import (
    NOT_STARTED,
    WORST_FIRST,
    GoalResult,
    ResultFile,
    exit_code_of,
)
from tests.support.catalogs import raised
from tests.support.teams import read_lines

IDS = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
LINES = st.fixed_dictionaries(
    {"id": IDS, "goal": TEXTS},
    optional={
        "priority": st.integers(-9, 9),
        "cycles": st.integers(1, 9),
        "inputs": st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS, max_size=3),
        "max_seconds": st.floats(0.1, 1e6),
        "labels": st.lists(TEXTS.filter(bool), max_size=2),
    },
)
BETWEEN = st.sampled_from([b"", b"\n", b"  \n", b"# a comment {\n"])


def read(content: bytes) -> list[Goal]:
    return read_goals(BytesIO(content), "goals.jsonl")


def problems(*lines: str) -> list[str]:
    """The messages about a file with these lines."""
    return [str(problem) for problem in raised(DefinitionError, read, "\n".join(lines).encode()).problems]


@given(st.lists(st.tuples(BETWEEN, LINES), min_size=1, max_size=5, unique_by=lambda each: each[1]["id"]))
def test_valid_lines_are_read_as_written(lines: list[tuple[bytes, dict[str, Any]]]) -> None:
    content = b"".join(between + json.dumps(line).encode() + b"\n" for between, line in lines)
    found = read(content)
    assert [goal.id for goal in found] == [line["id"] for _, line in lines]
    for goal, (_, line) in zip(found, lines, strict=True):
        assert json.loads(content.splitlines()[goal.number - 1]) == line
        assert {name: goal.line.model_dump(mode="json")[name] for name in line} == line


@given(st.lists(st.binary(max_size=60) | st.text(max_size=60).map(str.encode), max_size=5))
def test_any_bytes_are_goals_or_problems_with_lines(lines: list[bytes]) -> None:
    assert all(each.startswith("goals.jsonl:") for each in outcome(b"\n".join(lines)))


def outcome(content: bytes) -> list[str]:
    """The places of the goals, or the messages about the problems, of this content."""
    try:
        return [str(goal.problem("fine")) for goal in read(content)]
    except DefinitionError as error:
        return [str(each) for each in error.problems]
    except UsageError as error:
        return [str(error)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (r'{"goal": "a\u0000b"}', "goal: contains a NUL character"),
        (r'{"goal": "a\ud800b"}', "goal: contains half of a surrogate pair"),
        (r'{"workspace": "a\u0000b"}', "workspace: contains a NUL character"),
        (r'{"config": ["a=1", "b=\u0000"]}', "config[1]: contains a NUL character"),
        (r'{"inputs": {"files": [{"name": "\udfff"}]}}', "inputs.files[0].name: contains half of a surrogate pair"),
        (r'{"inputs": {"\ud800": 1}}', "a key: contains half of a surrogate pair"),
        ('{"goal": "x", "priority": 99999999999999999999}', "priority: must be at most 9,007,199,254,740,992"),
        ('{"goal": "x", "priority": 9999999999}', "priority: must be at most 2147483647, not 9999999999"),
        ('{"goal": "x", "max_turns": 1' + "0" * 400 + "}", "max_turns: must be at most 9,007,199,254,740,992"),
        ('{"goal": "x", "max_seconds": 1e400}', "max_seconds: must be at most 9,007,199,254,740,992"),
    ],
)
def test_value_that_cannot_be_passed_on_is_found_before_a_start(line: str, problem: str) -> None:
    assert problems('{"goal": "first"}', line) == [f"goals.jsonl:2: {problem}"]


def test_home_of_an_unknown_user_is_not_found(tmp_path: Path) -> None:
    (goal,) = read(b'{"workspace": "~nobodyatall/x", "playbook": "~nobodyatall/y.yaml"}')
    options = goal.line.options(tmp_path)
    assert options["workspace"] == tmp_path / "~nobodyatall/x"
    assert options["playbook"] == str(tmp_path / "~nobodyatall/y.yaml")


def test_every_problem_is_reported_in_line_order() -> None:
    found = problems(
        '{"gaol": "x", "max_turns": "3"}',
        "not json",
        "[1]",
        '{"id": "a", "workspace": "x", "repository": "y"}',
        '{"goal": "x", "goal": "y"}',
        '{"config": ["model"], "priority": true}',
        '{"repository": "https://me:word@example.org/shop.git"}',
    )
    assert [each.split(":")[1] for each in found] == ["1", "1", "2", "3", "4", "5", "6", "6", "7"]
    assert 'goals.jsonl:1: unknown key "gaol"; did you mean "goal"?' in found
    assert 'goals.jsonl:1: max_turns: must be a whole number, not "3"' in found
    assert "goals.jsonl:4: workspace and repository exclude each other" in found
    assert 'goals.jsonl:5: not valid JSON: the key "goal" is given twice' in found


def test_id_is_unique_also_as_line_number() -> None:
    assert problems('{"id": "2", "goal": "x"}', '{"goal": "y"}') == [
        'goals.jsonl:2: the id "2" is already that of line 1'
    ]


def test_more_problems_than_shown_are_counted() -> None:
    error = raised(DefinitionError, read, b"[]\n" * (goal_file.MAX_PROBLEMS + 5))
    assert len(error.problems) == goal_file.MAX_PROBLEMS
    assert error.problems[-1].hint.endswith("5 more problems are not shown.")


@pytest.mark.parametrize("limit", ["MAX_LINE_BYTES", "MAX_FILE_BYTES", "MAX_GOALS"])
def test_size_is_bounded(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line = b'{"goal": "x"}\n'
    monkeypatch.setattr(goal_file, limit, 1 if limit == "MAX_GOALS" else 2 * len(line))
    content = line * 3 if limit != "MAX_LINE_BYTES" else line.replace(b"x", b"x" * 100)
    with pytest.raises(UsageError, match=r"more than|longer than"):
        read(content)


def result(name: str, code: int | None = None, status: str = RunStatus.ENDED) -> GoalResult:
    return GoalResult(name, 1, f"night-{name}", "", status, exit_code=code)


def test_result_file_has_a_line_per_goal_in_file_order(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "results.jsonl", [result("b"), result("a")])
    file.put(result("a", 0))
    file.put(result("b", 3))
    file.write()
    assert [(line["id"], line["exit_code"]) for line in read_lines(file.path)] == [("b", 3), ("a", 0)]


def test_exit_code_is_the_worst_in_any_order() -> None:
    assert exit_code_of([]) == exit_code_of([result("a", 0)]) == ExitCode.GOAL_REACHED
    for codes in permutations((0, 1, 2, 3, 4, 5), 3):
        expected = next((code for code in WORST_FIRST if code in codes), 0)
        assert exit_code_of(result(str(code), code) for code in codes) == expected
    assert exit_code_of([result("a", 3)], interrupted=True) == ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (result("a", status=RunStatus.KILLED), ExitCode.FAILED),
        (result("a", 5, NOT_STARTED), ExitCode.BUDGET_USED_UP),
        (result("a", status=NOT_STARTED), ExitCode.GOAL_REACHED),
    ],
)
def test_killed_and_unstarted_goals_count(found: GoalResult, code: ExitCode) -> None:
    """A goal that was not started because others failed adds nothing to their exit code."""
    assert exit_code_of([found]) == code
