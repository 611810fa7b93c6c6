"""A Codex thread, which is a role's memory: where it works, what it may do, and how it is opened or resumed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codex_multi_role.codex.approvals import ToolSpec
from codex_multi_role.codex.incoming import Message
from codex_multi_role.codex.project_instructions import ProjectInstructions
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.turn_outcome import TurnRequest
from codex_multi_role.codex.usage import UsageCounter
from codex_multi_role.errors import CodexRefused

THREAD_SECONDS = 30.0


@dataclass(frozen=True)
class ThreadSettings:
    """``thread/start``: where the role works, what it may do, which model answers, and which dynamic tools it has.

    ``permissions``, a profile that the process was started with, replaces ``sandbox``. A thread keeps its initial
    tools: ``thread/resume`` and ``thread/fork`` accept none (measured). ``instructions``: those of the project for the
    role. ``skill_folders``: the role's skills besides those that Codex finds itself. ``effort``: the reasoning effort
    of its turns.
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

    def of_new_thread(self, params: dict[str, Any]) -> dict[str, Any]:
        """``params`` with what only a new thread can be given: tools, and reports of each model request."""
        tools = {"dynamicTools": [tool.as_json() for tool in self.tools]} if self.tools else {}
        return {**params, "experimentalRawEvents": True, **tools}


class RoleThread:
    """The current thread of a role's process and its ``settings``.

    ``inherited``: threads of another run that this one continues without changing them: by id, the last turn to
    remember. ``forgot``: Codex had lost the requested thread, and no turn has completed since. ``usage`` counts what
    all threads of the process use. ``own``: every thread this process has opened; all others are sub-agents, with
    ``sub_agent_models`` by thread. ``instructions``: the developer message that it was opened with. ``rollout``:
    Codex's own file of the thread.
    """

    def __init__(self, transport: AppServerTransport, settings: ThreadSettings, inherited: Mapping[str, str]) -> None:
        self._transport = transport
        self.settings = settings
        self._inherited = inherited
        self._folder = settings.folder
        self._asked_for: str | None = None
        self.id = self.instructions = ""
        self.rollout = Path(os.devnull)
        self.resumed = False
        self.forgot = False
        self.used = True
        self.usage = UsageCounter()
        self.own: set[str] = set()
        self.sub_agent_models: dict[str, str] = {}
        self.model = settings.model or ""
        self.effort = settings.effort or ""
        self._kept_effort: str | None = None

    def use(self, thread_id: str | None, folder: str) -> None:
        """Switch to another thread in ``folder``: a new one, or the one with ``thread_id``. Raises `CodexError`.

        The id of the current thread changes only the folder; a thread without a turn counts as new.
        """
        if thread_id is None:
            present = not self.used and folder == self.settings.folder
        else:
            present = thread_id in (self.id, self._asked_for)
        self.settings = replace(self.settings, folder=folder)
        if not present:
            self.open(thread_id)

    @property
    def continues(self) -> frozenset[str]:
        """The ids under which the conversation is known: the thread's own, and that of the one it is a fork of."""
        return frozenset({self.id} if self.forgot or self._asked_for is None else {self.id, self._asked_for})

    def open(self, thread_id: str | None) -> None:
        """Start a thread, or resume the one with ``thread_id``; a lost one is replaced. Raises `CodexError`."""
        params = self.settings.params()
        recalled = self._recall(thread_id, params) if thread_id else None
        result = recalled or self._transport.request(
            "thread/start", self.settings.of_new_thread(params), THREAD_SECONDS
        )
        self.instructions = str(params.get("developerInstructions", ""))
        self.id = id_of("thread", result)
        self.rollout = Path(str(result["thread"].get("path") or os.devnull))
        self.own.add(self.id)
        self._asked_for, self._folder = thread_id, self.settings.folder
        self.resumed = self.used = recalled is not None
        self.forgot = bool(thread_id) and recalled is None
        self.usage.forget(self.id) if recalled else self.usage.start(self.id)
        self.model = str(result.get("model", self.model))
        self._kept_effort = result.get("reasoningEffort")
        if self.settings.effort is None:  # Codex's own settings may have one; a role's is sent with its turns
            self.effort = str(self._kept_effort or "")

    def _recall(self, thread_id: str, opening: Message) -> Message | None:
        """The thread with ``thread_id``, or a fork of it if it is inherited; None if Codex no longer has it."""
        params = {**opening, "threadId": thread_id, "excludeTurns": True}
        last_turn = self._inherited.get(thread_id)
        with contextlib.suppress(CodexRefused):
            if last_turn is None:
                return self._transport.request("thread/resume", params, THREAD_SECONDS)
            return self._transport.request("thread/fork", {**params, "lastTurnId": last_turn}, THREAD_SECONDS)
        return None

    def start_turn(self, request: TurnRequest, deadline_seconds: float) -> str:
        """Start a turn; returns Codex's id for it. Raises `CodexError`."""
        params = request.params(self.id)
        if self._folder != self.settings.folder:  # a loaded thread cannot be reopened elsewhere
            params["cwd"] = self.settings.folder
        if request.effort == self._kept_effort:
            params.pop("effort", None)  # a turn starts 5 ms later if Codex is given settings with it (measured)
        started = self._transport.request("turn/start", params, deadline_seconds)
        self._folder = self.settings.folder
        self._kept_effort = request.effort or self._kept_effort
        return id_of("turn", started)


def id_of(what: str, result: Message) -> str:
    """The id of the thread or the turn in an answer. Raises `CodexRefused` for an answer of another shape."""
    told = result.get(what)
    found = told.get("id") if isinstance(told, dict) else None
    if not isinstance(found, str):
        raise CodexRefused(f"Codex answered without the id of a {what}; it may be an unsupported version", 0)
    return found
