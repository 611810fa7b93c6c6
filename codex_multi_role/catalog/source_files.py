"""The files that make up a catalog, and the roles and flows bundled with the package."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.catalog.skills import SKILLS_FOLDER, Skill, find_skill, known_skills
from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.nearest import no_such
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.yaml_source import parse_text, read_text

LOCAL_ROLES = Path("roles")
"""The folder of a project's own roles, below the current folder."""
_PACKAGE = Path(__file__).resolve().parent.parent


def packaged_roles() -> Path:
    """The shipped catalog's folder: ``codex_multi_role/_roles`` in a wheel, the checkout's ``roles/`` otherwise."""
    in_wheel = _PACKAGE / "_roles"
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent / "roles"


def settings_file(name: str, folder: Path) -> Path | None:
    """The file ``name`` in ``folder``, the catalog's, otherwise the packaged one; None if neither exists.

    With the packaged catalog, a project's own file takes precedence and needs no catalog beside it.
    """
    places = [folder, packaged_roles()]
    if folder == packaged_roles():
        places.insert(0, LOCAL_ROLES)
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
