"""A run in plain lines: one per event that means something to a reader, with its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codex_multi_role.presentation.progress import Progress
from codex_multi_role.presentation.wording import clock, duration, one_line, plural, verdict
from codex_multi_role.run_folder import Record

PENDING = "PENDING"
NO_MODEL = "No model is asked: the answers come from the playbook {}."


class PlainLines:
    """Converts events to lines, in order."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def of(self, record: Record) -> list[str]:
        """Return the lines of one event, often none."""
        cycle = self.progress.cycle
        self.progress.apply(record)
        said = []
        if self.progress.cycle != cycle:
            said.append(self.progress.where)
        formatter = _FORMATTERS.get(record["type"])
        if formatter is not None:
            said += formatter(record)
        return [f"{clock(record['at'])}  {line}" for line in said]


def _run_started(record: Record) -> list[str]:
    verb = "goes on" if record["resumed"] else "starts"
    lines = [
        f"run {record['run_id']} {verb}: flow {record['flow']}, {plural(record['cycles'], 'cycle')}",
        f"goal: {one_line(record['goal'])}",
        *_python(record.get("python", {})),
    ]
    return [*lines, NO_MODEL.format(one_line(record["playbook"]))] if record["playbook"] else lines


def _python(python: Mapping[str, str]) -> list[str]:
    """Name the Python that runs the tests, if any test needs one."""
    if not python.get("version"):
        return []
    return [f"tests run with Python {python['version']} ({one_line(python['source'])}): {one_line(python['path'])}"]


def _about(record: Record, words: str) -> list[str]:
    return [f"{record['role']}: {one_line(words)}"]


def _role_started(record: Record) -> list[str]:
    how = "ready again, its conversation restored," if record["resumed"] else "ready"
    return _about(record, f"{how} after {duration(record['seconds'])} (process {record['pid']})")


def _turn_started(record: Record) -> list[str]:
    repair = f", mending the answer of turn {record['repair_of']}" if record["repair_of"] is not None else ""
    if (continues := record.get("continues")) is not None and not repair:
        repair = f", continuing turn {continues}"
    attempt = f", attempt {record['attempt']}" if record["attempt"] > 1 else ""
    return _about(record, f"turn {record['turn']} starts{repair}{attempt}")


def _role_activity(record: Record) -> list[str]:
    return [] if record["activity"] == "message" else _about(record, record["activity"])


def _approval(record: Record) -> list[str]:
    return _about(record, f"{record['decision']} {record['method']}: {record['detail']}")


def _tool_called(record: Record) -> list[str]:
    outcome = "answered" if record["success"] else "failed"
    return _about(record, f"tool {record['tool']} {outcome} in {duration(record['seconds'])}")


def _mcp_call_ended(record: Record) -> list[str]:
    call = f"MCP tool {record['server']}/{record['tool']} {record['arguments']}"
    return _about(record, f"{call} {record['status']} in {duration(record['seconds'])}: {record['result']}")


def _turn_ended(record: Record) -> list[str]:
    tokens = f"{record['input_tokens']:,} tokens in, {record['output_tokens']:,} out"
    status, outcome = (record[name].replace("_", " ") for name in ("status", "outcome"))
    words = [word for word in (outcome if outcome != status else "", record["reason"]) if word]
    why = f" ({': '.join(words)})" if words else ""
    said = f": {record['summary']}" if record["summary"] else ""
    return _about(record, f"turn {record['turn']} {status}{why} in {duration(record['seconds'])}, {tokens}{said}")


def _reply_repaired(record: Record) -> list[str]:
    return _about(record, f"the damaged answer of turn {record['turn']} was repaired without asking again")


def _files_applied(record: Record) -> list[str]:
    skipped = f", {record['skipped']} skipped" if record["skipped"] else ""
    return _about(record, f"{plural(record['written'], 'file')} written{skipped}: {', '.join(record['paths'])}")


def _protected_restored(record: Record) -> list[str]:
    who = f"{record['role']}: " if record["role"] else ""
    return [f"{who}protected, put back as before: {one_line(', '.join(record['paths']))}"]


def _tests_started(record: Record) -> list[str]:
    return [f"tests {record['number']:03d}: running"]


def _tests_ended(record: Record) -> list[str]:
    return [f"tests {record['number']:03d}: {verdict(record)} in {duration(record['seconds'])}"]


def _done_ignored(record: Record) -> list[str]:
    return _about(record, "said DONE; it may not finish the run, which goes on")


def _role_restarted(record: Record) -> list[str]:
    return _about(record, f"restarted: {record['reason']}")


def _roles_reloaded(record: Record) -> list[str]:
    changed = record["roles"].items()
    return [
        f"{one_line(role)}: changed in its file, from its next turn on: {', '.join(keys)}" for role, keys in changed
    ]


def _role_skipped(record: Record) -> list[str]:
    return _about(record, f"skipped: {record['reason']}; the run goes on without it")


def _review_asked(record: Record) -> list[str]:
    return [f"review {record['key']}: {one_line(record['question'], 500)}"]


def _review_answered(record: Record) -> list[str]:
    verdict = "approved" if record["approved"] else "rejected"
    comment = f": {one_line(record['comment'], 500)}" if record["comment"] else ""
    return [f"review {record['key']}: {verdict} by {one_line(record['by'])}{comment}"]


def _state_changed(record: Record) -> list[str]:
    if record["state"] == PENDING:
        return []
    why = f": {one_line(record['reason'], 500)}" if record["reason"] else ""
    who = f"task {one_line(record['item'])}" if record["unit"] else "state"
    return [f"{who}: {record['state']}{why}"]


def _warning(record: Record) -> list[str]:
    return [f"warning: {one_line(record['message'], 500)}"]


_FORMATTERS: dict[str, Callable[[Record], list[str]]] = {
    "run_started": _run_started,
    "role_started": _role_started,
    "turn_started": _turn_started,
    "role_activity": _role_activity,
    "mcp_call_ended": _mcp_call_ended,
    "approval": _approval,
    "tool_called": _tool_called,
    "turn_ended": _turn_ended,
    "reply_repaired": _reply_repaired,
    "files_applied": _files_applied,
    "protected_restored": _protected_restored,
    "tests_started": _tests_started,
    "tests_ended": _tests_ended,
    "done_ignored": _done_ignored,
    "role_restarted": _role_restarted,
    "roles_reloaded": _roles_reloaded,
    "role_skipped": _role_skipped,
    "review_asked": _review_asked,
    "review_answered": _review_answered,
    "state_changed": _state_changed,
    "warning": _warning,
}
