"""What an interrupted turn left behind, and how it is repeated."""

from __future__ import annotations

from itertools import dropwhile

from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import TurnFolder, read_events
from codex_multi_role.run_folder.events import CopyMerged, FilesApplied, RunEvent, TurnEnded, TurnStarted, Warning
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.turn_record import TurnResult


def finished_before(run: RunResources, place: int, *, may_decline: bool) -> TurnResult | None:
    """The turn finished at this journal position, if a kill came before the journal recorded it.

    Any instance may have taken it, not only the one that is asked now. A turn that ended its role does not count,
    because the role must be asked again. ``may_decline``: a refusal is also an answer.
    """
    left = run.progress.earlier_turns.get(place)
    recorded = left.result().get("recorded") if left else None
    if not recorded:
        return None
    turn = TurnResult(**recorded)
    is_answer = not turn.problem or (turn.declined and may_decline)
    return turn if turn.ask_again or is_answer else None


def cut_short(run: RunResources, instance: str, place: int) -> TurnFolder | None:
    """The unfinished earlier attempt at this turn: the instance's latest turn, or one of an earlier session."""
    latest = TurnFolder.latest(run.services.folder, instance)
    if latest and latest.result().get("journal_step") == place:
        return latest
    return run.progress.earlier_turns.get(place)


def kept_when_cut_short(first_try: TurnFolder | None) -> Json:
    """What tools stored in a first attempt that produced no answer: its thread remembers that they did."""
    return first_try.kept() if first_try and not first_try.result().get("recorded") else {}


def first_state(run: RunResources, instance: str, first_try: TurnFolder | None) -> str:
    """The workspace before a turn. A repeated turn starts from the state before its first attempt.

    Changes of that attempt are undone and kept as a patch, unless others worked in the workspace at the same time,
    because then nobody can tell whose changes they are. Nobody else works in a copy.
    """
    now = run.snapshots.take()
    first = str(first_try.result().get("snapshot", "")) if first_try else ""
    if first_try is None or not first or first == now:
        return now
    left = f"{instance}: what turn {first_try.number} left half done in the workspace"
    others = (
        run.progress.killed_turns > 1
        or run.progress.running_instances != {instance}
        or _others_changed_it(run, instance, first_try.number)
    )
    if others and not run.copy:
        run.services.events.publish(Warning(f"{left} stays: others worked in it as well"))
        return now
    run.snapshots.write_patch(first, now, first_try.undone_path)
    run.snapshots.restore(first)
    run.services.events.publish(Warning(f"{left} was taken back; {first_try.path}/undone.patch has it"))
    return first


def _others_changed_it(run: RunResources, instance: str, turn: int) -> bool:
    """Whether others have finished changes to the workspace since that turn began, which would be undone with it."""

    def is_before(event: RunEvent) -> bool:
        return not (isinstance(event, TurnStarted) and (event.role, event.turn) == (instance, turn))

    events = dropwhile(is_before, read_events(run.services.folder.events_path))
    return any(_changed_it(run, instance, event) for event in events)


def _changed_it(run: RunResources, instance: str, event: RunEvent) -> bool:
    """Whether another than ``instance`` changed the workspace with what the event reports."""
    match event:
        case TurnEnded(role, turn):
            return role != instance and TurnFolder.of(run.services.folder, role, turn).patch_path.exists()
        case FilesApplied(role):
            return role != instance
        case _:
            return isinstance(event, CopyMerged)
