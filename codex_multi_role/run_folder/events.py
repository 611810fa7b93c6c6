"""The typed events of a run.

The live view, ``--json``, ``watch``, the report and telemetry read only these, so that a run looks the same during and
after it. ``as_record`` returns the JSON object of one line, `event_of` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, dataclass_transform

Record = dict[str, Any]
ADDED = "added."


def now() -> str:
    """The current time, ISO 8601 in UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class RunEvent:
    """Base of all run events. ``type``: the class's name in snake case. ``at``: the time; empty until it is recorded.

    A new field needs a default, because records of earlier versions lack it.
    """

    type: ClassVar[str]
    at: str = field(default="", kw_only=True)

    def __init_subclass__(cls) -> None:
        letters = (f"_{letter.lower()}" if letter.isupper() else letter for letter in cls.__name__)
        cls.type = "".join(letters).lstrip("_")
        if cls.__module__ == __name__:  # others are decorated where they are
            dataclass(frozen=True)(cls)

    def as_record(self) -> Record:
        """The JSON object of one line: ``type`` and ``at`` first."""
        record = {"type": self.type, **asdict(self)}
        record["at"] = self.at or now()
        return record


class AddedEvent(RunEvent):
    """Base of an event that an extension publishes, a frozen dataclass like those below.

    Its type starts with `ADDED`. An entry point registers it under the rest in the group ``codex_multi_role.events``.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.type = f"{ADDED}{cls.type}"

    def in_words(self) -> str:
        """One line of the live view, ``show`` and the report; empty for none."""
        return ""

    def figures(self) -> Mapping[str, int | float | str]:
        """What telemetry adds to the run's span, by name."""
        return {}


class TurnEvent(RunEvent):
    """Base of the events of a turn. ``role``: the process that has it; ``turn``: its number there."""

    role: str
    turn: int


class UnknownEvent(RunEvent):
    """An event that this version cannot read; viewers ignore it. ``at`` is empty if not even that can be read."""


class RunStarted(RunEvent):
    """A session starts. ``steps``: the flow's, in order. ``limits``: of turns, tokens, seconds and cost, as far as set.

    ``cycles``: 0 if the flow does not use them.

    ``worked_seconds`` as in `TurnEnded`, of the earlier sessions. ``earlier_cost``: what they cost in US dollars; None
    if a turn of theirs has no price. ``python``: the interpreter for the tests, ``{path, version, source}``; its
    version is empty if nothing needs it.
    """

    run_id: str
    goal: str
    flow: str
    cycles: int
    roles: list[str]
    workspace: str
    folder: str
    playbook: str | None
    resumed: bool
    steps: list[str] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)
    worked_seconds: float = 0.0
    earlier_cost: float | None = 0.0
    python: dict[str, str] = field(default_factory=dict)


class RunForked(RunEvent):
    """A fork's first session starts. ``message``: from where, and with which workspace, in words."""

    message: str


class ProcessesStarting(RunEvent):
    """The session starts a Codex process for each of these roles at once; the others start when they are needed."""

    roles: list[str]


class RoleStarted(RunEvent):
    """A Codex process is ready for its first turn."""

    role: str
    pid: int
    thread_id: str
    seconds: float
    resumed: bool


class StepStarted(RunEvent):
    """A visit of a step starts.

    ``journal_step`` is its place in the journal, 0 in a called flow; ``workspace`` is the workspace's state among the
    run's snapshots, empty if nothing in the run can change it. ``title``: what its author calls it.
    """

    step: str
    visit: int
    cycle: int
    journal_step: int = 0
    workspace: str = ""
    title: str = ""


class StepEnded(RunEvent):
    """A visit of a step has ended. ``state`` and ``reason`` as of an item, ``bad``: why its result is bad.

    ``met``: whether its ``until`` holds, so that only this counts, whatever became of its items.
    A run that was killed meanwhile may lack it: then the walk's next step ends it.
    """

    step: str
    visit: int
    state: str
    reason: str = ""
    bad: str = ""
    met: bool = False


class TurnStarted(TurnEvent):
    """``unit``: the key of the asking unit, empty in a team. ``worked_seconds`` as in `TurnEnded`."""

    cycle: int
    attempt: int
    repair_of: int | None
    continues: int | None = None
    unit: str = ""
    model: str = ""
    thread_id: str = ""
    worked_seconds: float | None = None


class RoleActivity(TurnEvent):
    """What a role is doing during its turn, in one line."""

    activity: str


class UsageCounted(TurnEvent):
    """What a running turn has used so far; ``cost`` as in `TurnEnded`."""

    input_tokens: int
    output_tokens: int
    cost: float | None


class Approval(TurnEvent):
    method: str
    decision: str
    detail: str


class ToolCalled(TurnEvent):
    """A role called a tool of the controller; arguments and answer are in the turn's ``tool_calls.jsonl``."""

    tool: str
    success: bool
    seconds: float


class McpCallEnded(TurnEvent):
    """A call of an MCP server's tool has ended. ``arguments`` and ``result`` are shortened; the wire log has them."""

    server: str
    tool: str
    arguments: str
    status: str
    result: str
    seconds: float


class CommandEnded(TurnEvent):
    """A command that a role's Codex ran has ended; ``exit_code`` is -1 if it has none. The wire log has its output."""

    command: str
    exit_code: int
    seconds: float


class TurnEnded(TurnEvent):
    """``status``, ``outcome`` (one word) and ``reason`` (a sentence) as in ``turn.json``.

    ``worked_seconds``: the time worked on the run so far, as ``--max-seconds`` counts it; None if an earlier version
    did not record it. ``cost``: in US dollars; None if the model has no price. ``reused_from``: the turn of
    an earlier run, ``RUN/ROLE/TURN``, that was taken over instead of asking; its tokens do not count again.

    If a session was killed before it published the end of a turn, the next session does so before its `RunStarted`,
    with what ``turn.json`` has of the turn and the time of the killed session's last event.
    """

    status: str
    outcome: str
    reason: str
    input_tokens: int
    output_tokens: int
    seconds: float
    summary: str
    worked_seconds: float | None = None
    cost: float | None = None
    reused_from: str = ""


class ReplyRepaired(TurnEvent):
    """A damaged JSON object was repaired without asking the model again."""

    how: str = "local"


class FilesApplied(TurnEvent):
    written: int
    skipped: int
    paths: list[str] = field(default_factory=list)


class ProtectedRestored(TurnEvent):
    """Files that match ``protect`` were restored after a turn, or before or after tests (``turn`` 0: by a check)."""

    paths: list[str]


class CopyMerged(RunEvent):
    """A role's changes in a copy of the workspace were merged. ``status``: merged, unchanged or conflicts."""

    copy: str
    status: str
    paths: list[str]
    conflicts: list[dict[str, str]]


class TestsStarted(RunEvent):
    """``unit``: the key of the unit whose check runs them; empty after a turn, and at the end of the run."""

    __test__ = False
    number: int
    role: str
    turn: int
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class ComparedFigures:
    """How the tests compare with those before the first turn, as in the result of the check ``tests``."""

    new_failures: int = 0
    still_failing: int = 0
    fixed: int = 0
    removed: int = 0
    moved: int = 0
    dropped: int = 0
    flaky: int = 0
    without_baseline: str = ""
    not_seen: str = ""


class TestsEnded(ComparedFigures, RunEvent):
    """``failures``: the first failed tests, new ones before others; ``messages``: what they say, if anything.

    The others are as in the result of the check ``tests``.
    """

    __test__ = False
    number: int
    status: str
    passed: int
    failed: int
    errors: int
    skipped: int
    seconds: float
    failures: list[str] = field(default_factory=list)
    verdict: str = ""
    other_counts: dict[str, int] = field(default_factory=dict)
    forbidden: dict[str, int] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)


class BaselineStarted(RunEvent):
    """The tests run before the first change; ``in_copy`` as in `BaselineMeasured`.

    ``last_seconds``: how long they took the last time, 0.0 if unknown.
    """

    in_copy: bool = False
    last_seconds: float = 0.0


class BaselineMeasured(RunEvent):
    """The tests as they were before the first turn. ``problem``: why nothing can be compared with them.

    ``in_copy``: they ran in a copy of the workspace, for tests in copies.
    ``left_by``: how many of the failures were new in an earlier run in this workspace, by its id.
    """

    status: str
    passed: int
    failed: int
    errors: int
    skipped: int
    seconds: float
    problem: str = ""
    in_copy: bool = False
    left_by: dict[str, int] = field(default_factory=dict)
    other_counts: dict[str, int] = field(default_factory=dict)
    forbidden: dict[str, int] = field(default_factory=dict)


class DoneIgnored(TurnEvent):
    """A role said DONE, which does not count; ``reason``: why, empty if the role is not allowed to finish."""

    reason: str = ""


class RoleRestarted(RunEvent):
    role: str
    reason: str


class RolesReloaded(RunEvent):
    """Saved changes apply from each role's next turn on: the changed keys, by role.

    ``catalog_file``: the YAML in use from now on, below the run's ``catalog/``.
    """

    roles: dict[str, list[str]]
    catalog_file: str


class FlowsReloaded(RunEvent):
    """A resumed run uses flows that were edited since, from here on: their names.

    ``catalog_file``: the YAML in use from now on, below the run's ``catalog/``.
    """

    flows: list[str]
    catalog_file: str


class RoleSkipped(RunEvent):
    """An optional role failed; the run continues without its handoff."""

    role: str
    reason: str


class ReviewAsked(RunEvent):
    """A person is asked; the question, with its options and fields, is in ``reviews/<key>.json``."""

    key: str
    question: str


class ReviewAnswered(RunEvent):
    """``by``: a user's name, ``--yes`` or ``time limit``. ``values``: those of the fields, by name.

    ``comments``: those on lines.
    """

    key: str
    approved: bool
    comment: str
    by: str
    option: str = ""
    values: dict[str, object] = field(default_factory=dict)
    comments: list[dict[str, object]] = field(default_factory=list)


class FinalCheckEnded(RunEvent):
    """A check of the flow's ``finally`` has ended; ``problem``: why its result is bad, or why it could not run."""

    id: str
    check: str
    problem: str


class StateChanged(RunEvent):
    """``unit``: the key of a fan-out's item, ``item``: its name; both empty for the run itself.

    ``title``: what people call the item; only with its first state.
    """

    unit: str
    item: str
    state: str
    reason: str
    title: str = ""


class Warning(RunEvent):
    message: str


class RunEnded(RunEvent):
    """``result`` as in ``run.json``, empty without one; ``workspace`` as in `StepStarted`, at the end."""

    status: str
    outcome: str
    reason: str
    exit_code: int
    totals: dict[str, int | float | None]
    folder: str
    result: dict[str, object] = field(default_factory=dict)
    workspace: str = ""
