"""The files that make up a catalog, and settings beside it."""

from __future__ import annotations

import re
from pathlib import Path

from codex_multi_role.catalog.skills import SKILLS_FOLDER, Skill, find_skill, known_skills
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.reading.nearest import no_such
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.shipped import definition_folders, packaged_roles
from codex_multi_role.reading.yaml_source import parse_text, read_text

LOCAL_ROLES = Path("roles")
"""The folder of a project's own roles, below the current folder."""


def settings_file(name: str, folder: Path) -> Path | None:
    """The file ``name`` in ``folder``, the catalog's, otherwise a shipped one; None if there is neither.

    With the packaged catalog, a project's own file takes precedence and needs no catalog beside it. Raises `UsageError`
    for a name that roles could write in a folder without a catalog.
    """
    if not re.fullmatch(r"[^/]+\.ya?ml", name):
        raise UsageError(f"{name} cannot be a settings file beside a catalog", "Name it NAME.yaml, without a folder.")
    places = definition_folders(LOCAL_ROLES if folder == packaged_roles() else folder)
    return next((place / name for place in places if (place / name).is_file()), None)


class SourceFiles:
    """Reads the files that a catalog refers to, relative to its folder, and records them in ``paths``.

    ``skills``: the skills among them, by Codex's names.
    """

    def __init__(self, catalog: Path) -> None:
        self.catalog = catalog
        self.paths: list[Path] = [catalog]
        self.skills: dict[str, Skill] = {}

    def path(self, reference: str) -> Path:
        return self.catalog.parent / reference

    def text(self, reference: str, place: Place) -> str:
        """The text of a file named at ``place``. Raises ``DefinitionError`` that names both."""
        path = self.path(reference)
        try:
            text = read_text(path)
        except DefinitionError as error:
            raise place.error(str(error), error.hint) from error
        if path not in self.paths:
            self.paths.append(path)
        return text

    def data(self, reference: str, place: Place) -> object:
        """The content of a JSON (by its suffix) or YAML file; otherwise like ``text``."""
        return parse_text(self.text(reference, place), self.path(reference))

    def skill(self, reference: str) -> str:
        """Codex's name for the skill ``reference``. Raises ``DefinitionError``."""
        name = reference.removeprefix("$")
        skill = find_skill(name, self.catalog)
        if skill is None:
            message, hint = no_such("skill", name, known_skills(self.catalog))
            where = self.catalog.parent / SKILLS_FOLDER
            raise DefinitionError(message, f"{hint} Add {name}/SKILL.md or {name}.skill to {where}.")
        same = self.skills.setdefault(skill.name, skill)
        if same.source != skill.source:
            raise DefinitionError(f'{same.source} and {skill.source} are both called "{skill.name}"')
        self.paths += [path for path in skill.paths if path not in self.paths]
        return skill.name
