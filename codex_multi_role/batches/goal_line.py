"""One line of a goal file, as people write it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, JsonValue, StrictBool, StrictStr, model_validator

from codex_multi_role.catalog.definition import NUMBER, WHOLE_NUMBER, Definition, pattern_in_schema
from codex_multi_role.host.user_cache import expanded
from codex_multi_role.run_options import MOST_REPAIRS


def _check_id(text: str) -> str:
    return _matching(
        GOAL_ID, text, "must be at most 50 letters, digits, '_', '-' and '.', and not begin with '-' or '.'"
    )


def _check_ref(text: str) -> str:
    return _matching(REF, text, "must be the name of a branch or tag, or a commit")


def _check_assignment(text: str) -> str:
    return _matching(ASSIGNMENT, text, 'must be of the form key=value, such as "model_provider=local"')


def _matching(pattern: str, text: str, problem: str) -> str:
    if not re.match(pattern, text):
        raise ValueError(problem)
    return text


GOAL_ID = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,49}$"
REF = r"^[^-\s]\S*$"
ASSIGNMENT = r"^[^=\s][^=]*="
Text = Annotated[str, Field(strict=True, min_length=1)]
GoalId = Annotated[str, Field(strict=True), AfterValidator(_check_id), pattern_in_schema(GOAL_ID[1:-1])]
Ref = Annotated[str, Field(strict=True), AfterValidator(_check_ref), pattern_in_schema(REF[1:-1])]
Assignment = Annotated[
    str, Field(strict=True), AfterValidator(_check_assignment), pattern_in_schema(ASSIGNMENT[1:] + "[^\\x00]*")
]
Count = Annotated[int, Field(strict=True, ge=1), WHOLE_NUMBER]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False), NUMBER]
MAX_REPOSITORIES = 1000
NOT_OPTIONS = frozenset({"id", "priority", "labels", "repository", "repositories", "ref"})
"""The keys that are not options of a run."""


class GoalLine(Definition):
    """A goal of a batch. What a line leaves out comes from the options of `batch`.

    Paths are relative to the folder of the goal file. At most one of ``workspace``, ``repository`` and
    ``repositories`` is given.
    """

    id: GoalId | None = Field(
        default=None,
        description="A name that no other line has. The run is called `<batch>-<id>`. Default: the number of the line.",
    )
    goal: StrictStr = Field(default="", description="The goal for the team. A flow or a playbook may have its own.")
    priority: Annotated[int, Field(strict=True, ge=-(2**31), le=2**31 - 1), WHOLE_NUMBER] = Field(
        default=0, description="Goals with a higher number start first."
    )
    labels: tuple[Text, ...] = Field(
        default=(), description="What a machine needs to run the goal. Ignored if the goals run on this machine."
    )
    flow: Text | None = Field(default=None, description="The flow to run.")
    inputs: dict[str, JsonValue] = Field(default_factory=dict, description="The inputs of the flow.")
    cycles: Count | None = Field(default=None, description="Maximum number of cycles (rounds of all roles).")
    roles: Text | None = Field(default=None, description="The catalog file, or a folder with `catalog.yaml`.")
    workspace: Text | None = Field(default=None, description="The folder that the roles work on.")
    worktree: StrictBool | None = Field(
        default=None,
        description="Whether to work in a new git worktree. Default: yes, if several goals have this workspace and it "
        "is in a git repository.",
    )
    branch: Text | None = Field(default=None, description="Create this branch in the goal's worktree.")
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
    model: Text | None = Field(default=None, description="The model for roles that do not name one.")
    config: tuple[Assignment, ...] | None = Field(default=None, description="Settings to pass to Codex, `key=value`.")
    playbook: Text | None = Field(default=None, description="Take the answers from this playbook instead of a model.")
    repair_attempts: Annotated[int, Field(strict=True, ge=0, le=MOST_REPAIRS), WHOLE_NUMBER] | None = Field(
        default=None, description="Extra turns to repair an invalid answer."
    )
    run_tests: StrictBool | None = Field(
        default=None, description="Whether to run pytest after each turn that changed files."
    )
    pytest_cmd: Text | None = Field(default=None, description="The command that starts pytest.")
    test_seconds: Positive | None = Field(
        default=None, description="Time limit for each test run and each other check."
    )
    max_turns: Count | None = Field(default=None, description="Park the run after this many turns.")
    max_tokens: Count | None = Field(default=None, description="Park the run once this many tokens are used.")
    max_cost: Positive | None = Field(
        default=None, description="Park the run once its turns have cost this many US dollars, by the price list."
    )
    max_seconds: Positive | None = Field(default=None, description="Park the run after this many seconds of work.")
    max_processes: Count | None = Field(default=None, description="Maximum number of Codex processes of the run.")
    yes: StrictBool | None = Field(default=None, description="Whether to approve every review without asking.")

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        given = [name for name in ("workspace", "repository", "repositories") if getattr(self, name)]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other")
        if self.ref and not self.clones:
            raise ValueError("ref needs repository or repositories")
        if self.clones and (self.worktree or self.branch):
            raise ValueError("worktree and branch belong to a workspace; a repository is cloned for each goal")
        if self.branch and self.worktree is False:
            raise ValueError("branch needs worktree")
        if any(urlsplit(address).password for address in self.clones):
            raise ValueError("the address contains a password, which others could see; use a credential helper of git")
        if len(set(self.repositories)) != len(self.repositories):
            raise ValueError("repositories has the same one twice")
        return self

    @property
    def clones(self) -> tuple[str, ...]:
        """The repositories to clone, one for each run of this goal; empty if it has a workspace."""
        return (self.repository,) if self.repository else self.repositories

    def options(self, folder: Path) -> dict[str, Any]:
        """The `RunOptions` fields that the line gives; its paths are relative to ``folder``."""
        given = {name: getattr(self, name) for name in self.model_fields_set - NOT_OPTIONS}
        given |= {name: folder / expanded(given[name]) for name in ("roles", "workspace") if name in given}
        if "playbook" in given:
            given["playbook"] = playbook_at(folder, given["playbook"])
        if "inputs" in given:
            given["inputs"] = {name: as_input(value) for name, value in given["inputs"].items()}
        return {**given, "worktree": True} if self.branch else given


def as_input(value: JsonValue) -> str:
    """An input as it would be typed: JSON is YAML as well."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def playbook_at(folder: Path, playbook: str) -> str:
    """The name of a playbook as it is, or its path relative to ``folder``."""
    is_path = "/" in playbook or bool(Path(playbook).suffix)
    return str((folder / expanded(playbook)).absolute()) if is_path else playbook
