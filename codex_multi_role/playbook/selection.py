"""Selects the step of the script for a request, and fills in its templates. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codex_multi_role.catalog.templates import evaluate, render
from codex_multi_role.errors import UsageError
from codex_multi_role.option_keywords import PlaybookAsk, PlaybookFunction
from codex_multi_role.playbook.request import CompactionRequest, NextStepRequest
from codex_multi_role.playbook.script import Fault, Playbook, ScriptedStep, Usage

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class Message:
    """The assistant's text, streamed in ``deltas`` pieces; None for the stream's default.

    ``searches``: the queries of the model's own web searches, which come before the text.
    """

    text: str
    deltas: int | None = None
    searches: tuple[str, ...] = ()


@dataclass(frozen=True)
class ToolCall:
    """A function call; ``arguments`` is JSON text, as a model writes it."""

    name: str
    arguments: str


Answer = Message | ToolCall | Fault


@dataclass(frozen=True)
class Scripted:
    """The response to one model request."""

    answer: Answer
    usage: Usage
    delay_seconds: float = 0.0


def select(playbook: Playbook, request: NextStepRequest | CompactionRequest) -> Scripted:
    """Raises `UsageError` if the script has no such answer, `DefinitionError` for a template that fails.

    A request to compact the thread is not one of a role's answers; it gets a summary.
    """
    if isinstance(request, CompactionRequest):
        summary = Message(request.summary)
        return Scripted(summary, _estimate(summary, request.characters))
    fill = _Templates(request, f"playbook {playbook.name}: {_place(request)}")
    if playbook.function is not None:
        message = Message(_called(playbook.function, fill))
        return Scripted(message, _estimate(message, request.characters))
    step = _chosen(_find_step(playbook, request), fill)
    answer = _answer(step, fill)
    return Scripted(answer, step.usage or _estimate(answer, request.characters), step.delay_seconds)


def _called(function: PlaybookFunction, asked: _Templates) -> str:
    try:
        answer: object = function(asked.ask)
        if not isinstance(answer, str | Mapping):
            raise TypeError(f"a mapping or a text must be returned, not {answer!r}")
        return answer if isinstance(answer, str) else _as_text(dict(answer))
    except Exception as error:
        raise UsageError(f"{asked.where}: {type(error).__name__}: {error}") from error


def _as_text(answer: object) -> str:
    return json.dumps(answer, ensure_ascii=False, indent=2)


def _place(request: NextStepRequest) -> str:
    ask = request.ask
    return f"role {ask.role}, visit {ask.visit}, repair {ask.repair}, attempt {ask.attempt}, step {request.step + 1}"


def _find_step(playbook: Playbook, request: NextStepRequest) -> ScriptedStep:
    ask = request.ask
    try:
        return playbook.entry(ask.role, ask.visit).answer(ask.repair).turn(ask.attempt).step(request.step)
    except UsageError as error:
        raise UsageError(f"playbook {playbook.name} has {error}: asked for {_place(request)}") from error


class _Templates:
    """Fills the templates of one step; ``where`` names it in errors."""

    def __init__(self, request: NextStepRequest, where: str) -> None:
        self.where = where
        self.ask = PlaybookAsk(*request.ask, request.prompt, request.unit, list(request.tool_outputs))
        self._context = vars(self.ask)

    def fill(self, template: object) -> Any:  # noqa: ANN401 - JSON-shaped, as the script's author wrote it
        return render(template, self._context, self.where)

    def holds(self, condition: str) -> bool:
        return evaluate(condition, self._context, self.where)


def _chosen(step: ScriptedStep, templates: _Templates) -> ScriptedStep:
    if not step.choose:
        return step
    for choice in step.choose:
        if templates.holds(choice.when):
            return _chosen(choice, templates)
    raise UsageError(f"{templates.where}: no choice matches", "Give the last choice no `when`.")


def _answer(step: ScriptedStep, templates: _Templates) -> Answer:
    if step.fault:
        return step.fault
    match step.form:
        case "patch":
            # Codex recognizes a patch only as a heredoc, whatever the model.
            patch = f"apply_patch <<'EOF'\n{templates.fill(step.patch)}\nEOF"
            return ToolCall("exec_command", json.dumps({"cmd": patch}))
        case "call":
            arguments = templates.fill(step.arguments)
            return ToolCall(step.call, arguments if isinstance(arguments, str) else json.dumps(arguments))
        case "json":
            text = _as_text(templates.fill(step.payload))
        case _:
            text = str(templates.fill(step.text))
    return Message(text, step.deltas, tuple(str(templates.fill(query)) for query in step.web_search))


def _estimate(answer: Answer, asked_characters: int) -> Usage:
    written = {Message: "text", ToolCall: "arguments"}.get(type(answer))
    written_characters = len(getattr(answer, written)) if written else 0
    return Usage(
        input_tokens=asked_characters // CHARACTERS_PER_TOKEN, output_tokens=written_characters // CHARACTERS_PER_TOKEN
    )
