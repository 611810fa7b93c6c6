"""The code of a tool counts among what turns of its roles depend on."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.extensions.replays.reuse.role_inputs import tool_inputs
from tests.support.plugins import distribution

CALLABLES = ("_call", "partial(_call)", "Caller()")
SOURCE = """
from functools import partial
from codex_multi_role.checks.tools import Tool, ToolResult

def _call(context, arguments):
    return ToolResult("")

class Caller:
    def __call__(self, context, arguments):
        return ToolResult("")

look = Tool("look", "Look.", {"type": "object"}, CALL, pure=True)
"""


@pytest.mark.parametrize("callable_", CALLABLES)
def test_any_module_of_a_tools_package_counts(callable_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever kind of callable the tool has."""
    package = f"looking_{CALLABLES.index(callable_)}"
    distribution(tmp_path, package, "codex_multi_role.tools", [f"look = {package}.tools.looking:look"])
    (tmp_path / package / "tools").mkdir(parents=True)
    (tmp_path / package / "__init__.py").touch()
    (tmp_path / package / "data.py").write_text("ONE = 1\n")
    (tmp_path / package / "tools/looking.py").write_text(SOURCE.replace("CALL", callable_))
    monkeypatch.syspath_prepend(tmp_path)
    before = tool_inputs("look")
    assert tool_inputs("look") == before
    (tmp_path / package / "data.py").write_text("ONE = 2\n")
    assert tool_inputs("look") != before


def test_own_tool_is_equal_to_itself() -> None:
    assert tool_inputs("ask_user") == tool_inputs("ask_user") != tool_inputs("terminate")
