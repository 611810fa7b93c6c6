"""What a run left in its folder, as objects: the run, its result, its turns. All of it is read when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

import codex_multi_role.lifecycle.running as running
import codex_multi_role.presentation.recorded as recorded
from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.lifecycle.stopping import pause_run, stop_run
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.result import whole_text
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import (
    Answer,
    AskPerson,
    Question,
    Questions,
    RunEvent,
    RunFolder,
    event_of,
    list_runs,
    read_events,
    skim_with_inherited,
)
from codex_multi_role.run_folder.cost import Cost, as_number
from codex_multi_role.run_folder.events import StateChanged, StepStarted, TurnStarted
from codex_multi_role.run_folder.folder import LATEST
from codex_multi_role.run_options import RunPlace, RunReport

if TYPE_CHECKING:
    from codex_multi_role.option_keywords import ForkKeywords, ResumeKeywords

OnTypedEvent = Callable[[RunEvent], None]
RUNS_DIR = RunPlace.runs_dir


@dataclass(frozen=True, eq=False)
class Recorded(Mapping[str, Any]):
    """What a run recorded: the usual values are typed fields, and all of them are there by name (``details``)."""

    details: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, details: Mapping[str, Any]) -> Self:
        """A field has its default where a run recorded nothing, such as one of an earlier version."""
        named = {each.name: details[each.name] for each in fields(cls) if each.name in details}
        return cls(**{**named, "details": details})

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - as recorded
        return self.details[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.details)

    def __len__(self) -> int:
        return len(self.details)


@dataclass(frozen=True, eq=False)
class RunTotals(Recorded):
    """What all turns of a run used. ``cost`` is in US dollars; None if any turn has no price."""

    turns: int = 0
    repairs: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = None
    unpriced_turns: int = 0


@dataclass(frozen=True, eq=False)
class RunResult(Recorded):
    """What the flow declares as its result. It has a ``text``, or a ``file`` of the run folder or the workspace."""

    title: str = ""
    text: str = ""
    file: str = ""
    format: str = "text"
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RecordedTests(Recorded):
    """One run of the tests. ``status`` is pytest's own, ``verdict`` compares with the state before the run."""

    number: int = 0
    folder: str = ""
    status: str = ""
    verdict: str = ""
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    seconds: float = 0.0
    new_failures: int = 0
    new_failures_tests: list[str] = field(default_factory=list)
    removed: int = 0


@dataclass(frozen=True)
class Turn:
    """One prompt to one role, and its answer. ``role`` is the process: ``planner``, or ``planner.2`` for a second one.

    ``details``: all of ``turn.json``. ``step``: the run's own step that it belongs to. ``started``: None if a kill came
    before it was announced.
    """

    role: str
    number: int
    folder: Path
    details: Json = field(repr=False)
    step: str = ""
    started: datetime | None = None

    @property
    def status(self) -> str:
        """``completed``, ``invalid``, ``failed``, ``interrupted``, …; ``details["reason"]`` says why."""
        return str(self.details.get("status", ""))

    @property
    def input_tokens(self) -> int:
        """Tokens read by the model, from its cache as well. 0 while the turn runs, or if they were not reported."""
        return TokenUsage.of_record(self.details.get("tokens", {})).input

    @property
    def output_tokens(self) -> int:
        """Tokens written by the model. 0 while the turn runs, or if they were not reported."""
        return TokenUsage.of_record(self.details.get("tokens", {})).output

    @property
    def model(self) -> str:
        return str(self.details.get("model", ""))

    @property
    def seconds(self) -> float:
        """From the prompt to the end of the turn. 0 while it runs."""
        return float(self.details.get("seconds", 0.0))

    @property
    def cost(self) -> float | None:
        """In US dollars; None if it is unknown, such as for a model without a price."""
        return as_number(Cost.of_turn(self.details).known)

    @property
    def prompt(self) -> str:
        return _text(self.folder / "prompt.txt")

    @property
    def answer(self) -> str:
        """The text of the answer, as the model wrote it."""
        return _text(self.folder / "assistant_text.txt")

    @property
    def handoff(self) -> Json | None:
        """The validated answer; None if the turn left none."""
        return read_object(self.folder / "handoff.json") or None


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


class RunContents:
    """The content of a run's ``folder``, and what can be done with the run."""

    folder: Path

    @property
    def record(self) -> Json:
        """``run.json``. Raises `RunNotFound`."""
        return RunFolder(self.folder).record()

    @property
    def goal(self) -> str:
        return str(self.record["goal"])

    @property
    def flow(self) -> str:
        return str(self.record["flow"])

    @property
    def started(self) -> datetime:
        return datetime.fromisoformat(self.record["started_at"])

    @property
    def step(self) -> str:
        """The step of the run's own flow that it is at, or ended at; empty before the first."""
        return Course.of(skim_with_inherited(RunFolder(self.folder), {StepStarted})).current_step

    @property
    def result_text(self) -> str | None:
        """The whole text of the result, or of its file; None without either. Raises `StorageError`."""
        return whole_text(RunFolder(self.folder), self.record)

    @property
    def turns(self) -> list[Turn]:
        """All turns in the order they began."""
        course = Course.of(skim_with_inherited(RunFolder(self.folder), {StepStarted, StateChanged, TurnStarted}))
        turns = course.turns.items()
        starts = {key: (course.step_of(turn), datetime.fromisoformat(turn.began)) for key, turn in turns}
        return [
            Turn(turn["role"], turn["turn"], Path(turn["folder"]), turn, *starts.get((turn["role"], turn["turn"]), ()))
            for turn in recorded.read_turns(RunFolder(self.folder), starts)
        ]

    @property
    def tests(self) -> list[RecordedTests]:
        """All test runs in order."""
        return [RecordedTests.of(each) for each in recorded.read_tests(RunFolder(self.folder))]

    @property
    def handoffs(self) -> dict[str, Json]:
        """The latest handoff of each role."""
        return dict(read_object(RunFolder(self.folder).state_path).get("latest_json_by_role", {}))

    @property
    def files(self) -> list[str]:
        """The files that the run changed, relative to its workspace."""
        return recorded.changed_files(RunFolder(self.folder), self.record)

    @property
    def events(self) -> Iterator[RunEvent]:
        """The events in order; see the classes in `codex_multi_role.events`."""
        return read_events(RunFolder(self.folder).events_path)

    @property
    def questions(self) -> list[Question]:
        """What the run asks a person now."""
        return recorded.open_questions(RunFolder(self.folder), self.record)

    def answer(
        self,
        *,
        approved: bool = True,
        comment: str = "",
        question: str | None = None,
        values: Mapping[str, object] | None = None,
    ) -> Question:
        """Answer the question with the key ``question``, by default the only open one. Raises `UsageError`.

        ``values``: of the question's fields by name, and the ``option``.
        """
        return Questions(self.folder).answer(question, Answer(approved, comment, values=dict(values or {})))

    def resume(
        self,
        *,
        on_event: OnTypedEvent | None = None,
        ask_person: AskPerson | None = None,
        **changes: Unpack[ResumeKeywords],
    ) -> ReportedRun:
        """Resume the run and wait until it ends. ``changes``: `RunOptions` fields. Raises what `resume` raises."""
        return worked_on(self.folder, running.resume, untyped(on_event), ask_person, changes=changes)

    def fork(
        self,
        start: str,
        *,
        on_event: OnTypedEvent | None = None,
        ask_person: AskPerson | None = None,
        **changes: Unpack[ForkKeywords],
    ) -> ReportedRun:
        """Start another run from ``start`` (``STEP[:VISIT]``) of this one. Raises what `fork` raises."""
        return worked_on(self.folder, running.fork, untyped(on_event), ask_person, start=start, changes=changes)

    def cancel(self) -> None:
        """Stop the run in the process that works on it, and wait until it has stopped; nothing if it has ended.

        That process continues its other work. Raises `UsageError` if it is gone, `RunBusy` after a minute.
        """
        stop_run(RunFolder(self.folder))

    def pause(self) -> None:
        """Let the run park once the turns at work have ended, if it is not parked; `resume` continues it.

        Raises `UsageError` if nobody works on it.
        """
        pause_run(RunFolder(self.folder))


@dataclass(frozen=True)
class ReportedRun(RunReport, RunContents):
    """How a run ended, and what it left."""

    totals: RunTotals
    result: RunResult | None = None

    @classmethod
    def of(cls, report: RunReport) -> ReportedRun:
        typed = {"totals": RunTotals.of(report.totals), "result": report.result and RunResult.of(report.result)}
        return cls(**{**vars(report), **typed})


@dataclass(frozen=True)
class Run(RunContents):
    """A recorded run: at work in some process, stopped, or over."""

    folder: Path

    @property
    def run_id(self) -> str:
        return self.folder.name

    @property
    def status(self) -> str:
        """``running``, ``succeeded``, ``ended``, ``failed``, ``parked``, ``interrupted`` or ``killed``."""
        return recorded.status_now(RunFolder(self.folder), self.record)

    @property
    def outcome(self) -> str:
        return str(self.record["outcome"])

    @property
    def reason(self) -> str:
        return str(self.record["reason"])

    @property
    def hint(self) -> str:
        """What to do next, if anything."""
        return RunFolder(self.folder).complete(str(self.record.get("hint") or ""))

    @property
    def exit_code(self) -> int | None:
        """None before its first end."""
        return self.record["exit_code"]  # type: ignore[no-any-return]

    @property
    def result(self) -> RunResult | None:
        return (found := self.record.get("result")) and RunResult.of(found)

    @property
    def seconds(self) -> float:
        """How long processes have worked on it."""
        return self.totals.seconds

    @property
    def cost(self) -> float | None:
        """In US dollars; None if that of a turn is unknown."""
        return self.totals.cost

    @property
    def totals(self) -> RunTotals:
        return RunTotals.of(recorded.totals_now(RunFolder(self.folder), self.record))


def load_run(reference: str = LATEST, *, runs_dir: Path | str = RUNS_DIR) -> Run:
    """The run with that id or a unique prefix of it, by default the newest. Raises `RunNotFound`."""
    return Run(RunFolder.find(runs_dir, reference).path)


def runs(runs_dir: Path | str = RUNS_DIR) -> list[Run]:
    """All runs below ``runs_dir``, the newest first."""
    return [Run(folder.path) for folder in reversed(list_runs(Path(runs_dir)))]


def worked_on(
    folder: Path,
    how: Callable[..., RunReport],
    on_event: running.OnEvent | None,
    ask: AskPerson | None,
    **given: object,
) -> ReportedRun:
    """Work on the run in ``folder``, or on a fork of it, until it ends. ``given``: what ``how`` takes as well."""
    return ReportedRun.of(how(folder.name, runs_dir=folder.parent, on_event=on_event, ask_person=ask, **given))


def untyped(on_event: OnTypedEvent | None) -> running.OnEvent | None:
    """A callback for event records that gives ``on_event`` the typed events."""
    return None if on_event is None else lambda record: on_event(event_of(record))
