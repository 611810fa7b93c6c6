"""A run in plain lines: one per event that means something to a reader, with its time; and a question to a person."""

from __future__ import annotations

from collections.abc import Iterator

from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.course import ACTIVITIES, Course
from codex_multi_role.presentation.outcome import (
    added_in_words,
    incident_in_words,
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
SHOWN_LINES, SHOWN_COLUMNS = 200, 1000
"""Maximum lines of what a question is about, and characters of a line."""


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
        said += _lines(event)
        if isinstance(event, events.TurnStarted) and (task := self.course.role(event.role).task):
            said[-1] += f", for task {one_line(task)}"
        return [printable(f"{clock(event.at)}  {line}") for line in said]


def _lines(event: RunEvent) -> list[str]:
    """What an event says; nothing, if it is none of these."""
    match event:
        case events.RunStarted():
            return [*_run_started(event)]
        case events.RunForked(message=message):
            return [one_line(message, 500)]
        case events.ProcessesStarting(roles=roles):
            return [f"starting {plural(len(roles), 'Codex process')}"]
        case events.RolesReloaded(roles=roles):
            told = "its file changed; from its next turn"
            return [f"{one_line(role)}: {told}: {', '.join(keys)}" for role, keys in roles.items()]
        case events.FlowsReloaded(flows=flows):
            return [f"the edited flow {' and '.join(map(one_line, flows))} is used from here on"]
        case events.ReviewAsked(key=key, question=question):
            return [f"review {key}: {one_line(question, 500)}"]
        case events.ReviewAnswered():
            return [_review_answered(event)]
        case events.FinalCheckEnded(id=step, problem=problem):
            return [f"finally {step}: {one_line(problem, 500) or 'good'}"]
        case events.StateChanged():
            return [] if event.state == PENDING else [_state_changed(event)]
        case events.Warning(message=message):
            return [f"warning: {one_line(message, 500)}"]
        case events.AddedEvent():
            return [*filter(None, [added_in_words(event)])]
        case _:
            return _of_tests(event) or role_lines(event)


def _run_started(event: events.RunStarted) -> Iterator[str]:
    """Name the Python that runs the tests, if any test needs one."""
    cycles = f", {plural(event.cycles, 'cycle')}" if event.cycles else ""
    yield f"run {event.run_id} {'continues' if event.resumed else 'starts'}: flow {event.flow}{cycles}"
    yield f"goal: {one_line(event.goal)}"
    match event.python:
        case {"version": version, "source": source, "path": path} if version:
            yield f"tests run with Python {version} ({one_line(source)}): {one_line(path)}"
    if event.playbook:
        yield playbook_in_words(event.playbook)


def _review_answered(event: events.ReviewAnswered) -> str:
    comment = f": {one_line(event.comment, 500)}" if event.comment else ""
    comment += f" ({plural(len(event.comments), 'comment')} on lines)" if event.comments else ""
    chosen = answer_in_words(event.approved, event.option, event.values)
    return f"review {event.key}: {chosen} by {one_line(event.by)}{comment}"


def _state_changed(event: events.StateChanged) -> str:
    why = f"{', ' if event.state == COMPLETED else ': '}{one_line(event.reason, 500)}" if event.reason else ""
    who = f"task {one_line(event.item)}" if event.unit else "state"
    return f"{who}: {event.state}{why}"


def _of_tests(event: RunEvent) -> list[str]:
    in_copy = " (in a copy of the workspace)"
    match event:
        case events.BaselineStarted():
            return [f"{BEFORE}{in_copy * event.in_copy}: {running_before(event.last_seconds)}"]
        case events.BaselineMeasured():
            problem = f"; every later failure counts: {event.problem}" if event.problem else ""
            told = f"{verdict_before(vars(event))} in {duration(event.seconds)}{problem}"
            return [f"{BEFORE}{in_copy * event.in_copy}: {told}"]
        case events.TestsStarted(number=number):
            return [f"tests {number:03d}: running"]
        case events.TestsEnded(number=number):
            names = f": {failed}" if (failed := failed_tests(vars(event))) else ""
            return [f"tests {number:03d}: {verdict(vars(event))} in {duration(event.seconds)}{names}"]
    return []


def role_lines(event: RunEvent) -> list[str]:
    """What an event says of a role; nothing, if it is of none."""
    match event:
        case events.ProtectedRestored() | events.RoleRestarted() | events.RoleSkipped() | events.DoneIgnored():
            words = incident_in_words(event)
            return [f"{event.role}: {one_line(words)}" if event.role else one_line(words)]
        case events.TurnEvent() | events.RoleStarted():
            return [f"{event.role}: {one_line(words)}" for words in filter(None, [_of_process(event)])]
    return []


def _of_process(event: events.TurnEvent | events.RoleStarted) -> str:
    match event:
        case events.RoleStarted(resumed=resumed):
            how = "ready again, its conversation restored," if resumed else "ready"
            return f"{how} after {duration(event.seconds)} (process {event.pid})"
        case events.TurnStarted():
            repair = f", repairing the answer of turn {event.repair_of}" if event.repair_of is not None else ""
            if event.continues is not None and not repair:
                repair = f", continuing turn {event.continues}"
            return f"turn {event.turn} starts{repair}{f', attempt {event.attempt}' if event.attempt > 1 else ''}"
        case events.RoleActivity(activity=activity):
            return "" if activity in ACTIVITIES else activity
        case events.Approval(decision=decision, method=method, detail=detail):
            return f"{decision} {method}: {detail}"
        case events.ToolCalled(tool=tool, success=success):
            return f"tool {tool} {'answered' if success else 'failed'} in {duration(event.seconds)}"
        case events.McpCallEnded(status=status, result=result):
            call = f"MCP tool {event.server}/{event.tool} {event.arguments}"
            return f"{call} {status} in {duration(event.seconds)}: {result}"
        case events.ReplyRepaired(turn=turn):
            return f"the damaged answer of turn {turn} was repaired without asking again"
        case events.FilesApplied(skipped=skipped):
            left_out = f", {skipped} skipped" if skipped else ""
            return f"{plural(event.written, 'file')} written{left_out}: {', '.join(event.paths)}"
        case events.TurnEnded():
            return _turn_ended(event)
    return ""


def _turn_ended(event: events.TurnEnded) -> str:
    tokens = f"{event.input_tokens:,} tokens in, {event.output_tokens:,} out"
    if event.reused_from:
        tokens = f"taken over from {event.reused_from}"
    status, outcome = status_in_words(event.status), status_in_words(event.outcome)
    words = [word for word in (outcome if outcome != status else "", event.reason) if word]
    why = f" ({': '.join(words)})" if words else ""
    said = f": {event.summary}" if event.summary else ""
    cost = "" if event.cost is None else f", {dollars(event.cost)}"
    took = f" in {duration(event.seconds)}" if event.seconds else ""  # unknown of a killed turn
    return f"turn {event.turn} {status}{why}{took}, {tokens}{cost}{said}"


def question_lines(question: Question) -> Iterator[str]:
    """Format the question."""
    yield f"review {question.key}: {one_line(question.question, 1000)}"
    lines = question.show.expandtabs().splitlines()
    yield from (f"  {line[:SHOWN_COLUMNS]}" for line in lines[:SHOWN_LINES])
    if len(lines) > SHOWN_LINES:
        yield f"  ... and {len(lines) - SHOWN_LINES} more lines, see reviews/{question.key}.json in the run folder"
    if needed := how_to_answer(question):
        yield needed
    if question.seconds_left is not None:
        yield f"Without an answer within {duration(question.seconds_left)}, it counts as: {question.default}."
