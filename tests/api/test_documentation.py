"""Every example of the page about the Python API runs as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import codex_multi_role

PAGE = Path(__file__).parents[2] / "docs/how-to/python-api.md"
EXAMPLES = dict(re.findall(r"^## (.+)\n(?:(?!## ).*\n)*?```python\n((?:.*\n)*?)```", PAGE.read_text(), re.MULTILINE))
MAX_LINES = 12
PRINTED = {
    "Run a team": "succeeded 0",
    "Follow a run": "planner (",
    "Start a run and do something else": "integrator",
    "Use it with asyncio": "cycles_used_up",
    "Look at earlier runs": "integrator 1 completed",
    "Test your program without a model": "done 2 team",
    "Use the result": " 2 files changed, 48 insertions(+)",
    "Resume a run": "cycles_used_up\ndone",
    "Write a team in Python": "'status': 'DONE'",
    "Answer a question": "success",
    "Handle errors": 'did you mean "cycles"',
}


def test_every_section_has_a_short_example() -> None:
    assert EXAMPLES.keys() == PRINTED.keys()
    assert all(len(code.strip().splitlines()) <= MAX_LINES for code in EXAMPLES.values())


def test_public_names_are_listed() -> None:
    """They are loaded on first use, but completion in a shell finds them before."""
    assert set(codex_multi_role.__all__) <= set(dir(codex_multi_role))


@pytest.mark.extensions
@pytest.mark.parametrize("name", ["PlanSolved", "PlanSolver", "create_plan_solver", "rerun"])
def test_moved_name_tells_where_it_is_now(name: str) -> None:
    with pytest.raises(ImportError, match=f"{name} has moved: (.+)") as refused:
        exec(f"from codex_multi_role import {name}")
    exec(str(refused.value).partition(": ")[2])
    assert name not in dir(codex_multi_role)


@pytest.mark.long
def test_examples_print_what_they_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No short test runs the examples of the page as a whole."""
    monkeypatch.chdir(tmp_path)
    for title, code in EXAMPLES.items():
        exec(compile(code, title, "exec"), {"__name__": "example"})
        assert PRINTED[title] in capsys.readouterr().out, title
