"""A run in plain lines: one per event that means something to a reader, with its time; and a question to a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import singledispatch

from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.course import ACTIVITIES, Course
from codex_multi_role.presentation.outcome import (
    Incident,
    added_in_words,
    incident_in_words,
    kind_of,
    playbook_in_words,
    status_in_words,
)
from codex_multi_role.presentation.wording import (
    BEFORE,
    answer_in_words,
    clock,
    duration,
    failed_tests,
    one_line,
    plural,
    running_before,
    verdict,
    verdict_before,
)
from codex_multi_role.run_folder import Question, RunEvent, events
from codex_multi_role.run_folder.cost import dollars
from codex_multi_role.run_folder.states import COMPLETED, PENDING
from codex_multi_role.run_folder.typed_answers import how_to_answer

BEGINNINGS = (events.StepStarted, events.TurnStarted)
SHOWN_LINES = 200
"""Maximum lines of what a question is about."""


class PlainLines:
    """Converts events to lines, in order."""

    def __init__(self, course: Course) -> None:
        self.course = course

    def of(self, event: RunEvent) -> list[str]:
        """Return the lines of one event, often none."""
        cycle = self.course.cycle_in_words
        self.course.apply(event)
        now = self.course.cycle_in_words
        said = [now] if now != cycle and isinstance(event, BEGINNINGS) else []
        formatter = _lines.registry.get(kind_of(event))  # as in `Course.apply`
        if formatter is not None:
            said += formatter(event)
        if isinstance(event, events.TurnStarted) and (task := self.course.role(event.role).task):
            said[-1] += f", for task {one_line(task)}"
        return [printable(f"{clock(event.at)}  {line}") for line in said]


@singledispatch
def _lines(event: RunEvent) -> list[str]:
    """What an event says; nothing, unless a function below is registered for its class."""
    return []


@_lines.register
def _added(event: events.AddedEvent) -> list[str]:
    return [words] if (words := added_in_words(event)) else []


@_lines.register
def _run_started(event: events.RunStarted) -> list[str]:
    verb = "continues" if event.resumed else "starts"
    cycles = f", {plural(event.cycles, 'cycle')}" if event.cycles else ""
    lines = [
        f"run {event.run_id} {verb}: flow {event.flow}{cycles}",
        f"goal: {one_line(event.goal)}",
        *_python(event.python),
    ]
    return [*lines, playbook_in_words(event.playbook)] if event.playbook else lines


def _python(python: Mapping[str, str]) -> list[str]:
    """Name the Python that runs the tests, if any test needs one."""
    match python:
        case {"version": version, "source": source, "path": path} if version:
            return [f"tests run with Python {version} ({one_line(source)}): {one_line(path)}"]
    return []


def _about(role: str, words: str) -> list[str]:
    return [f"{role}: {one_line(words)}"]


@_lines.register
def _run_forked(event: events.RunForked) -> list[str]:
    return [one_line(event.message, 500)]


@_lines.register
def _processes_starting(event: events.ProcessesStarting) -> list[str]:
    return [f"starting {plural(len(event.roles), 'Codex process')}"]


@_lines.register
def _role_started(event: events.RoleStarted) -> list[str]:
    how = "ready again, its conversation restored," if event.resumed else "ready"
    return _about(event.role, f"{how} after {duration(event.seconds)} (process {event.pid})")


@_lines.register
def _turn_started(event: events.TurnStarted) -> list[str]:
    repair = f", repairing the answer of turn {event.repair_of}" if event.repair_of is not None else ""
    if event.continues is not None and not repair:
        repair = f", continuing turn {event.continues}"
    attempt = f", attempt {event.attempt}" if event.attempt > 1 else ""
    return _about(event.role, f"turn {event.turn} starts{repair}{attempt}")


@_lines.register
def _role_activity(event: events.RoleActivity) -> list[str]:
    return [] if event.activity in ACTIVITIES else _about(event.role, event.activity)


@_lines.register
def _approval(event: events.Approval) -> list[str]:
    return _about(event.role, f"{event.decision} {event.method}: {event.detail}")


@_lines.register
def _tool_called(event: events.ToolCalled) -> list[str]:
    outcome = "answered" if event.success else "failed"
    return _about(event.role, f"tool {event.tool} {outcome} in {duration(event.seconds)}")


@_lines.register
def _mcp_call_ended(event: events.McpCallEnded) -> list[str]:
    call = f"MCP tool {event.server}/{event.tool} {event.arguments}"
    return _about(event.role, f"{call} {event.status} in {duration(event.seconds)}: {event.result}")


@_lines.register
def _turn_ended(event: events.TurnEnded) -> list[str]:
    tokens = f"{event.input_tokens:,} tokens in, {event.output_tokens:,} out"
    if event.reused_from:
        tokens = f"taken over from {event.reused_from}"
    status, outcome = status_in_words(event.status), status_in_words(event.outcome)
    words = [word for word in (outcome if outcome != status else "", event.reason) if word]
    why = f" ({': '.join(words)})" if words else ""
    said = f": {event.summary}" if event.summary else ""
    cost = "" if event.cost is None else f", {dollars(event.cost)}"
    took = f" in {duration(event.seconds)}" if event.seconds else ""  # unknown of a killed turn
    return _about(event.role, f"turn {event.turn} {status}{why}{took}, {tokens}{cost}{said}")


@_lines.register
def _reply_repaired(event: events.ReplyRepaired) -> list[str]:
    return _about(event.role, f"the damaged answer of turn {event.turn} was repaired without asking again")


@_lines.register
def _files_applied(event: events.FilesApplied) -> list[str]:
    skipped = f", {event.skipped} skipped" if event.skipped else ""
    return _about(event.role, f"{plural(event.written, 'file')} written{skipped}: {', '.join(event.paths)}")


@_lines.register
def _incident(event: Incident) -> list[str]:
    words = incident_in_words(event)
    return _about(event.role, words) if event.role else [one_line(words)]


@_lines.register
def _baseline_started(event: events.BaselineStarted) -> list[str]:
    return [f"{BEFORE}{_in_copy(event)}: {running_before(event.last_seconds)}"]


def _in_copy(event: events.BaselineStarted | events.BaselineMeasured) -> str:
    return " (in a copy of the workspace)" if event.in_copy else ""


@_lines.register
def _baseline_measured(event: events.BaselineMeasured) -> list[str]:
    problem = f"; every later failure counts: {event.problem}" if event.problem else ""
    told = f"{verdict_before(vars(event))}{_how_long(event)}{problem}"
    return [f"{BEFORE}{_in_copy(event)}: {told}"]


@_lines.register
def _tests_started(event: events.TestsStarted) -> list[str]:
    return [f"tests {event.number:03d}: running"]


@_lines.register
def _tests_ended(event: events.TestsEnded) -> list[str]:
    failed = failed_tests(vars(event))
    names = f": {failed}" if failed else ""
    return [f"tests {event.number:03d}: {verdict(vars(event))}{_how_long(event)}{names}"]


def _how_long(tests: events.TestsEnded | events.BaselineMeasured) -> str:
    return f" in {duration(tests.seconds)}"


@_lines.register
def _roles_reloaded(event: events.RolesReloaded) -> list[str]:
    changed = event.roles.items()
    return [f"{one_line(role)}: its file changed; from its next turn: {', '.join(keys)}" for role, keys in changed]


@_lines.register
def _flows_reloaded(event: events.FlowsReloaded) -> list[str]:
    return [f"the edited flow {' and '.join(map(one_line, event.flows))} is used from here on"]


@_lines.register
def _review_asked(event: events.ReviewAsked) -> list[str]:
    return [f"review {event.key}: {one_line(event.question, 500)}"]


@_lines.register
def _review_answered(event: events.ReviewAnswered) -> list[str]:
    comment = f": {one_line(event.comment, 500)}" if event.comment else ""
    comment += f" ({plural(len(event.comments), 'comment')} on lines)" if event.comments else ""
    chosen = answer_in_words(event.approved, event.option, event.values)
    return [f"review {event.key}: {chosen} by {one_line(event.by)}{comment}"]


@_lines.register
def _final_check_ended(event: events.FinalCheckEnded) -> list[str]:
    return [f"finally {event.id}: {one_line(event.problem, 500) or 'good'}"]


@_lines.register
def _state_changed(event: events.StateChanged) -> list[str]:
    if event.state == PENDING:
        return []
    why = f"{', ' if event.state == COMPLETED else ': '}{one_line(event.reason, 500)}" if event.reason else ""
    who = f"task {one_line(event.item)}" if event.unit else "state"
    return [f"{who}: {event.state}{why}"]


@_lines.register
def _warning(event: events.Warning) -> list[str]:
    return [f"warning: {one_line(event.message, 500)}"]


def question_lines(question: Question) -> Iterator[str]:
    """Format the question."""
    yield f"review {question.key}: {one_line(question.question, 1000)}"
    lines = question.show.expandtabs().splitlines()
    yield from (f"  {line}" for line in lines[:SHOWN_LINES])
    if len(lines) > SHOWN_LINES:
        yield f"  ... and {len(lines) - SHOWN_LINES} more lines, see reviews/{question.key}.json in the run folder"
    if needed := how_to_answer(question):
        yield needed
    if question.seconds_left is not None:
        yield f"Without an answer within {duration(question.seconds_left)}, it counts as: {question.default}."
