"""What the turns of a role depend on besides their prompt, their conversation and the workspace.

Digests by part, so that a later run can tell what is different. A setting whose effect cannot be compared, such as an
MCP server, rules out that its turns are taken over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

from codex_multi_role.catalog import RoleSpec, RoleSpecCatalog
from codex_multi_role.checks.tools import find_tool, tool_code
from codex_multi_role.codex.codex_settings import LEAN, known_settings, needed_user_home, unread_user_home
from codex_multi_role.codex.permissions import WriteAccess, has_own_rules
from codex_multi_role.codex.project_instructions import ProjectInstructions
from codex_multi_role.extensions.replays.reuse.contents import ContentDigest, TooMuchToCompare
from codex_multi_role.extensions.replays.reuse.turn_inputs import RoleInputs, digest
from codex_multi_role.host.user_cache import expanded, home_folder
from codex_multi_role.lifecycle.definitions import Definitions, role_settings
from codex_multi_role.version import __version__

SKILLS = (Path(".agents/skills"), Path(".codex/skills"))
MACHINE_SKILLS = Path("/etc/codex/skills")
HOME_FILES = ("AGENTS.md", "AGENTS.override.md", "*.toml", "memories", "rules")
"""The user's own instructions, profiles, memories and rules, which Codex adds to those of the project."""
CONFIG = "config.toml"
WRITTEN_BY_CODEX = frozenset({"projects", "notice", "tui"})
"""Settings that Codex itself writes to ``config.toml``; none of them reaches a model."""
LONGEST_PATH = 1024
ENVIRONMENT_POLICY = "shell_environment_policy"
COMPARABLE_ENVIRONMENTS = ("core", "none")
NOT_COMPARABLE = ("mcp_servers", "hooks")
"""Codex's settings that add what nobody can compare: programs that run for the role."""


@dataclass(frozen=True)
class RoleReader:
    """Reads `RoleInputs`. ``catalog`` returns the current roles; ``protect``: what the flows keep from all of them."""

    definitions: Definitions
    catalog: Callable[[], RoleSpecCatalog]
    protect: tuple[str, ...]

    def read(self, role: RoleSpec, folder: Path) -> RoleInputs:
        """The inputs of ``role``, which works in ``folder``: the workspace or a copy of it."""
        given = (*role_settings(role), *self.definitions.options.answers.config)
        home = needed_user_home(given, os.environ) if self._model_digest is None else None
        settings = known_settings(given, home)
        model = self._model_digest or role.resolved_model(os.environ, self.definitions.options.answers.model)
        rights = [role.sandbox, role.approval_policy, role.auto_approve.model_dump(), role.behaviors.apply_files]
        found_skills = _found_skills(folder, home) if role.project_instructions else ()
        parts = {
            "role": role.name,
            "model": model or "",
            "reasoning effort": role.reasoning_effort or "",
            "Codex settings": self._settings(settings, folder, home),
            "rights": digest(rights),
            "protected files": digest(sorted({*self.protect, *role.protect})) if role.writes_itself else "",
            "reply schema": digest([role.output_schema, role.strict_output]),
            "steps": str(role.max_steps),
            "tools": digest([tool_inputs(name) for name in role.tools]),
            "skills": digest([*self._own_skills(role), *found_skills]),
            "versions": self._versions,
        }
        instructions = ""
        if role.project_instructions:
            unread = unread_user_home(given, os.environ) if self._model_digest is None else None
            found = ProjectInstructions.configured(self.definitions.workspace, settings, unread)
            instructions = found.developer_message(folder)
        scripted = self._model_digest is not None
        return RoleInputs(parts, instructions, _refusal(given), _outside(role, given, home), scripted)

    def _settings(self, settings: Mapping[str, Any], folder: Path, home: Path | None) -> str:
        """A digest of the settings, the files that they name, and those of the ``home``."""
        compared = {key: value for key, value in settings.items() if key not in WRITTEN_BY_CODEX}
        places = (self.definitions.workspace, folder, *([home] if home else []))
        return digest([compared, list(_home_files(home)), list(_files_in(compared, places))])

    @cached_property
    def _model_digest(self) -> str | None:
        """What takes the place of a model: a playbook or a recording, or None."""
        if self.definitions.playbook is not None:
            return digest(self.definitions.playbook.text)
        if self.definitions.stand_in is not None:
            return digest(self.definitions.stand_in.path.read_bytes().hex())
        return None

    @cached_property
    def _versions(self) -> str:
        """Ours and Codex's. The file stands for its version, because asking it takes a process."""
        codex = self.definitions.codex.resolve()
        known = codex.stat()
        return digest([__version__, str(codex), known.st_size, known.st_mtime_ns])

    def _own_skills(self, role: RoleSpec) -> Iterator[object]:
        skills = self.catalog().skills
        for name in role.skills:
            skill = skills[name]
            yield [name, skill.kept_name, {path: content.hex() for path, content in skill.files.items()}]


def tool_inputs(name: str) -> list[object]:
    """A tool as the model sees it, and the code that answers; equal to no other if that cannot be read."""
    tool, code = find_tool(name), tool_code(name)
    known = content_digest(code) if code else ""
    return [tool.name, tool.description, tool.input_schema, known or uuid4().hex]


def _home_files(home: Path | None) -> Iterator[object]:
    for pattern in HOME_FILES if home is not None else ():
        assert home is not None
        yield [[path.name, content_digest(path)] for path in sorted(home.glob(pattern)) if path.name != CONFIG]


def _files_in(settings: object, places: Sequence[Path]) -> Iterator[object]:
    """The contents of the files that settings name, such as those with instructions.

    ``places``: the folders that a relative path may start from.
    """
    if isinstance(settings, Mapping):
        for value in settings.values():
            yield from _files_in(value, places)
    elif isinstance(settings, list):
        for value in settings:
            yield from _files_in(value, places)
    elif isinstance(settings, str) and len(settings) < LONGEST_PATH:
        yield [settings, [_file_digest(place, settings) for place in places]]


def _file_digest(place: Path, name: str) -> str:
    """Of the file ``name``; empty if the text names none."""
    try:
        path = place / expanded(name)
        return content_digest(path) if path.is_file() else ""
    except (OSError, ValueError):
        return ""


def _found_skills(folder: Path, home: Path | None) -> Iterator[object]:
    """The skills that Codex itself finds: their names, paths, descriptions and policies decide on its prompt."""
    around = [place / skills for place in (folder, *folder.parents) for skills in SKILLS]
    users = [home_folder() / ".agents/skills", *([home / "skills"] if home else [])]
    for place in dict.fromkeys([*around, *users, MACHINE_SKILLS]):
        if found := content_digest(place):
            yield [str(place.relative_to(folder) if place.is_relative_to(folder) else place), found]


def _refusal(given: tuple[str, ...]) -> str:
    settings: dict[str, Any] = known_settings(given, None)
    found = next((name for name in NOT_COMPARABLE if settings.get(name)), "")
    return f"its role has {found}, whose answers may differ" if found else ""


def _outside(role: RoleSpec, given: tuple[str, ...], home: Path | None) -> str:
    """Why commands of the role may see or change more than the workspace, or empty."""
    access = WriteAccess.of(given, home)
    if role.sandbox == "danger-full-access" or has_own_rules(given):
        return "its role has no sandbox, or rules of its own"
    if role.auto_approve.commands or role.auto_approve.file_changes:
        return "its role may leave the sandbox"
    if _inherited_environment(given) not in COMPARABLE_ENVIRONMENTS:
        return "its commands may read any environment variable"
    if role.sandbox == "workspace-write" and (access.network_access or access.writable_roots):
        return "its commands may use the network or other folders"
    return ""


def _inherited_environment(given: tuple[str, ...]) -> object:
    """Which variables commands inherit."""
    policy = known_settings((*LEAN, *given), None)[ENVIRONMENT_POLICY]
    return policy.get("inherit") if isinstance(policy, Mapping) else None


def content_digest(path: Path) -> str:
    """Of a file, or of a folder with all that is in it; empty if it is missing.

    It is new each time, and so equal to no other, if it cannot be read or is too large.
    """
    found = ContentDigest()
    try:
        if path.is_dir():
            found.add_folder(path)
        elif path.is_file():
            found.add_file(path)
        else:
            return ""
    except (OSError, TooMuchToCompare):
        return uuid4().hex
    return found.hexdigest()
