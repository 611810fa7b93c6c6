"""How a run, a turn, a test or a task is doing and how it ended, in words; and what to type next."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from codex_multi_role.errors import LOOK, MORE_CYCLES, ExitCode, RunStatus
from codex_multi_role.presentation.wording import cost_in_words, duration, one_line, plural
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder import Questions, RunFolder, events
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.folder import PROGRAM, SHARED
from codex_multi_role.run_folder.typed_answers import example
from codex_multi_role.run_options import RunOptions

OUTCOMES = {
    "done": "Done",
    "cycles_used_up": "All cycles are used up",
    "tests_failed": "The tests fail",
    "role_failed": "A role failed",
    "waiting_for_review": "Waiting for a person",
    "paused": "Paused",
    "budget_used_up": "A budget is used up",
    "quota": "The provider accepts no more turns for now",
    "cancelled": "Cancelled",
    "gave_up": "A role gave up",
    "declined": "A role declined its task",
}
GOOD, BAD, WARN, BUSY, IDLE, UNUSED, ASKS = "good", "bad", "warn", "busy", "idle", "unused", "asks"
"""Tones. ``warn``: cut short; ``busy``: in progress; ``unused``: not needed, or impossible; ``asks``: waits for you."""
GLYPHS = {GOOD: "✓", UNUSED: "⊘", IDLE: "○", WARN: "■", BAD: "✗", BUSY: "●", ASKS: "?"}
"""The sign of each tone, the one that matters least first."""
ASCII_GLYPHS = dict(zip(GLYPHS, "+-o#x*?", strict=True))
_TONES = {
    GOOD: ("completed", "passed", "approved"),
    BAD: ("failed", "gone", "error", "timed out", "could not run", "rejected"),
    WARN: ("killed", "interrupted", "cancelled", "unknown"),
    BUSY: ("running", "working", "repairing", "in progress"),
    IDLE: ("starting", "ready", "no tests", "pending"),
    UNUSED: ("skipped",),
    ASKS: ("open",),
}
_TONE_OF = {status: tone for tone, statuses in _TONES.items() for status in statuses}
Incident = events.ProtectedRestored | events.RoleRestarted | events.RoleSkipped | events.DoneIgnored
WAITING = "waiting"
"""The status of a run that asks a person something."""


class StatusWords(NamedTuple):
    """A run's status: its ``symbol`` is for people who cannot tell its colour; ``no_outcome``: why it has none."""

    words: str
    tone: str
    symbol: str
    news: str
    no_outcome: str = "The end was not recorded"


_STATUSES: dict[str, StatusWords] = {
    each.words.partition(" ")[0]: each
    for each in (
        StatusWords("waiting for you", ASKS, "?", "The run waits for your answer."),
        StatusWords(RunStatus.RUNNING, BUSY, "▶", "The run is running.", "Still running"),
        StatusWords(RunStatus.SUCCEEDED, GOOD, "✓", "The run succeeded."),
        StatusWords(RunStatus.ENDED, WARN, "■", "The run ended without reaching its goal."),
        StatusWords(RunStatus.FAILED, BAD, "✗", "The run failed."),
        StatusWords(RunStatus.PARKED, WARN, "Ⅱ", "The run is parked."),
        StatusWords(RunStatus.INTERRUPTED, WARN, "■", "The run was interrupted."),
        StatusWords(RunStatus.KILLED, WARN, "✗", "The run was killed.", "It was killed"),
        StatusWords(RunStatus.UNREADABLE, BAD, "•", "The run is unreadable.", "run.json cannot be read"),
    )
}
ADDED: Registry[StatusWords] = Registry("status", "codex_multi_role.statuses", {})
"""Those of runs that extensions find elsewhere."""


def run_status(status: str) -> StatusWords:
    """Return how a run's current status is shown."""
    if status in _STATUSES or status in ADDED.names():
        return _STATUSES.get(status) or ADDED.find(status)
    return StatusWords(status_in_words(status), WARN, "•", f"The run is {one_line(status)}.")


def glyphs_of(encoding: str | None) -> dict[str, str]:
    """The glyphs that a stream with this encoding can show."""
    return GLYPHS if (encoding or "").lower().startswith("utf") else ASCII_GLYPHS


def has_failed(status: str) -> bool:
    """Whether a run with this status ended otherwise than with its goal reached, and not because it was stopped."""
    return status in (RunStatus.ENDED, RunStatus.FAILED, RunStatus.UNREADABLE)


def is_open(status: str) -> bool:
    """Whether a run with this current status goes on by itself."""
    return run_status(status).tone in (BUSY, IDLE)


def tone_of(status: str, otherwise: str = IDLE, *, but: str = "") -> str:
    """Return the tone of the status of a turn, role, test or task; ``otherwise`` is for unknown ones.

    Checks name their own. ``but``: what speaks against one that is good.
    """
    tone = _TONE_OF.get(status_in_words(status).lower(), otherwise)
    return WARN if but and tone == GOOD else tone


def status_in_words(status: object) -> str:
    """``in progress``: a status on one line, without underscores."""
    return one_line(str(status).replace("_", " "))


def ending_in_words(status: str, outcome: str) -> str:
    """Return how a run ended or, if it has no ``outcome``, why it has none."""
    return outcome_in_words(outcome) if outcome else run_status(status).no_outcome


def outcome_in_words(outcome: str) -> str:
    """Return a run's ``outcome`` for people; a flow's own name for an end is shown as it is."""
    return OUTCOMES.get(outcome) or one_line(outcome.replace("_", " ")).capitalize()


def exit_in_words(exit_code: object, otherwise: str = "see the reason") -> str:
    """``1: ended without reaching the goal``; ``otherwise``: what one means that is not ours."""
    code = ExitCode.find(exit_code)
    return f"{exit_code}: {otherwise if code is None else code.meaning}"


def playbook_in_words(playbook: str, *, over: bool = False, named: Callable[[str], str] = one_line) -> str:
    """Say that no model answers, or answered; ``named`` makes the playbook's name safe where it is shown."""
    asked, came = ("was", "came") if over else ("is", "come")
    return f"No model {asked} asked: the answers {came} from the playbook {named(playbook)}."


def turns_in_words(totals: Mapping[str, float]) -> str:
    """``8 (1 repair) in 6.8 s``."""
    repairs = f" ({plural(totals['repairs'], 'repair')})" if totals.get("repairs") else ""
    return f"{totals.get('turns', 0):.0f}{repairs} in {duration(totals.get('seconds', 0))}"


def tokens_in_words(tokens_in: float, tokens_out: float) -> str:
    """``75,878 in, 1,419 out``."""
    return f"{tokens_in:,.0f} in, {tokens_out:,.0f} out"


def cost_of_totals(totals: Mapping[str, Any]) -> str:
    """``$1.20``, or ``unpriced: 2 turns have no recorded price``."""
    cost = Cost.of_totals(totals)
    which = f": {plural(cost.unpriced_turns, 'turn')} without a price" if cost.unpriced_turns else ""
    return cost_in_words(cost) + which


def added_in_words(event: events.AddedEvent) -> str:
    """What the extension says of its event; its mistakes end no run and no view."""
    try:
        return one_line(event.in_words(), 500)
    except Exception as error:
        return one_line(f"{event.type} cannot be shown: {error!r}", 500)


def incident_in_words(event: Incident) -> str:
    """Say what happened to a role, which is named beside it."""
    match event:
        case events.ProtectedRestored(paths=paths):
            return f"protected, restored: {', '.join(paths)}"
        case events.RoleRestarted(reason=reason):
            return f"restarted: {reason}"
        case events.RoleSkipped(reason=reason):
            return f"skipped: {reason}; the run continues without it"
        case events.DoneIgnored(reason=reason) if reason:
            return f"said DONE, which does not count: {reason}"
        case events.DoneIgnored():
            return "said DONE, but this role must not finish"


RAISED = ("cycles", "max-turns", "max-tokens", "max-seconds", "max-cost")  # without them, some runs end again at once


def raised_limits(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the `RAISED` options with which the run continues; empty if it needs none or cannot continue."""
    which, _, options = _suggestion(record).partition(" RUN")
    return dict(re.findall(rf"--({'|'.join(RAISED)}) (\S+)", options)) if which == "resume" else {}


def _suggestion(record: Mapping[str, Any]) -> str:
    """Return what the end of the run suggests; runs of earlier versions recorded only their outcome."""
    code = record.get("exit_code")
    if suggestion := record.get("suggestion") or (LOOK if code == ExitCode.GOAL_REACHED else ""):
        return str(suggestion)
    if code != ExitCode.GOAL_NOT_REACHED:
        waits = code == ExitCode.BUDGET_USED_UP and record.get("resets_at") and SHARED not in record
        return f"resume RUN{' --wait' if waits else ''}"
    if "suggestion" in record or record.get("outcome") != "cycles_used_up":
        return LOOK
    cycles = int(record.get("options", {}).get("cycles", RunOptions.cycles))
    return f"resume RUN --cycles {cycles + MORE_CYCLES}"


def answer_commands(folder: RunFolder, open_keys: Sequence[str]) -> tuple[str, str]:
    """What accepts and what rejects a run's oldest open question, and resumes the run unless that happens elsewhere."""
    then = [] if SHARED in read_object(folder.record_path) else ["--resume"]
    which = ["--question", open_keys[0]] if len(open_keys) > 1 else []
    reject = folder.command("reject", *which, "--comment", "WHY", *then)
    asked = Questions(folder.path).find(open_keys[0]) if open_keys else None
    given = example(asked) if asked is not None else []
    verb = "answer" if given else "approve"
    return folder.command(verb, *which, *given, *then), reject


def next_command(folder: RunFolder, exit_code: int | None) -> str:
    """Return the command to type next: a closer look at a run that reached its goal, otherwise what continues it.

    That is an answer if it waits for one, what its end suggests if it has ended, and a resume in all other cases.
    """
    pending = Questions(folder.path).pending() if exit_code == ExitCode.WAITING else []
    if pending and any(given.endswith("=VALUE") for given in example(pending[0])):
        return folder.command("resume")  # asks for the values
    if pending:
        return answer_commands(folder, [question.key for question in pending])[0]
    record = {"exit_code": exit_code, **read_object(folder.record_path)}
    return folder.complete(f"{PROGRAM} {_suggestion(record)}")


def next_from_record(folder: RunFolder, record: Mapping[str, Any], status: str) -> str:
    """Return `next_command` for a run whose current status is ``status``; empty if nothing is left to do.

    A closer look is not: whoever reads this has it.
    """
    if is_open(status) or not isinstance(record.get("options"), Mapping):
        return ""
    return "" if _suggestion(record) == LOOK else next_command(folder, record.get("exit_code"))
