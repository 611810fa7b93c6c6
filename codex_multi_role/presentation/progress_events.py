"""How each event changes a run's `Progress`: a new event needs one function and one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from codex_multi_role.presentation.role_progress import BUSY, READY, REPAIRING, SKIPPED, STARTING, WORKING, RoleProgress
from codex_multi_role.run_folder import Record

if TYPE_CHECKING:
    from codex_multi_role.presentation.progress import Progress


def _run_started(progress: Progress, record: Record) -> None:
    for name in ("run_id", "goal", "flow", "folder", "playbook", "resumed", "cycles"):
        setattr(progress, name, record[name])
    _count_work(progress, record)
    progress.began, progress.ended = record["at"], None
    progress.limits = record.get("limits", {})
    progress.steps = {name: progress.steps.get(name, 0) for name in record.get("steps", [])}
    progress.questions.clear()
    for name in record["roles"]:
        role = progress.roles.setdefault(name, RoleProgress(name))
        role.state, role.working_since = STARTING, ""


def _role_started(progress: Progress, record: Record) -> None:
    progress.role(record).state = READY


def _step_started(progress: Progress, record: Record) -> None:
    progress.step = record["step"]
    if not _is_called(record["step"]):
        progress.current_step = record["step"]
        progress.steps[record["step"]] = max(progress.steps.get(record["step"], 0), record["visit"])
        visit = f"{record['step']}.{record['visit']}"
        progress.tasks = {unit: state for unit, state in progress.tasks.items() if unit.rpartition(".")[0] == visit}
    _enter_cycle(progress, record["cycle"])


def _enter_cycle(progress: Progress, cycle: int | None) -> None:
    if cycle and cycle != progress.cycle:
        progress.cycle = cycle
        progress.finished_in_cycle.clear()


def _turn_started(progress: Progress, record: Record) -> None:
    _enter_cycle(progress, record["cycle"])
    progress.turns_begun += 1
    role = progress.role(record)
    role.turn = record["turn"]
    role.state = WORKING if record["repair_of"] is None else REPAIRING
    role.working_since = record["at"]
    _count_work(progress, record)


def _count_work(progress: Progress, record: Record) -> None:
    progress.worked = record.get("worked_seconds", progress.worked_until(record["at"]))
    progress.worked_at = record["at"]


def _role_activity(progress: Progress, record: Record) -> None:
    progress.role(record).last = record["activity"]


def _approval(progress: Progress, record: Record) -> None:
    progress.role(record).last = f"{record['decision']}: {record['detail']}"


def _tool_called(progress: Progress, record: Record) -> None:
    progress.role(record).last = f"tool {record['tool']}{'' if record['success'] else ' failed'}"


def _turn_ended(progress: Progress, record: Record) -> None:
    role = progress.role(record)
    role.state, role.working_since = record["status"], ""
    role.turn = record["turn"]
    role.turns += 1
    role.input_tokens += record["input_tokens"]
    role.output_tokens += record["output_tokens"]
    role.seconds += record["seconds"]
    role.last = record["summary"] or record["reason"] or role.last
    progress.finished_in_cycle.add(role.name)
    _count_work(progress, record)


def _reply_repaired(progress: Progress, record: Record) -> None:
    progress.role(record).last = "a damaged answer was mended without asking again"


def _files_applied(progress: Progress, record: Record) -> None:
    progress.files_written += record["written"]
    progress.files_skipped += record["skipped"]
    if record["written"]:
        progress.written.update(dict.fromkeys(record["paths"]))


def _protected_restored(progress: Progress, record: Record) -> None:
    paths = ", ".join(record["paths"])
    progress.warnings.append(f"{record['role'] or 'before tests'}: protected, put back as before: {paths}")


def _tests_started(progress: Progress, record: Record) -> None:
    progress.tests = {"number": record["number"], "status": "running"}


def _tests_ended(progress: Progress, record: Record) -> None:
    progress.tests = {name: value for name, value in record.items() if name not in ("type", "at")}


def _done_ignored(progress: Progress, record: Record) -> None:
    progress.role(record).last = "said DONE, which is not this role's to say"


def _role_restarted(progress: Progress, record: Record) -> None:
    role = progress.role(record)
    role.state, role.working_since = STARTING, ""
    role.last = f"restarted: {record['reason']}"


def _roles_reloaded(progress: Progress, record: Record) -> None:
    for name, keys in record["roles"].items():
        if name in progress.roles:
            progress.roles[name].last = f"its file was changed: {', '.join(keys)}"


def _role_skipped(progress: Progress, record: Record) -> None:
    role = progress.role(record)
    role.state, role.working_since = SKIPPED, ""
    role.last = record["reason"]


def _review_asked(progress: Progress, record: Record) -> None:
    _count_work(progress, record)
    progress.questions[record["key"]] = record["question"]


def _review_answered(progress: Progress, record: Record) -> None:
    _count_work(progress, record)
    progress.questions.pop(record["key"], None)


def _state_changed(progress: Progress, record: Record) -> None:
    if not record["unit"]:
        progress.state = record["state"]
    elif not _is_called(record["unit"]):
        progress.tasks[record["unit"]] = record["state"]


def _is_called(key: str) -> bool:
    """Whether the step or unit is in a flow that the run's flow called."""
    return "/" in key


def _warning(progress: Progress, record: Record) -> None:
    progress.warnings.append(record["message"])


def _run_ended(progress: Progress, record: Record) -> None:
    progress.ended = record
    progress.worked, progress.worked_at = record["totals"].get("seconds", progress.worked), record["at"]
    for role in progress.roles.values():
        role.working_since = ""
        if role.state in BUSY:
            role.state = "interrupted"


EVENT_HANDLERS: dict[str, Callable[[Progress, Record], None]] = {
    "run_started": _run_started,
    "role_started": _role_started,
    "step_started": _step_started,
    "turn_started": _turn_started,
    "role_activity": _role_activity,
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
    "run_ended": _run_ended,
}
