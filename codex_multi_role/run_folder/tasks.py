"""The items of a run's fan-outs, by the names that people use."""

from __future__ import annotations

from typing import Any

from codex_multi_role.errors import UsageError
from codex_multi_role.run_folder.folder import RunFolder, has_reached_end
from codex_multi_role.run_folder.states import OVER, read_states


def find_task(folder: RunFolder, task: str) -> dict[str, Any]:
    """The entry in `read_states` of the item named ``task``, its id or its unit; the last of several.

    Raises `UsageError`, which lists the existing ones.
    """
    items = read_states(folder)["items"]
    found = [each for each in items if task in (each["item"], each["unit"])]
    if found:
        return dict(found[-1])
    if not items:
        raise UsageError(f"the run {folder.run_id} has begun no tasks", "A task is an item of a step with for_each.")
    names = list(dict.fromkeys(each["item"] for each in items))
    raise UsageError(f"the run {folder.run_id} has no task '{task}'", f"It has {', '.join(names)}.")


def find_open_task(folder: RunFolder, task: str) -> str:
    """The unit of a task that has not ended. Raises `UsageError`."""
    found = find_task(folder, task)
    if found["state"] in OVER or has_reached_end(folder.record()):
        why = f": {found['reason']}" if found["reason"] else ""
        raise UsageError(
            f"the task {task} of the run {folder.run_id} is {found['state']}{why}",
            f"`codex-multi-role restart {folder.run_id} --task {task}` has it done again.",
        )
    return str(found["unit"])
