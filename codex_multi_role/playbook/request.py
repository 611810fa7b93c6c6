"""What Codex asks the embedded model: one request of the Responses API, reduced to what a playbook needs.

The client puts ``multi_role_*`` into every turn's ``responsesapiClientMetadata``; Codex passes them on in
``client_metadata["x-codex-turn-metadata"]``. With them, and with the tool outputs that carry the turn's call ids, the
server needs no memory: a restart or a resumed thread sends the very same request. When Codex compacts a thread during a
turn, the outputs leave the conversation, so the summary carries them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import BaseModel, Field, ValidationError

from codex_multi_role.errors import UsageError

COMPACTION_SUMMARY = "The conversation so far was played from a script; no model was asked."
CARRIED_OUTPUTS = "Tool outputs of turn "
CODEX_COMPACTED_MESSAGE = "Another language model started to solve this problem"
CODEX_CONTEXT_MESSAGES = (
    CODEX_COMPACTED_MESSAGE,
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<user_shell_command>",
    "<skill>",
)


class AnswerKey(NamedTuple):
    """Identifies a scripted answer. All counts except ``repair`` start at 1."""

    role: str
    visit: int
    repair: int
    attempt: int


@dataclass(frozen=True)
class Asked:
    """Who asks in one model request of one of our turns, for whichever model.

    ``unit`` is the key of the flow's asking unit, empty in a team; ``kind`` is ``turn`` or ``compaction``.
    """

    turn_id: str
    kind: str
    ask: AnswerKey
    unit: str
    model: str
    prompt: str


@dataclass(frozen=True)
class ModelRequest:
    """One model request. ``tool_outputs`` are those of its turn; their number is the step to play."""

    turn_id: str
    tool_outputs: tuple[str, ...]
    characters: int

    @property
    def step(self) -> int:
        return len(self.tool_outputs)


@dataclass(frozen=True)
class NextStepRequest(ModelRequest):
    """Requests the next step of a role's turn. ``unit`` as in `Asked`."""

    ask: AnswerKey
    prompt: str
    unit: str = ""


@dataclass(frozen=True)
class CompactionRequest(ModelRequest):
    """Requests a summary of the thread, because it is full or because of an explicit compaction."""

    @property
    def summary(self) -> str:
        """The text of the answer; later requests of the turn carry it, so the tool outputs are read back from it."""
        return f"{COMPACTION_SUMMARY}\n{CARRIED_OUTPUTS}{self.turn_id} {json.dumps(self.tool_outputs)}"


class _ContentPart(BaseModel):
    text: str = ""


class _Item(BaseModel):
    type: str = "message"
    role: str = ""
    call_id: str = ""
    content: str | list[_ContentPart] | None = None
    output: str | list[_ContentPart] = ""


class _ClientMetadata(BaseModel):
    turn: str = Field(alias="x-codex-turn-metadata")


class _Body(BaseModel):
    input: list[_Item]
    client_metadata: _ClientMetadata
    model: str = ""


class _TurnMetadata(BaseModel):
    turn_id: str
    request_kind: str = "turn"
    unit: str = Field("", alias="multi_role_unit")


class _AskMetadata(BaseModel):
    role: str = Field(alias="multi_role_role")
    visit: int = Field(alias="multi_role_visit", ge=1)
    repair: int = Field(alias="multi_role_repair", ge=0)
    attempt: int = Field(alias="multi_role_attempt", ge=1)


def call_id(turn_id: str, step: int) -> str:
    """The id of the tool call in ``step`` of a turn; its output comes back under the same id."""
    return f"call_{turn_id}_{step}"


def read_request(raw: bytes) -> NextStepRequest | CompactionRequest:
    """Raises `UsageError` for anything that is not a Responses API request of one of our turns."""
    with _refusing(
        "the playbook server received a request without the metadata of a turn",
        "Only turns started by codex-multi-role can be answered.",
    ):
        body, turn = _parsed(raw)
        outputs = _outputs(body.input, turn.turn_id)
        if turn.request_kind == "compaction":
            return CompactionRequest(turn.turn_id, outputs, len(raw))
        return NextStepRequest(turn.turn_id, outputs, len(raw), _ask(body), _last_prompt(body.input), turn.unit)


def read_asked(raw: bytes) -> Asked:
    """Raises `UsageError` like `read_request`."""
    with _refusing("this request does not belong to a turn that codex-multi-role started"):
        body, turn = _parsed(raw)
        return Asked(turn.turn_id, turn.request_kind, _ask(body), turn.unit, body.model, _last_prompt(body.input))


@contextmanager
def _refusing(problem: str, hint: str = "") -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise UsageError(f"{problem}: {first_problem(error)}", hint) from error


def _parsed(raw: bytes) -> tuple[_Body, _TurnMetadata]:
    body = _Body.model_validate_json(raw)
    return body, _TurnMetadata.model_validate_json(body.client_metadata.turn)


def _ask(body: _Body) -> AnswerKey:
    return AnswerKey(**_AskMetadata.model_validate_json(body.client_metadata.turn).model_dump())


def first_problem(error: ValidationError) -> str:
    """The key path of the first problem, and what is wrong there."""
    problem = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, problem['loc'])) or 'body'}: {problem['msg']}"


def _last_prompt(items: list[_Item]) -> str:
    prompts = (_text(item.content) for item in reversed(items) if item.role == "user")
    return next((prompt for prompt in prompts if not prompt.startswith(CODEX_CONTEXT_MESSAGES)), "")


def _outputs(items: list[_Item], turn_id: str) -> tuple[str, ...]:
    prefix = call_id(turn_id, 0).removesuffix("0")
    carried: list[str] = []
    outputs: list[str] = []
    for item in items:
        if item.type.endswith("_call_output") and item.call_id.startswith(prefix):
            outputs.append(_text(item.output))
        elif item.role == "user" and (text := _text(item.content)).startswith(CODEX_COMPACTED_MESSAGE):
            carried = _carried(text, turn_id)
    return (*carried, *outputs)


def _carried(summary: str, turn_id: str) -> list[str]:
    _, found, outputs = summary.rpartition(f"{CARRIED_OUTPUTS}{turn_id} ")
    try:
        carried: list[str] = json.loads(outputs) if found else []
    except json.JSONDecodeError as error:
        raise UsageError(f"Codex truncated the summary of turn {turn_id}: its tool outputs are lost") from error
    return carried


def _text(content: str | list[_ContentPart] | None) -> str:
    return content if isinstance(content, str) else "\n".join(part.text for part in content or ())
