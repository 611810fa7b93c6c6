"""What a tool is: something of ours that a role's model may call within its turn, and what it may use then."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from codex_multi_role.run_folder import Answer
from codex_multi_role.workspace import Workspace

NAME = re.compile(r"(?!mcp__)[A-Za-z0-9_-]{1,64}")
"""What Codex and the Responses API take for a tool's name."""

Ask = Callable[[str, str], Answer | None]
"""Puts a question to a person and waits: ``ask(question, show)``. None: nobody is there, or nobody answered in time."""


@dataclass(frozen=True)
class ToolContext:
    """What a call may use of the run.

    ``role`` is the process that calls (``planner``, ``planner.2``), ``folder`` that of its turn, for what the call
    leaves. ``stopping`` is set when the run is asked to stop. The time that ``ask_person`` takes is a person's; all
    other time is the turn's, and nothing interrupts a tool: whatever it waits for needs a deadline. ``kept``: what the
    calls of this ask have kept so far.
    """

    role: str
    workspace: Workspace
    folder: Path
    ask_person: Ask
    stopping: Event = field(default_factory=Event)
    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolResult:
    """What the model gets to read. ``success`` is false for a call that came to nothing, and the text says why.

    ``keep``: fields, JSON, that the role's handoff is to have; a later call's come in place of an earlier one's.
    """

    text: str
    success: bool = True
    keep: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """``description`` tells the model when to call it and what it gets; ``input_schema`` is a JSON Schema of an object.

    ``call`` gets arguments that fit the schema. What it raises, but for StorageError, is told to the model and ends
    nothing.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    call: Callable[[ToolContext, Mapping[str, Any]], ToolResult]

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} cannot be a tool's name: use up to 64 of A-Z a-z 0-9 _ -, not mcp__ first")
