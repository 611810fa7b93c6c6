"""What is answered when Codex asks for permission.

Source: the server requests of the app-server protocol. The default is the least: nothing that leaves the sandbox is
accepted unless the role's YAML says so. Every request is answered, since Codex waits for ever for one that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

METHOD_NOT_FOUND = -32601


@dataclass(frozen=True)
class ApprovalPolicy:
    """What a role may do without a person: run commands Codex asks about, change files Codex asks about."""

    commands: bool = False
    file_changes: bool = False


@dataclass(frozen=True)
class ApprovalAnswer:
    """``reply`` is the body of the JSON-RPC answer: ``{"result": …}`` or ``{"error": …}``."""

    decision: str
    reply: dict[str, Any]


Params = Mapping[str, Any]
AskUser = Callable[[Params], Mapping[str, str]]
"""Puts a role's questions to a person: from the request's params to answers by question id; the rest is skipped."""

USER_INPUT = "item/tool/requestUserInput"


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


_ANSWERS: dict[str, Callable[[Params, ApprovalPolicy], ApprovalAnswer]] = {
    "item/commandExecution/requestApproval": lambda _, policy: _decide(policy.commands),
    "item/fileChange/requestApproval": lambda _, policy: _decide(policy.file_changes),
    "item/permissions/requestApproval": _permissions,
    USER_INPUT: lambda *_: _answers({}),
    "mcpServer/elicitation/request": lambda *_: ApprovalAnswer("decline", {"result": {"action": "decline"}}),
}


def answer(method: str, params: Params, policy: ApprovalPolicy, ask_user: AskUser | None = None) -> ApprovalAnswer:
    """The answer to the server request ``method``; a JSON-RPC error for a method that is not known here.

    Waits only for ``ask_user``, and only for what the role asks a person.
    """
    if method == USER_INPUT and ask_user is not None:
        return _answers(ask_user(params))
    known = _ANSWERS.get(method)
    if known is None:
        error = {"code": METHOD_NOT_FOUND, "message": f"{method} is not supported by this client"}
        return ApprovalAnswer("unsupported", {"error": error})
    return known(params, policy)
