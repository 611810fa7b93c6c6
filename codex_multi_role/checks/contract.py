"""What a check is: what it takes (its step's ``with``, read into a model), what it may use, and what it returns."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from codex_multi_role.errors import CheckFailed, RunInterrupted, StorageError, UsageError
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.reading.nearest import no_such
from codex_multi_role.reading.value_types import ValueType
from codex_multi_role.workspace import PathRefused, Workspace, Worktrees
from codex_multi_role.workspace.commands import Sandbox, no_sandbox

if TYPE_CHECKING:
    from codex_multi_role.checks.interpreter import Interpreter

OptionsT = TypeVar("OptionsT", bound="CheckOptions")
_SHOWN_CHARACTERS = 60


class CheckOptions(BaseModel):
    """Base of all check options: unknown options are rejected, and values are never converted to another type.

    Only a number becomes a text in a list or mapping of texts, because ``{{ … }}`` keeps its type. A field's
    description is the hint shown for a mistake in it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _know_every_name(cls, data: object) -> object:
        known = _fields(cls)
        for name in data if isinstance(data, dict) else ():
            if name not in known:
                raise _unknown(str(name), list(known))
        return data

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_as_texts(cls, value: object, field: ValidationInfo) -> object:
        if isinstance(value, list | dict) and _is_of_texts(cls.model_fields[field.field_name or ""].annotation):
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            texts = {key: str(each) if type(each) in (int, float) else each for key, each in pairs}
            return texts if isinstance(value, dict) else [*texts.values()]
        return value


class WrongOption(UsageError):
    """A mistake in the options of a check. ``path`` leads to it; ``value``: what is there instead of a text."""

    def __init__(self, message: str, hint: str, path: Sequence[int | str], value: object = None) -> None:
        super().__init__(message, hint)
        self.path = path
        self.value = value


def require_option_names(kind: type[BaseModel], given: Collection[str]) -> None:
    """Raise `WrongOption` if ``given`` has a name that is not an option of ``kind``, or lacks a required one."""
    known = _fields(kind)
    for name in given:
        if name not in known:
            raise WrongOption(*no_such("option", name, known), (name,))
    for name, option in known.items():
        if option.is_required() and name not in given:
            raise WrongOption(f'the option "{name}" is missing', f"{name}: {option.description}", ())


_SAMPLES = {"string": "", "number": 1, "boolean": True, "array": [], "object": {}, "null": None}


def require_option_values(kind: type[BaseModel], given: Mapping[str, object], types: Mapping[str, ValueType]) -> None:
    """Raise `WrongOption` for the first value of ``given`` that ``kind`` does not accept.

    ``types``: what is known of the options whose values only a run knows. Values that may be right pass.
    """
    for detail in _mistakes(kind, given):
        if detail["loc"][:1] in {(name,) for name in given} or not (detail["loc"] or types):
            value = detail["input"] if detail["type"] == "string_type" else None
            raise WrongOption(_in_words(detail), _hint(kind, detail), detail["loc"], value)
    for name, known in types.items():
        samples = [_SAMPLES[each] for each in known.kinds] if known.values is None else known.values
        found = [_refusal(kind, name, sample, is_exact=known.values is not None) for sample in samples]
        refusals = list(filter(None, found))
        if found and len(refusals) == len(found):
            raise WrongOption(f"{name}: it would be {known.in_words}", _hint(kind, refusals[0]), (name,))


def _refusal(kind: type[BaseModel], name: str, sample: object, *, is_exact: bool) -> ErrorDetails | None:
    """Why no option of this name can have the value, or the kind, of ``sample``."""
    own = (detail for detail in _mistakes(kind, {name: sample}) if detail["loc"][:1] == (name,))
    return next((detail for detail in own if is_exact or detail["type"].endswith("_type")), None)


def _mistakes(kind: type[BaseModel], given: Mapping[str, object]) -> Sequence[ErrorDetails]:
    try:
        kind.model_validate(dict(given))
    except ValidationError as error:
        return error.errors(include_url=False)
    except LookupError:  # a validator that reads an option which is left out here
        return ()
    return ()


def _is_of_texts(annotation: object) -> bool:
    """Whether a type, or one of a union, is a list or a mapping of texts."""
    kind, inner = get_origin(annotation), get_args(annotation)
    if kind in (list, tuple, dict, Sequence, Mapping):
        last = inner[-2] if inner[-1] is ... else inner[-1]
        return (get_args(last)[0] if get_origin(last) is Annotated else last) is str
    return any(map(_is_of_texts, inner))


def inside(workspace: Workspace, relative: str, option: str) -> Path:
    """The path of ``relative``, a file or folder of the workspace. Raises UsageError that begins with ``option``."""
    given = relative.rstrip("/")
    try:
        if os.path.isdir(workspace.root / given):  # noqa: PTH112 - Path.is_dir raises for an impossible file name
            return workspace.resolve_inside(f"{given}/x").parent
        return workspace.resolve_inside(given)
    except PathRefused as error:
        hint = "Name a file or a folder of the workspace, relative to it."
        raise UsageError(f"{option}: {error.reason} {given!r}", hint) from error


def _fields(kind: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in kind.model_fields.items()}


def _unknown(name: str, known: list[str]) -> PydanticCustomError:
    problem, hint = no_such("option", name, known)
    context = {"problem": problem, "hint": hint}
    return PydanticCustomError("unknown_option", "{problem}", context)


def _in_words(detail: ErrorDetails) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"])
    return ": ".join(filter(None, (place.removeprefix("."), _words(detail))))


def _words(detail: ErrorDetails) -> str:
    if detail["type"] == "missing":
        return "is missing"
    if detail["type"] == "unknown_option":
        return detail["msg"]
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    is_text = detail["type"] == "string_type"
    shown = json.dumps(detail["input"], ensure_ascii=False, default=str) if is_text else repr(detail["input"])
    shown = shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}…"
    wanted = "must be text" if is_text else f"{detail['msg'][:1].lower()}{detail['msg'][1:]}"
    return f"{wanted}, not {shown}"


def _hint(kind: type[BaseModel], detail: ErrorDetails) -> str:
    if detail["type"] == "unknown_option":
        return str(detail["ctx"]["hint"])
    described = {name: field.description for name, field in _fields(kind).items()}
    options = detail["loc"][:1] or described
    return "; ".join(f"{option}: {described[str(option)]}" for option in options if described.get(str(option)))


class ResultPart(BaseModel):
    """A part of a result: exactly the declared fields, never converted. A field with a default may be missing."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CheckResult(ResultPart):
    """Base of all check results. ``bad``: the values of ``status`` with which the result counts against its step.

    A result that can have several must say so, with ``bad = ()`` if none is; see `Check`.
    """

    bad: ClassVar[Collection[str]] = ()

    if TYPE_CHECKING:
        status: Any  # or a narrower type would be a wrong override, to a type checker
    else:
        status: str

    @classmethod
    def why_bad(cls, result: Mapping[str, Any]) -> str:
        """Why ``result``, as the check gave it, is bad; empty if it is not."""
        problems = result.get("problems")  # some checks only count them
        first = problems[0] if problems and isinstance(problems, list) else ""
        status, why = str(result["status"]), result.get("reason") or first
        return "" if status not in cls.bad else f"{status}: {why}" if why else status


def as_json(result: BaseModel) -> dict[str, object]:
    """The fields that the check gave, under the names that templates use."""
    return result.model_dump(by_alias=True, exclude_unset=True)


@dataclass(frozen=True)
class RunFacts:
    """The run so far. ``unit``: the check's own unit key.

    ``turns``: the ``turn.json`` of each turn that the run paid for, with its ``role``. ``searches_web``: whether the
    role of that name has Codex's own web search.
    """

    run_id: str
    flow: str
    started_at: str
    folder: Path
    unit: str
    turns: Sequence[Mapping[str, Any]]
    searches_web: Callable[[str], bool] = lambda _: False


COULD_NOT_RUN = "could not run"
"""The status of a check that could not give a verdict."""


def _no_run() -> RunFacts:
    raise UsageError("this check can only run within a run")


def _no_settings() -> Any:  # noqa: ANN401 - any settings model
    raise UsageError("this check has no settings file")


@dataclass(frozen=True)
class CheckContext:
    """Everything a check may use.

    ``folder`` receives this visit's artifacts (``runs/<id>/tests/003``); pass text for people through ``redact``.
    ``sandbox`` wraps a command so that it can write only to the workspace and to the given folder. ``options`` is the
    step's ``with``. ``worktrees`` are the run's copies of the workspace, ``run`` returns the facts of the run,
    ``settings`` those declared by the check. ``python`` runs the project's tests, None if it is
    still to be found. ``publish`` takes an `AddedEvent` of the extension.
    ``stopping`` is set when the run must stop: pass it to the commands you run.
    """

    workspace: Workspace
    folder: Path
    environment: Mapping[str, str]
    deadline_seconds: float
    sandbox: Sandbox = no_sandbox
    options: Mapping[str, object] = field(default_factory=dict)
    stopping: Event = field(default_factory=Event)
    worktrees: Worktrees | None = None
    redact: Redactor = field(default_factory=lambda: Redactor({}))
    run: Callable[[], RunFacts] = _no_run
    settings: Callable[[], Any] = _no_settings
    python: Interpreter | None = None
    publish: Callable[[Any], None] = lambda event: None

    def in_copy(self, key: str) -> CheckContext:
        """The same context in the copy with that key; without a key, the context itself. Raises UsageError."""
        if not key:
            return self
        if self.worktrees is None:
            raise UsageError(f"no copy {key!r} of the workspace")
        self.worktrees.prepare(key)  # only if the run has moved to another machine since
        return replace(self, workspace=self.worktrees.open(key).workspace)

    def read_options(self, kind: type[OptionsT], check: str) -> OptionsT:
        """The options of the check called ``check``.

        Raises UsageError beginning with ``check <name>: <option>:`` for the first mistake; unknown options come first.
        """
        try:
            return kind.model_validate(dict(self.options))
        except ValidationError as error:
            detail = error.errors(include_url=False)[0]
            raise UsageError(f"check {check}: {_in_words(detail)}", _hint(kind, detail)) from error

    def write_artifact(self, name: str, text: str) -> Path:
        """Write ``text`` to ``name`` in the visit's folder, secrets masked; return the file. Raises StorageError."""
        path = self.folder / name
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(self.redact(text), encoding="utf-8")
        except OSError as error:
            raise StorageError(f"{path} cannot be written: {error.strerror}") from error
        return path


# A check's result has a `status`. A bad verdict is a result; CheckFailed means that there is no verdict.
CheckFunction = Callable[[CheckContext], BaseModel | dict[str, object]]
MaxSeconds = Callable[[Mapping[str, object], float], float]


def deadline(options: Mapping[str, object], deadline_seconds: float) -> float:
    """The `max_seconds` of a check that declares nothing else."""
    return deadline_seconds


@dataclass(frozen=True)
class Settings:
    """A YAML file beside the catalog, or otherwise the packaged one of that name, and its model."""

    file: str
    model: type[BaseModel]


@dataclass(frozen=True)
class Check:
    """A check, and what must be known about it before a run.

    ``options``: the model of the step's ``with``, None if the check does not declare it. ``max_seconds(options,
    deadline_seconds)``: the most that it takes, from the options known before the run, not yet validated.
    ``read_only``: it does not change the workspace on purpose; what tests leave behind does not count. ``settings`` are
    validated before a run and kept with it. ``uses_python``: it runs tests with the project's Python, which needs
    pytest and coverage for it. ``result``: the model of what it returns, which says what is bad of it.
    ``undo_interrupted``: what a killed attempt changed in the workspace is undone before the check is done again.
    """

    run: CheckFunction
    result: type[CheckResult]
    options: type[BaseModel] | None = None
    max_seconds: MaxSeconds = deadline
    read_only: bool = False
    settings: Settings | None = None
    uses_python: bool = False
    undo_interrupted: bool = False

    def __post_init__(self) -> None:
        """Raise `UsageError` if nothing says which of its results are bad: all of them would count as good."""
        kinds = self.result.__mro__[: self.result.__mro__.index(CheckResult)]
        says = any({"bad", "why_bad"} & vars(each).keys() for each in kinds)
        if not says and len(get_args(self.result.model_fields["status"].annotation)) != 1:
            raise UsageError(
                f"its result {self.result.__name__} can have several statuses and does not say which are bad",
                'Add `bad = ("failed",)` to the class, or `bad = ()` if none is.',
            )

    @property
    def what_is_bad(self) -> str:
        """Which results are bad, in words; empty if none is."""
        kind = self.result
        own = kind.why_bad.__func__ is not CheckResult.why_bad.__func__  # type: ignore[attr-defined]
        if own:
            return (kind.why_bad.__doc__ or "").strip().rstrip(".").lower()
        return f"status {', '.join(kind.bad)}" if kind.bad else ""

    def why_bad(self, result: Mapping[str, Any]) -> str:
        """Why a result of this check is bad, as its model says; empty if it is not."""
        return self.result.why_bad(result)

    def __call__(self, context: CheckContext) -> dict[str, object]:
        """Run it; a result that is a model is also written to ``result.json``. Raises StorageError."""
        result = self.run(context)
        if not isinstance(result, BaseModel):
            return result
        fields = as_json(result)
        context.write_artifact("result.json", json.dumps(context.redact.within(fields), indent=2) + "\n")
        return fields


def declare_check(
    *,
    result: type[CheckResult],
    options: type[BaseModel] | None = None,
    max_seconds: MaxSeconds = deadline,
    read_only: bool = False,
    settings: Settings | None = None,
    uses_python: bool = False,
    undo_interrupted: bool = False,
) -> Callable[[CheckFunction], Check]:
    """Make a `Check` of a function. Raises `UsageError` if its results say nothing of what is bad."""
    return lambda run: Check(run, result, options, max_seconds, read_only, settings, uses_python, undo_interrupted)


def no_time(options: Mapping[str, object], deadline_seconds: float) -> float:
    """For `max_seconds`: the duration of a check that waits for nothing is negligible."""
    return 0.0


def at_most_own(options: Mapping[str, object], deadline_seconds: float) -> float:
    """For `max_seconds`: the option ``timeout_seconds``, which cannot exceed the deadline."""
    own = options.get("timeout_seconds")
    return min(own, deadline_seconds) if isinstance(own, int | float) else deadline_seconds


class TimeLeft:
    """The deadline of a check that works long in the run's own process, where nothing else would end it.

    It counts from here.
    """

    def __init__(self, context: CheckContext, check: str) -> None:
        self._context = context
        self._check = check
        self._until = time.monotonic() + context.deadline_seconds

    def require(self) -> None:
        """Raise `CheckFailed` after the deadline, `RunInterrupted` if the run must stop."""
        if self._context.stopping.is_set():
            raise RunInterrupted
        if time.monotonic() > self._until:
            raise CheckFailed(f"check {self._check}: took longer than {self._context.deadline_seconds:g} s")
