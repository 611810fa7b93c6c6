"""The playbook file: where it is found, and frozen models of its YAML.

A role's list is indexed by visit (the n-th time the role is asked). An entry is one answer, ``steps`` (one model
request each) or ``attempts`` (by provider attempt), and may have ``repairs`` (answers to repair turns).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import yaml
from pydantic import Field, JsonValue, PrivateAttr, StrictBool

from codex_multi_role.catalog.definition import NUMBER, WHOLE_NUMBER, Alternatives, Definition
from codex_multi_role.errors import UsageError
from codex_multi_role.flow.template_types import check_expression, check_template
from codex_multi_role.option_keywords import PlaybookAsk, PlaybookFunction
from codex_multi_role.reading.nearest import did_you_mean
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.shipped import PLAYBOOKS, find_definition, list_definitions, no_such_definition
from codex_multi_role.reading.value_types import fields_named
from codex_multi_role.reading.yaml_source import parse_text, read_text, validate
from codex_multi_role.run_options import MOST_REPAIRS, GivenPlaybook, is_playbook_file

LONGEST_WAIT_SECONDS = 3600.0
MOST_DELTAS = 300_000

SUFFIX = ".yaml"
AUTOMATIC = "auto"
"""The name that stands for answers made from the team's JSON Schemas, unless a project has a playbook of that name."""
TEMPLATE_NAMES = fields_named(each.name for each in fields(PlaybookAsk))
GIVE_IT_AGAIN = "the answers came from a Python function, which is not recorded: resume the run with playbook=FUNCTION"


class Usage(Definition):
    """Tokens of one model request, absolute; negative ones simulate a fault that some providers have."""

    input_tokens: Annotated[int, WHOLE_NUMBER] = Field(description="Tokens of the prompt.")
    output_tokens: Annotated[int, WHOLE_NUMBER] = Field(description="Tokens of the answer.")


class Fault(Definition):
    """A simulated failure. ``code`` without ``status`` fails the stream, with it the HTTP request."""

    alternatives: ClassVar[Alternatives] = {
        "status": {"code", "message", "headers", "body"},
        "code": {"message"},
        "drop": {"after_events"},
        "stall_seconds": {"after_events"},
        "garbage": set(),
        "empty": set(),
    }

    status: Annotated[int, Field(ge=400, le=599), WHOLE_NUMBER] | None = Field(
        default=None, description="The HTTP status with which the request fails."
    )
    code: str | None = Field(default=None, description="The provider's name of the error.")
    message: str = Field(default="this fault was requested by the playbook", description="What the error says.")
    headers: dict[str, str] = Field(default_factory=dict, description="HTTP headers of the response.")
    body: JsonValue = Field(default=None, description="The body of the response, instead of one with `message`.")
    drop: Literal[True] | None = Field(default=None, description="The connection ends.")
    stall_seconds: Annotated[float, Field(gt=0, le=LONGEST_WAIT_SECONDS), NUMBER] | None = Field(
        default=None, description="How long the connection stays open and silent."
    )
    after_events: Annotated[int, Field(ge=0), WHOLE_NUMBER] = Field(
        default=3, description="Events of the answer before that; with 0, not even a status line."
    )
    garbage: str | None = Field(default=None, description="What is sent instead of events.")
    empty: Literal[True] | None = Field(default=None, description="The answer has no message.")

    @property
    def breaks_connection(self) -> bool:
        """Whether the connection falls silent before the response is complete."""
        return self.form in {"drop", "stall_seconds"}


class ScriptedStep(Definition):
    """One model request. Strings of ``json``, ``text``, ``arguments`` and ``patch`` are templates."""

    alternatives: ClassVar[Alternatives] = {
        "json": {"web_search", "delay_seconds", "deltas", "usage"},
        "text": {"web_search", "delay_seconds", "deltas", "usage"},
        "call": {"arguments", "delay_seconds", "usage"},
        "patch": {"delay_seconds", "usage"},
        "fault": {"delay_seconds"},
        "choose": set(),
    }

    payload: JsonValue = Field(default=None, alias="json", description="It answers with this object.")
    text: str = Field(default="", description="It answers with this text.")
    call: str = Field(default="", min_length=1, description="It calls the tool of this name.")
    arguments: dict[str, JsonValue] | str = Field(default_factory=dict, description="The arguments of `call`.")
    patch: str = Field(default="", description="It changes files: from `*** Begin Patch` to `*** End Patch`.")
    fault: Fault | None = Field(default=None, description="It fails.")
    choose: list[Choice] = Field(
        default_factory=list, min_length=1, description="It does the first of these whose `when` is true."
    )
    web_search: list[str] = Field(
        default_factory=list, description="The queries of the model's own web searches before its answer."
    )
    delay_seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS), NUMBER] = Field(
        default=0.0, description="How long it takes."
    )
    deltas: Annotated[int, Field(ge=0, le=MOST_DELTAS), WHOLE_NUMBER] | None = Field(
        default=None, description="In how many pieces the answer is streamed."
    )
    usage: Usage | None = Field(default=None, description="Its tokens, instead of an estimate.")


class Choice(ScriptedStep):
    """A step that is played if the expression ``when`` is true, or if it has none."""

    when: str = Field(default="true", description="A condition; without one it is always played.")


class ScriptedTurn(ScriptedStep):
    """All model requests of one turn."""

    alternatives: ClassVar[Alternatives] = {**ScriptedStep.alternatives, "steps": set()}

    steps: list[ScriptedStep] = Field(
        default_factory=list, min_length=1, description="What it does in one turn, in this order."
    )

    def step(self, index: int) -> ScriptedStep:
        steps = self.steps or [self]
        if index >= len(steps):
            raise UsageError(f"no step {index + 1} (the turn has {len(steps)})")
        return steps[index]


class ScriptedAnswer(ScriptedTurn):
    """A turn, or one turn per provider attempt; the last one is used for all further attempts."""

    alternatives: ClassVar[Alternatives] = {**ScriptedTurn.alternatives, "attempts": set()}

    attempts: list[ScriptedTurn] = Field(
        default_factory=list,
        min_length=1,
        description="What it does at each try of the prompt; the last one is repeated.",
    )

    def turn(self, attempt: int) -> ScriptedTurn:
        return self.attempts[min(attempt, len(self.attempts)) - 1] if self.attempts else self


class ScriptedVisit(ScriptedAnswer):
    """A role's answer at one visit, and its answers to the repair turns that follow it."""

    repairs: list[ScriptedAnswer] = Field(
        default_factory=list, description="The answers to the repair turns of the visit."
    )

    def answer(self, repair: int) -> ScriptedAnswer:
        if repair > len(self.repairs):
            raise UsageError(f"no repair {repair} (the visit has {len(self.repairs)})")
        return self.repairs[repair - 1] if repair else self


class Playbook(Definition):
    """A script for the embedded model.

    ``source`` is the file it was loaded from, ``text`` what that file contained.
    """

    name: str = Field(min_length=1, description="Its name, wherever the run is shown.")
    description: str = Field(default="", description="What it plays.")
    goal: str | None = Field(default=None, min_length=1, description="The goal of a run that is given none.")
    cycles: Annotated[int, Field(ge=1), WHOLE_NUMBER] | None = Field(
        default=None, description="The cycles of a run that is given none."
    )
    roles: dict[str, list[ScriptedVisit]] = Field(
        default_factory=dict, description="For each role an entry per visit: the first time it is asked, the second, …"
    )
    repeat_last: StrictBool = Field(
        default=False, description="The last entry of a role is repeated; otherwise further turns fail."
    )
    default: ScriptedVisit | None = Field(default=None, description="The entry of every role that is not listed.")

    _source: Path = PrivateAttr(default=Path())
    _text: str = PrivateAttr(default="")
    _function: PlaybookFunction | None = PrivateAttr(default=None)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises `DefinitionError`."""
        return cls.parse(read_text(path), path)

    @classmethod
    def parse(cls, text: str, path: Path) -> Self:
        """The playbook in ``text``, the content of the file ``path``. Raises `DefinitionError`."""
        playbook = validate(cls, parse_text(text, path), path)
        playbook._source, playbook._text = path, text
        return playbook

    @classmethod
    def of_python(cls, name: GivenPlaybook, folder: Path) -> Self:
        """Of a mapping or a function; what is kept of a function says that it is missing. Raises `DefinitionError`."""
        function = name.given if callable(name.given) else None
        fault = {"fault": {"status": 422, "message": GIVE_IT_AGAIN}}
        missing = {"default": {**fault, "repairs": [fault] * MOST_REPAIRS}}
        playbook = validate(cls, {**(missing if function else name.given), "name": str(name)}, Path("playbook"))
        kept = playbook.model_dump(mode="json", by_alias=True, exclude_unset=True)
        playbook._source, playbook._function = folder / PLAYBOOKS / f"python{SUFFIX}", function
        playbook._text = yaml.safe_dump(kept, sort_keys=False, allow_unicode=True)
        return playbook

    @property
    def function(self) -> PlaybookFunction | None:
        return self._function

    @property
    def source(self) -> Path:
        return self._source

    @property
    def text(self) -> str:
        return self._text

    def entry(self, role: str, visit: int) -> ScriptedVisit:
        """Raises `UsageError` if the script has nothing for this visit (1-based) of this role."""
        entries = self.roles.get(role)
        if entries is None:
            if self.default is None:
                known = f"(it has {', '.join(self.roles) or 'none'})"
                raise UsageError(f"no role {role} {known}{did_you_mean(role, self.roles)}")
            return self.default
        if visit > len(entries) and not (entries and self.repeat_last):
            raise UsageError(f"no visit {visit} of role {role} (it has {len(entries)})")
        return entries[min(visit, len(entries)) - 1]


def list_playbooks(roles_dir: Path | None = None) -> dict[str, Path]:
    """Playbook files by name, sorted; a project's file hides a shipped one of the same name."""
    return list_definitions(PLAYBOOKS, roles_dir)


def playbook_names(roles_dir: Path | None = None) -> list[str]:
    """Every name that ``--playbook`` takes."""
    return list(dict.fromkeys((AUTOMATIC, *list_playbooks(roles_dir))))


def is_automatic(name: str, roles_dir: Path | None = None) -> bool:
    """Whether ``name`` stands for the automatic playbook; a project's own file of that name hides it."""
    own = roles_dir / PLAYBOOKS / f"{AUTOMATIC}{SUFFIX}" if roles_dir else None
    return name == AUTOMATIC and not (own and own.exists())


def load_playbook(name_or_path: str, roles_dir: Path | None = None) -> Playbook:
    """Load a playbook from a path (anything with a separator or a suffix), or look up its name.

    Raises `UsageError` for an unknown name, `DefinitionError` for a file that is unreadable or invalid, including a
    template with an unknown name.
    """
    path = Path(name_or_path)
    if isinstance(name_or_path, GivenPlaybook):
        playbook, path = Playbook.of_python(name_or_path, roles_dir or Path()), Path("playbook")
    else:
        path = path if is_playbook_file(name_or_path) else _known_playbook(name_or_path, roles_dir)
        playbook = Playbook.load(path)
    problems = Problems()
    for place, step in _steps(playbook, Place(path)):
        _check(step, place, problems)
    problems.raise_found()
    return playbook


def _known_playbook(name: str, roles_dir: Path | None) -> Path:
    found = find_definition(PLAYBOOKS, name, roles_dir)
    if found is None:
        message, hint = no_such_definition(PLAYBOOKS, name, playbook_names(roles_dir), roles_dir)
        raise UsageError(message, f"{hint} Give a file with its suffix.")
    return found


def _steps(playbook: Playbook, root: Place) -> Iterator[tuple[Place, ScriptedStep]]:
    for role, entries in playbook.roles.items():
        for index, entry in enumerate(entries):
            yield from _inside(entry, root / "roles" / role / index)
    if playbook.default:
        yield from _inside(playbook.default, root / "default")


def _inside(step: ScriptedStep, place: Place) -> Iterator[tuple[Place, ScriptedStep]]:
    yield place, step
    for key in ("choose", "steps", "attempts", "repairs"):
        for index, inner in enumerate(getattr(step, key, ())):
            yield from _inside(inner, place / key / index)


def _check(step: ScriptedStep, where: Place, problems: Problems) -> None:
    templates = {"json": step.payload, "text": step.text, "arguments": step.arguments, "patch": step.patch}
    for key, template in templates.items():
        problems.collect(check_template, template, where / key, TEMPLATE_NAMES)
    if isinstance(step, Choice):
        problems.collect(check_expression, step.when, where / "when", TEMPLATE_NAMES)
