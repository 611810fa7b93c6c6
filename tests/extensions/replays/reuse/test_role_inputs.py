"""What the turns of a role depend on outside of their prompts: which edit of which file counts, and as what."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.extensions.replays.reuse.role_inputs import RoleReader, tool_inputs
from codex_multi_role.extensions.replays.reuse.turn_inputs import RoleInputs
from codex_multi_role.lifecycle.definitions import load_definitions
from tests.support.catalogs import SKILL
from tests.support.plugins import distribution
from tests.support.teams import Record, TeamFolder

CONFIG = 'model_provider = "any"\n[model_providers.any]\nname = "any"\nbase_url = "http://127.0.0.1:9/v1"\n'
LINK = "workspace/.agents/skills/linked"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the folders ``workspace``, ``user`` (its home) and ``codex`` (Codex's home)."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    write(tmp_path / "codex/config.toml", CONFIG)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def inputs(place: Path, **keys: object) -> RoleInputs:
    """The inputs of a role with ``keys``, as they are now."""
    role: Record = {"codex_config": {"model_provider": "any", "model_verbosity": "low"}} | keys
    definitions = load_definitions(TeamFolder(place, {"one": role}, {}).options(playbook=None))
    return RoleReader(definitions, lambda: definitions.catalog, ()).read(definitions.roles[0], definitions.workspace)


def changed(before: RoleInputs, after: RoleInputs) -> list[str]:
    return [name for name, part in before.parts.items() if part != after.parts[name]]


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("workspace/.agents/skills/foo/SKILL.md", "skills"),
        ("workspace/.agents/skills/foo/agents/openai.yaml", "skills"),
        (".codex/skills/foo/SKILL.md", "skills"),
        ("shared/SKILL.md", "skills"),
        ("user/.agents/skills/foo/SKILL.md", "skills"),
        ("codex/skills/foo/SKILL.md", "skills"),
        ("codex/memories/of/a/project.md", "Codex settings"),
        ("codex/rules/default.rules", "Codex settings"),
        ("codex/fast.config.toml", "Codex settings"),
        ("codex/AGENTS.md", "Codex settings"),
        ("codex/sessions/rollout.jsonl", ""),
        ("workspace/code.py", ""),
    ],
)
def test_edited_file_changes_its_part(place: Path, file: str, part: str) -> None:
    (place / "shared").mkdir()
    (place / LINK).parent.mkdir(parents=True)
    (place / LINK).symlink_to(place / "shared")
    write(place / file, "one")
    before = inputs(place)
    assert changed(before, inputs(place)) == []
    write(place / file, "two")
    assert changed(before, inputs(place)) == ([part] if part else [])


@pytest.mark.parametrize("file", ["workspace/inst.md", "codex/inst.md", "elsewhere.md", "user/inst.md"])
@pytest.mark.parametrize("is_named", [True, False])
def test_file_that_a_setting_names_counts(place: Path, file: str, *, is_named: bool) -> None:
    """Relative to the folders that Codex may start from, absolute, or below the home."""
    names = {"elsewhere.md": str(place / "elsewhere.md"), "user/inst.md": "~/inst.md"}
    named = names.get(file, "inst.md") if is_named else "other.md"
    config = {"model_provider": "any", "model_instructions_file": named}
    write(place / file, "one")
    before = inputs(place, codex_config=config)
    write(place / file, "two")
    assert changed(before, inputs(place, codex_config=config)) == (["Codex settings"] if is_named else [])


@pytest.mark.parametrize("text", ["src", "", "a\0b", "~nobody/inst.md", "long " * 200, "missing.md", "\n/"])
def test_setting_that_names_no_file_is_stable(place: Path, text: str) -> None:
    """A folder does not count either: only a turn that looks at the workspace depends on it."""
    config = {"model_provider": "any", "developer_instructions": text}
    before = inputs(place, codex_config=config)
    write(place / "workspace/src/code.py", "new")
    assert changed(before, inputs(place, codex_config=config)) == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('[projects."/somewhere/else"]\ntrust_level = "trusted"\n', []),
        ("[notice]\nhide_full_access_warning = true\n[tui]\nanimations = false\n# new\n", []),
        ("[model_providers.any.query_params]\nversion = '2'\n", ["Codex settings"]),
    ],
)
def test_config_of_the_user_counts_by_its_settings(place: Path, more: str, expected: list[str]) -> None:
    """Except for those that Codex itself writes."""
    before = inputs(place)
    write(place / "codex/config.toml", CONFIG + more)
    assert changed(before, inputs(place)) == expected


def test_folder_of_an_own_skill_counts(place: Path) -> None:
    """Its path is in the prompt."""
    write(place / "roles/skills/foo/SKILL.md", SKILL.format(name="foo"))
    before = inputs(place, skills=["foo"])
    (place / "roles/skills/foo").rename(place / "roles/skills/bar")
    assert changed(before, inputs(place, skills=["foo"])) == ["skills"]


@pytest.mark.parametrize(
    ("config", "is_comparable"),
    [
        ({}, True),
        ({"shell_environment_policy.inherit": "none"}, True),
        ({"shell_environment_policy.inherit": "all"}, False),
        ({"shell_environment_policy": {"inherit": "all"}}, False),
        ({"shell_environment_policy": {"inherit": "core"}}, True),
        ({"shell_environment_policy": {"set": {"A": "1"}}}, True),
        ({"shell_environment_policy": "core"}, False),
    ],
)
def test_whole_environment_is_not_comparable(place: Path, config: Record, *, is_comparable: bool) -> None:
    outside = inputs(place, codex_config={"model_provider": "any", **config}).outside
    assert outside == ("" if is_comparable else "its commands may read any environment variable")


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
