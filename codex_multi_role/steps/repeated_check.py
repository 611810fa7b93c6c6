"""A check that was interrupted before its result was recorded, when it is done again.

A kill may have come when it had done half of its work. As for a turn, the workspace becomes what it was before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from codex_multi_role.checks import find_check
from codex_multi_role.errors import CheckFailed, RunInterrupted
from codex_multi_role.host.atomic import make_folder, write_json
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Question
from codex_multi_role.run_folder.events import Warning, now
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.review import decide
from codex_multi_role.steps.unit import Unit

BEGAN, UNDONE = "began.json", "undone.patch"
WITHOUT_SLOT = 0
"""The place of work that the journal does not record, because it is done again at another time: nothing is undone."""


@contextmanager
def once(run: RunResources, unit: Unit, place: int, folder: Path) -> Iterator[None]:
    """Carry out the unit's check in the block; what an interrupted attempt at this ``place`` left is undone first.

    A step with ``repeatable: false`` asks a person instead. ``folder`` has the check's artifacts. Raises
    `ReviewWaiting`, and `CheckFailed` if the person does not want it to run again.
    """
    undoes = find_check(unit.step.check or "").undo_interrupted
    if unit.step.repeatable and not undoes:
        yield
        return
    began = folder / BEGAN
    before = read_object(began)
    if before.get("place") not in (place, WITHOUT_SLOT):
        before = {}
    elif not unit.step.repeatable:
        _require_consent(run, unit, str(before["at"]))
    undoes = undoes and place != WITHOUT_SLOT and run.settings.changes_workspace
    tree = _first_state(run, unit, folder, before) if undoes else ""
    write_json(make_folder(folder) / BEGAN, {"place": place, "tree": tree, "at": now()})
    try:
        yield
    except RunInterrupted:
        raise
    except Exception:
        began.unlink()
        raise
    if place == WITHOUT_SLOT:
        began.unlink()


def _require_consent(run: RunResources, unit: Unit, at: str) -> None:
    """``--yes`` does not count: what must not be repeated would be, without anybody looking."""
    text = f"The check {unit.step.check} of step {unit.step.id} was interrupted after it started at {at}. Run it again?"
    asking = replace(run, settings=replace(run.settings, yes=False))
    answer = decide(asking, Question(unit.key, text, "", now(), None, None))
    if not answer["approved"]:
        start = ":".join(unit.key.partition("/")[0].split(".")[:2])
        raise CheckFailed(
            f"{unit.where}: the check {unit.step.check} was interrupted, and {answer['by']} did not let it run again",
            f"`codex-multi-role fork RUN --from {start}` starts before it.",
        )


def _first_state(run: RunResources, unit: Unit, folder: Path, before: Json) -> str:
    """The workspace before the first attempt at the check, restored if nobody else can have changed it since."""
    with run.progress.workspace_lock:
        now = run.snapshots.take()
        first = str(before.get("tree", "")) or now
        if first == now:
            return now
        left = f"{unit.where}: changes that the interrupted check {unit.step.check} left in the workspace"
        if not _works_alone(run, unit):
            run.services.events.publish(Warning(f"{left} remain: others may also have changed it"))
            return now
        run.snapshots.write_patch(first, now, folder / UNDONE)
        run.snapshots.restore(first)
    run.services.events.publish(Warning(f"{left} were undone; see {folder / UNDONE}"))
    return first


def _works_alone(run: RunResources, unit: Unit) -> bool:
    """Whether no other item works in the same folder: a copy for a called flow is that flow's own."""
    *callers, _ = unit.key.removeprefix(run.within).strip("/").split("/")
    return unit.peers == 1 and all(caller.count(".") < 2 for caller in callers)  # a visit, or a try
