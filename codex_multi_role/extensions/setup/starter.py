"""A starter: a small catalog for one purpose, which ``init`` copies into a project together with the files it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from codex_multi_role.catalog.definition import Definition
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.shipped import ABOUT_STARTER, definition_folders
from codex_multi_role.reading.yaml_source import load_yaml, validate

CATALOG = "catalog.yaml"


class Starter(Definition):
    """What a starter says about itself."""

    purpose: str = Field(min_length=1)
    flow: str = Field(description="The default flow of the team.")
    settings_of_checks: tuple[str, ...] = Field(default=(), description="Files beside the catalog that checks read.")

    @classmethod
    def load(cls, folder: Path) -> Starter:
        """Raises `DefinitionError`."""
        file = folder / ABOUT_STARTER
        return validate(cls, load_yaml(file), file)

    def files(self, folder: Path) -> Iterator[Path]:
        """The catalog in ``folder``, then the role files and settings it needs. Raises `DefinitionError`."""
        yield folder / CATALOG
        roles = load_yaml(folder / CATALOG)["roles"]  # type: ignore[index]  # it is checked when it is used
        for name in (*(role["role_file"] for role in roles if "role_file" in role), *self.settings_of_checks):
            found = (place / name for place in definition_folders(folder.parents[1]) if (place / name).is_file())
            if (file := next(found, None)) is None:
                raise Place(folder / CATALOG).error(f"no definitions have the file {name}")
            yield file
