"""What a turn depends on: its inputs, part by part, and what it looked at while it ran.

A later run takes over a turn of this one only if all of that is provably equal. The parts are digests, so that a
difference can be named without storing the texts again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.checks.tools import find_tool
from codex_multi_role.codex.approvals import USER_INPUT
from codex_multi_role.codex.notifications import ItemCompleted, ItemStarted
from codex_multi_role.codex.running_turn import ApprovalAnswered, Observed
from codex_multi_role.extensions.replays.reuse.hidden_changes import hidden_state
from codex_multi_role.extensions.replays.reuse.hidden_files import TOO_MUCH, hidden_files
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps.resources import Stay
from codex_multi_role.steps.turn_record import TurnPrompt
from codex_multi_role.workspace import Snapshots, Workspace

TALK = frozenset({"userMessage", "agentMessage", "reasoning", "plan", "contextCompaction"})
"""Items of a turn that depend on its conversation alone."""
LOOKS = frozenset({"commandExecution", "fileChange", "imageView"})
"""Items that read or write files."""
OWN_TOOL = "dynamicToolCall"
"""The item of a call of one of the controller's tools, which are judged by name."""
GIT = re.compile(r"\bgit\b")
"""A command that may read the repository, which is in no snapshot."""
OTHERS_CHANGED = "the workspace was also changed by others meanwhile"
HIDDEN_CHANGED = "it changed what no snapshot has: ignored files, an environment, empty folders or a repository"


def digest(value: object) -> str:
    """The SHA-256 of ``value`` as canonical JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class RoleInputs:
    """What a role's turns depend on besides prompt, conversation and workspace: digests by part.

    ``instructions``: those of the project. ``refused``: why none of its turns can be taken over; ``outside``: why none
    can that looked at files. ``scripted``: its answers come from a playbook or a recording, and so from its position.
    """

    parts: Mapping[str, str]
    instructions: str = ""
    refused: str = ""
    outside: str = ""
    scripted: bool = False


RoleInputsReader = Callable[[RoleSpec, Path], RoleInputs]
"""Reads the inputs of a role that works in a folder."""


@dataclass(frozen=True)
class TurnBasis:
    """The key ``basis`` of ``turn.json``.

    ``position``: which turn it is in its flow. ``workspace``: the snapshot it looked at, empty if it looked at no file;
    ``hidden``: a digest of what no snapshot has; ``after``: the snapshot it left. ``refused``: why it cannot be taken
    over, or empty.
    """

    position: str
    inputs: Mapping[str, str]
    workspace: str = ""
    hidden: str = ""
    after: str = ""
    refused: str = ""

    @classmethod
    def read(cls, result: Json) -> Self | None:
        """From a ``turn.json``; None if another version wrote it, so that it cannot be compared."""
        with suppress(KeyError, TypeError):
            return cls(**result["basis"])
        return None

    def as_json(self) -> Json:
        return asdict(self)


def position_of(asked: TurnPrompt) -> str:
    """Names a turn by its place in the flow, the same in every run of it."""
    continued = f"+{asked.follows.step}" if asked.follows.step else ""
    repair = f", repair {asked.follows.repair}" if asked.follows.repair else ""
    return f"{asked.unit or 'team'}: {asked.role.name} {asked.visit}{continued}{repair}"


@dataclass
class TurnLook:
    """What a turn looked at. ``stay``: its stay in the workspace, with others or alone; ``called``: its own tools.

    A role that cannot write depends on files only after it first looks at one, so they are recorded then.
    """

    role: RoleSpec
    workspace: Workspace
    snapshots: Snapshots
    stay: Stay
    seen: str = ""
    hidden: str = ""
    state: str = ""
    kinds: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)

    def observe(self, event: Observed) -> None:
        if isinstance(event, ApprovalAnswered):
            self.kinds |= {"a person's answer"} if event.method == USER_INPUT else set()
        elif isinstance(event, ItemStarted | ItemCompleted):
            kind = str(event.item.get("type"))
            if kind in LOOKS and not self.has_looked and not self.role.writes_itself:
                self.seen = self.snapshots.take()
                self.note_hidden_files()
            self.kinds |= {kind, *(["git"] if GIT.search(str(event.item.get("command", ""))) else [])}

    def note_hidden_files(self) -> None:
        """Note those of the snapshot just taken; for a role that can write, before it does."""
        self.hidden = hidden_files(self.snapshots, self.workspace)
        self.state = self._hidden_state()

    def _hidden_state(self) -> str:
        """Empty for a role that cannot change it, and if there is too much to compare."""
        is_compared = self.role.writes_itself and self.hidden != TOO_MUCH
        return hidden_state(self.snapshots, self.workspace) if is_compared else ""

    @property
    def has_looked(self) -> bool:
        return bool(self.kinds & LOOKS)

    def refusal(self, inputs: RoleInputs, before: str, after: str) -> str:
        """Why no run can take over the turn, or empty. ``before``, ``after``: the workspace, as far as it matters."""
        other = sorted(self.kinds - TALK - LOOKS - {OWN_TOOL})
        impure = sorted(name for name in self.called if not find_tool(name).pure)
        if inputs.refused or other or impure:
            return inputs.refused or f"it used {(other or impure)[0]}"
        if self.has_looked and (inputs.outside or self.hidden == TOO_MUCH):
            return inputs.outside or "it may have read files in no snapshot, which cannot be compared"
        changed_by_others = self.stay.shared if self.has_looked and self.role.writes_itself else before != after
        if changed_by_others:
            return OTHERS_CHANGED
        return HIDDEN_CHANGED if self.has_looked and self._hidden_state() != self.state else ""
