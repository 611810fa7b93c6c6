"""The interface of a tool, which a role's model may call within its turn, and what the tool may use then."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from codex_multi_role.workspace import Workspace

NAME = re.compile(r"(?!mcp__)[A-Za-z0-9_-]{1,64}")
"""What Codex and the Responses API accept as a tool's name."""


class AnswerOfPerson(Protocol):
    """What a person answered."""

    @property
    def approved(self) -> bool: ...

    @property
    def comment(self) -> str: ...


Ask = Callable[[str, str], AnswerOfPerson | None]
"""Ask a person and wait: ``ask(question, show)``. None: nobody is available, or nobody answered in time."""


@dataclass(frozen=True)
class ToolContext:
    """What a call may use of the run.

    ``role`` is the process that calls (``planner``, ``planner.2``), ``folder`` is its turn's, for files that the call
    leaves. ``stopping`` is set when the run must stop. The time that ``ask_person`` takes is a person's; all other time
    is the turn's, and nothing interrupts a tool: whatever it waits for needs a deadline. ``kept``: what earlier calls
    of this ask have kept.
    """

    role: str
    workspace: Workspace
    folder: Path
    ask_person: Ask
    stopping: Event = field(default_factory=Event)
    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolResult:
    """The text for the model. ``success`` is false for a failed call, and the text says why.

    ``keep``: JSON fields for the role's handoff; a later call's replace an earlier one's.
    """

    text: str
    success: bool = True
    keep: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """``description`` tells the model when to call it and what it gets; ``input_schema`` is a JSON Schema of an object.

    ``call`` gets arguments that match the schema. Its errors, except StorageError, are reported to the model and end
    nothing. ``pure``: the answer depends on the arguments alone, so that later runs may take over a turn with it.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    call: Callable[[ToolContext, Mapping[str, Any]], ToolResult]
    pure: bool = False

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(
                f"{self.name!r} cannot be a tool's name: use up to 64 of A-Z a-z 0-9 _ -, and do not start with mcp__"
            )
