"""A thread of Codex, which is a role's memory: where it works, what it may do, and how it is opened or gone on with."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codex_multi_role.codex.approvals import ToolSpec
from codex_multi_role.codex.incoming import Message
from codex_multi_role.codex.project_instructions import ProjectInstructions
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.turn import TurnRequest
from codex_multi_role.errors import CodexRefused

THREAD_SECONDS = 30.0


@dataclass(frozen=True)
class ThreadSettings:
    """``thread/start``: where the role works, what it may do, which model answers, and which tools of ours it has.

    ``permissions``, a profile that the process was started with, stands in for ``sandbox``. A thread keeps the tools it
    was started with: ``thread/resume`` and ``thread/fork`` take none (measured). ``instructions``: those of the project
    that its role gets. ``skill_folders``: skills of this role besides those that Codex finds by itself. ``effort``: the
    reasoning effort of its turns.
    """

    folder: str
    sandbox: str
    approval_policy: str
    model: str | None
    permissions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    instructions: ProjectInstructions | None = None
    skill_folders: tuple[str, ...] = ()
    effort: str | None = None

    def params(self) -> dict[str, Any]:
        model = {"model": self.model} if self.model else {}
        access = {"permissions": self.permissions} if self.permissions else {"sandbox": self.sandbox}
        told = self.instructions.developer_message(Path(self.folder)) if self.instructions else ""
        instructions = {"developerInstructions": told} if told else {}
        return {"cwd": self.folder, "approvalPolicy": self.approval_policy, **access, **model, **instructions}

    def start_params(self) -> dict[str, Any]:
        tools = {"dynamicTools": [tool.as_json() for tool in self.tools]} if self.tools else {}
        return {**self.params(), **tools}


class RoleThread:
    """The present thread of a role's process; ``settings`` are its own.

    ``inherited``: threads of another run, which this one goes on with and which are left as they are: by id, the last
    turn on it to remember. ``forgot``: Codex had lost the thread that was asked for, and no turn was completed since.
    ``totals`` are the tokens used on it, as far as that is known, ``sub_agents`` those of the threads that it started.
    ``own``: every thread this process has opened; all others are sub-agents.
    """

    def __init__(self, transport: AppServerTransport, settings: ThreadSettings, inherited: Mapping[str, str]) -> None:
        self._transport = transport
        self.settings = settings
        self._inherited = inherited
        self._folder = settings.folder
        self._asked_for: str | None = None
        self.id = ""
        self.resumed = False
        self.forgot = False
        self.used = True
        self.totals: tuple[int, int] | None = None
        self.own: set[str] = set()
        self.sub_agents: dict[str, tuple[int, int] | None] = {}
        self.model = settings.model or ""

    def use(self, thread_id: str | None, folder: str) -> None:
        """Go on with another thread in ``folder``: a new one, or the one of that id. Raises `CodexError`.

        The id of the present thread changes the folder only, and a thread without a turn is a new one.
        """
        if thread_id is None:
            present = not self.used and folder == self.settings.folder
        else:
            present = thread_id in (self.id, self._asked_for)
        self.settings = replace(self.settings, folder=folder)
        if not present:
            self.open(thread_id)

    def open(self, thread_id: str | None) -> None:
        """Start a thread, or go on with the one of that id; a lost one is started afresh. Raises `CodexError`."""
        recalled = self._recall(thread_id) if thread_id else None
        result = recalled or self._transport.request("thread/start", self.settings.start_params(), THREAD_SECONDS)
        self.id = id_of("thread", result)
        self.own.add(self.id)
        self._asked_for, self._folder = thread_id, self.settings.folder
        self.resumed = self.used = recalled is not None
        self.forgot = bool(thread_id) and recalled is None
        self.totals = None if recalled else (0, 0)
        self.model = str(result.get("model", self.model))

    def _recall(self, thread_id: str) -> Message | None:
        """The thread of that id, or a fork of it where it is inherited; None where Codex has it no more."""
        params = {**self.settings.params(), "threadId": thread_id, "excludeTurns": True}
        last_turn = self._inherited.get(thread_id)
        with contextlib.suppress(CodexRefused):
            if last_turn is None:
                return self._transport.request("thread/resume", params, THREAD_SECONDS)
            return self._transport.request("thread/fork", {**params, "lastTurnId": last_turn}, THREAD_SECONDS)
        return None

    def start_turn(self, request: TurnRequest, deadline_seconds: float) -> str:
        """Begin a turn; returns Codex's name for it. Raises `CodexError`."""
        params = request.params(self.id)
        if self._folder != self.settings.folder:  # a thread that is loaded cannot be opened elsewhere
            params["cwd"] = self.settings.folder
        started = self._transport.request("turn/start", params, deadline_seconds)
        self._folder = self.settings.folder
        return id_of("turn", started)


def id_of(what: str, result: Message) -> str:
    """The id of the thread or the turn that an answer tells of. Raises `CodexRefused` for one of another shape."""
    told = result.get(what)
    found = told.get("id") if isinstance(told, dict) else None
    if not isinstance(found, str):
        raise CodexRefused(f"Codex answered without the id of a {what}; is it another version?", 0)
    return found
