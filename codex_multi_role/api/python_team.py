"""A team written in Python: the same keys as in YAML, checked by the same models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, Unpack

import yaml
from pydantic import (
    AliasGenerator,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)

from codex_multi_role.catalog.catalog import CatalogFile
from codex_multi_role.catalog.definition import Definition, Keys, Nested, optional, yaml_key
from codex_multi_role.catalog.flow_spec import FlowFile
from codex_multi_role.catalog.role_entries import RoleEntry
from codex_multi_role.catalog.step_spec import (
    STEP_KINDS,
    End,
    ForEach,
    Isolate,
    Retry,
    Review,
    RouteSpec,
    StepLimits,
    StepSpec,
)
from codex_multi_role.errors import DefinitionError
from codex_multi_role.host.atomic import make_folder, write_text
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.validation_words import problems_of
from codex_multi_role.run_options import RunOptions

__all__ = ["Flow", "Role", "Route", "Step", "Team"]

FLOW = "team"
"""The name of a team's flow that has none."""


class _Call(Definition):
    """A definition that is written as a call. Its mistakes are one `DefinitionError`, which names the arguments."""

    @model_validator(mode="wrap")
    @classmethod
    def _check_arguments(cls, data: object, build: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return build(data)
        except ValidationError as error:
            place = Place(Path(f"{cls.__name__}()"))
            raise DefinitionError.together(problems_of(cls, error, data, place)) from None


class Route(_Call, RouteSpec):
    __doc__ = RouteSpec.__doc__


class Role(_Call, RoleEntry):
    __doc__ = RoleEntry.__doc__


class StepKeys(TypedDict, total=False):
    """The keys of steps of all kinds."""

    ask: str | Sequence[str]
    check: str
    review: str | Keys | Review
    call: str
    id: str
    title: str
    with_: Keys
    roles: Sequence[str]
    prompt: str
    prompt_replaces: bool
    reply: Keys
    for_each: str | Sequence[object] | Keys | ForEach
    isolate: Literal["worktree"] | Keys | Isolate
    limits: Keys | StepLimits
    retry: Keys | Retry
    allow: Sequence[End]
    once: bool
    set: Keys
    next: Sequence[Keys | RouteSpec]
    state: str


_CONFIG = {"model_config": ConfigDict(alias_generator=AliasGenerator(serialization_alias=yaml_key))}
_KINDS: dict[str, Any] = {
    kind: type("Step", (_Call, each), {**_CONFIG, "__module__": __name__}) for kind, each in STEP_KINDS.items()
}


def Step(**keys: Unpack[StepKeys]) -> StepSpec:  # noqa: N802 - a definition, as the classes beside it
    """Return a step of a flow. The key ``with``, which Python reserves, is ``with_`` here."""
    kind = next((kind for kind in _KINDS if keys.get(kind) is not None), "check")
    step: StepSpec = _KINDS[kind](**keys)
    return step


class Flow(_Call, FlowFile):
    __doc__ = FlowFile.__doc__


class Team(_Call, CatalogFile):
    """The keys of a catalog file, and the ``flow`` that asks its roles; by default ``cycles``, which asks all of them.

    Files that a role names are relative to the current folder. A wrong argument raises `DefinitionError`.
    """

    version: Literal[1] = 1
    flow: Nested[FlowFile | None] = optional(None, "The flow.")

    @property
    def flow_name(self) -> str:
        return RunOptions.flow if self.flow is None else self.flow.name or FLOW

    def write(self, folder: Path) -> None:
        """Write the team to ``folder`` as YAML, for ``--roles``. Raises `StorageError`."""
        catalog = {"version": self.version, **_written(self, exclude={"flow"})}
        for role in catalog["roles"]:
            _refer_from(folder, role)
        _write_yaml(make_folder(folder) / "catalog.yaml", catalog)
        if self.flow is not None:
            _write_yaml(make_folder(folder / "flows") / f"{self.flow_name}.yaml", _written(self.flow))


def _written(model: CatalogFile | FlowFile, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - pydantic's own
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True, **options)


def _write_yaml(path: Path, data: object) -> None:
    write_text(path, yaml.safe_dump(data, sort_keys=False, allow_unicode=True))


def _refer_from(folder: Path, role: dict[str, Any]) -> None:
    """Make the paths in ``role`` relative to ``folder``, so that the run's own copy finds its copies of the files."""
    for key in ("role_file", "prompt_file", "output_schema"):
        if isinstance(role.get(key), str):
            role[key] = os.path.relpath(Path(role[key]).resolve(), folder.resolve())
