"""Answers to Codex's requests: for permission, for a person's input, for a tool call.

Source: the server requests of the app-server protocol. The default is minimal: nothing that leaves the sandbox is
accepted unless the role's YAML allows it. Every request gets an answer, because Codex waits forever for a missing one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

METHOD_NOT_FOUND = -32601


@dataclass(frozen=True)
class ApprovalPolicy:
    """Which of Codex's requests are accepted without a person: running commands, changing files."""

    commands: bool = False
    file_changes: bool = False


@dataclass(frozen=True)
class ApprovalAnswer:
    """``reply`` is the body of the JSON-RPC answer: ``{"result": …}`` or ``{"error": …}``."""

    decision: str
    reply: dict[str, Any]


@dataclass(frozen=True)
class ToolSpec:
    """A dynamic tool that this client runs for the thread's model; ``input_schema`` is a JSON Schema."""

    name: str
    description: str
    input_schema: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The tool's entry in ``dynamicTools`` of ``thread/start``."""
        named = {"type": "function", "name": self.name, "description": self.description}
        return {**named, "inputSchema": dict(self.input_schema)}


@dataclass(frozen=True)
class ToolReply:
    """The result of a tool call, for the model to read."""

    text: str
    success: bool


Params = Mapping[str, Any]


class Helpers(Protocol):
    """Handles what a model requests during its turn: a person's input and tool calls."""

    @property
    def person_seconds(self) -> float:
        """Seconds this turn waited for a person; they do not count towards the turn's time."""

    def ask_user(self, params: Params) -> Mapping[str, str]:
        """Put the request's questions to a person; returns answers by question id. The rest is skipped."""

    def call_tool(self, name: str, arguments: object) -> ToolReply:
        """Run a tool call. An invalid call or a failing tool is reported in the reply, never raised."""


USER_INPUT = "item/tool/requestUserInput"
TOOL_CALL = "item/tool/call"
NO_TOOL = ToolReply("This tool cannot be called now.", success=False)


def _decide(allowed: bool) -> ApprovalAnswer:
    decision = "accept" if allowed else "decline"
    return ApprovalAnswer(decision, {"result": {"decision": decision}})


def _permissions(params: Params, policy: ApprovalPolicy) -> ApprovalAnswer:
    granted = params.get("permissions", {}) if policy.commands else {}
    decision = "accept" if granted else "decline"
    return ApprovalAnswer(decision, {"result": {"permissions": granted, "scope": "turn"}})


def _answers(given: Mapping[str, str]) -> ApprovalAnswer:
    answers = {name: {"answers": [text]} for name, text in given.items()}
    return ApprovalAnswer("answer" if answers else "skip", {"result": {"answers": answers}})


def _tool_result(reply: ToolReply) -> ApprovalAnswer:
    content = [{"type": "inputText", "text": reply.text}]
    decision = "answer" if reply.success else "fail"
    return ApprovalAnswer(decision, {"result": {"contentItems": content, "success": reply.success}})


_ANSWERS: dict[str, Callable[[Params, ApprovalPolicy], ApprovalAnswer]] = {
    "item/commandExecution/requestApproval": lambda _, policy: _decide(policy.commands),
    "item/fileChange/requestApproval": lambda _, policy: _decide(policy.file_changes),
    "item/permissions/requestApproval": _permissions,
    USER_INPUT: lambda *_: _answers({}),
    TOOL_CALL: lambda *_: _tool_result(NO_TOOL),
    "mcpServer/elicitation/request": lambda *_: ApprovalAnswer("decline", {"result": {"action": "decline"}}),
}


def answer(method: str, params: Params, policy: ApprovalPolicy, helpers: Helpers | None = None) -> ApprovalAnswer:
    """Return the answer to the server request ``method``; a JSON-RPC error for an unknown method.

    Waits only for ``helpers``: for a tool, or for a person's answer to the role.
    """
    if helpers is not None and method == USER_INPUT:
        return _answers(helpers.ask_user(params))
    if helpers is not None and method == TOOL_CALL:
        return _tool_result(helpers.call_tool(str(params.get("tool")), params.get("arguments")))
    known = _ANSWERS.get(method)
    if known is None:
        error = {"code": METHOD_NOT_FOUND, "message": f"{method} is not supported by this client"}
        return ApprovalAnswer("unsupported", {"error": error})
    return known(params, policy)
