"""One line of a goal file, as people write it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Self, cast
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, StrictBool, StrictStr, create_model, model_validator

from codex_multi_role.catalog.definition import NUMBER, WHOLE_NUMBER, Definition, matching, pattern_in_schema
from codex_multi_role.host.user_cache import expanded
from codex_multi_role.option import Option, Use, as_typed
from codex_multi_role.run_options import is_playbook_file, options_with

GOAL_ID = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,49}"
REF = r"[^-\s]\S*"
ASSIGNMENT = r"[^=\s][^=]*=[^\x00]*"
Text = Annotated[str, Field(strict=True, min_length=1)]
_OF_ID = "must be at most 50 letters, digits, '_', '-' and '.', and not begin with '-' or '.'"
_OF_REF = "must be the name of a branch or tag, or a commit"
_OF_ASSIGNMENT = 'must be of the form key=value, such as "model_provider=local"'
Strict = Annotated[str, Field(strict=True)]
GoalId = Annotated[Strict, matching(GOAL_ID, _OF_ID), pattern_in_schema(GOAL_ID)]
Ref = Annotated[Strict, matching(REF, _OF_REF), pattern_in_schema(REF)]
Assignment = Annotated[Strict, matching(ASSIGNMENT, _OF_ASSIGNMENT), pattern_in_schema(ASSIGNMENT)]
MAX_REPOSITORIES = 1000
NOTES = {
    "goal": " A flow or a playbook may have its own.",
    "worktree": " Default: yes, if several goals have this workspace and it is in a git repository.",
}
"""Added to the help of an option in a goal line."""


class GoalKeys(Definition):
    """The keys of a goal line that are not options of a run; `GoalLine` has both."""

    id: GoalId | None = Field(
        default=None,
        description="A name that no other line has. The run is called `<batch>-<id>`. Default: the number of the line.",
    )
    priority: Annotated[int, Field(strict=True, ge=-(2**31), le=2**31 - 1), WHOLE_NUMBER] = Field(
        default=0, description="Goals with a higher number start first."
    )
    labels: tuple[Text, ...] = Field(
        default=(), description="What a machine needs to run the goal. Ignored if the goals run on this machine."
    )
    repository: Text | None = Field(
        default=None, description="The address or path of a git repository. The goal works in a clone of its own."
    )
    repositories: tuple[Text, ...] = Field(
        default=(),
        max_length=MAX_REPOSITORIES,
        description="Several repositories: each gets a run of its own with this goal, called "
        "`<batch>-<id>.<repository>`.",
    )
    ref: Ref | None = Field(
        default=None, description="The branch, tag or commit of the repository. Default: its default branch."
    )

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        given = [name for name in ("workspace", "repository", "repositories") if getattr(self, name)]
        worktree, branch = self.given("worktree"), self.given("branch")
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other")
        if self.ref and not self.clones:
            raise ValueError("ref needs repository or repositories")
        if self.clones and (worktree or branch):
            raise ValueError("worktree and branch belong to a workspace; a repository is cloned for each goal")
        if branch and worktree is False:
            raise ValueError("branch and worktree: false exclude each other")
        if any(urlsplit(address).password for address in self.clones):
            raise ValueError("the address contains a password, which others could see; use a credential helper of git")
        if len(set(self.repositories)) != len(self.repositories):
            raise ValueError("repositories has the same one twice")
        return self

    @property
    def clones(self) -> tuple[str, ...]:
        """The repositories to clone, one for each run of this goal; empty if it has a workspace."""
        return (self.repository,) if self.repository else self.repositories

    def given(self, option: str) -> Any:  # noqa: ANN401 - of the type of that option
        """The value of an option of the run; None if the line does not give it."""
        return getattr(self, option)

    def options(self, folder: Path) -> dict[str, Any]:
        """The `RunOptions` fields that the line gives; its paths are relative to ``folder``."""
        given = {name: self.given(name) for name in self.model_fields_set - GoalKeys.model_fields.keys()}
        given |= {name: folder / expanded(given[name]) for name in ("roles", "workspace") if name in given}
        if "playbook" in given:
            given["playbook"] = playbook_at(folder, given["playbook"])
        if "inputs" in given:
            given["inputs"] = {name: as_typed(value) for name, value in given["inputs"].items()}
        return given


def _key(option: Option) -> tuple[Any, Any]:
    """Type and field of the key for an option: strict, because JSON has types of its own."""
    return _type(option) | None, Field(default=None, description=option.help + NOTES.get(option.name, ""))


def _type(option: Option) -> Any:  # noqa: ANN401 - a type, or a form of one
    if option.range is not None:
        least, most = option.range.minimum, option.range.maximum
        bounds: Any = {"gt" if option.range.above else "ge": least, **({} if most == math.inf else {"le": most})}
        marks = (Field(strict=True, allow_inf_nan=False, **bounds), WHOLE_NUMBER if option.kind is int else NUMBER)
        return Annotated[option.kind, *marks]
    if option.kind is tuple:
        return tuple[Assignment, ...] if option.metavar == "KEY=VALUE" else tuple[Text, ...]
    text = StrictStr if option.default == "" else Text
    return {bool: StrictBool, dict: dict[str, JsonValue]}.get(option.kind, text)


GoalLine = create_model(
    "GoalLine",
    __base__=GoalKeys,
    __doc__="""A goal of a batch. What a line leaves out comes from the options of `batch`.

    Paths are relative to the folder of the goal file. At most one of ``workspace``, ``repository`` and
    ``repositories`` is given.
    """,
    **cast("Any", {name: _key(each) for name, each in options_with(Use.OWN).items()}),
)


def playbook_at(folder: Path, playbook: str) -> str:
    """The name of a playbook as it is, or its path relative to ``folder``."""
    return str((folder / expanded(playbook)).absolute()) if is_playbook_file(playbook) else playbook
