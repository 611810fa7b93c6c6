"""A recorded run, built from the real event types: two cycles, a failed and a passed test run, a repair."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from codex_multi_role.run_folder import Record, RunEvent
from codex_multi_role.run_folder import events as e

ROLES = ["planner", "implementer"]
BEGAN = datetime(2026, 1, 31, 10, 15, tzinfo=UTC)


def started(*, resumed: bool = False, playbook: str | None = "roman-numerals") -> RunEvent:
    return e.RunStarted(
        run_id="20260131_101500_0a1b2c3d",
        goal="Convert roman numerals",
        flow="cycles",
        cycles=3,
        roles=ROLES,
        workspace="/project",
        folder="/project/runs/20260131_101500_0a1b2c3d",
        playbook=playbook,
        resumed=resumed,
        steps=["team"],
        limits={"turns": 20, "tokens": 50_000, "seconds": 600},
    )


def turn(
    role: str, number: int, cycle: int, *, status: str = "completed", repair_of: int | None = None
) -> list[RunEvent]:
    reason = "" if status == "completed" else "summary: is missing"
    said = f"what {role} did" if status == "completed" else ""
    return [
        e.TurnStarted(role, number, cycle, 1, repair_of),
        e.RoleActivity(role, number, "command: ls"),
        e.TurnEnded(role, number, status, status, reason, 1200, 34, 1.5, said),
    ]


def ended(*, exit_code: int = 0) -> RunEvent:
    totals = {"turns": 5, "repairs": 1, "input_tokens": 6000, "output_tokens": 170, "seconds": 12.5}
    status, outcome, reason = ("succeeded", "done", "implementer said DONE")
    if exit_code:
        status, outcome, reason = ("ended", "cycles_used_up", "all 3 cycles are used up")
    return e.RunEnded(status, outcome, reason, exit_code, totals, "/project/runs/20260131_101500_0a1b2c3d")


def whole_run() -> list[Record]:
    return in_order(
        started(),
        e.RoleStarted("planner", 101, "thread-1", 0.2, False),
        e.RoleStarted("implementer", 102, "thread-2", 0.3, False),
        e.StepStarted("team", 1, 1),
        *turn("planner", 1, 1),
        *turn("implementer", 1, 1, status="invalid_reply"),
        *turn("implementer", 2, 1, repair_of=1),
        e.FilesApplied("implementer", 2, 2, 1, ["roman.py", "test_roman.py"]),
        e.TestsStarted(1, "implementer", 2),
        e.TestsEnded(1, "failed", 3, 1, 0, 0, 0.4),
        e.StepStarted("team", 2, 2),
        *turn("planner", 2, 2),
        e.DoneIgnored("planner", 2),
        *turn("implementer", 3, 2),
        e.FilesApplied("implementer", 3, 1, 0, ["roman.py"]),
        e.TestsStarted(2, "implementer", 3),
        e.TestsEnded(2, "passed", 4, 0, 0, 0, 0.4),
        e.Warning("the disk is nearly full"),
        ended(),
    )


def in_order(*events: RunEvent) -> list[Record]:
    """The records of ``events``, one second apart."""
    moments = [(BEGAN + timedelta(seconds=second)).isoformat(timespec="milliseconds") for second in range(len(events))]
    return [{**event.as_record(), "at": at} for event, at in zip(events, moments, strict=True)]
