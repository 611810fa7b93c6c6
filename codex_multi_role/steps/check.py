"""The step kind ``check``: work that needs no model, recorded once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from codex_multi_role.catalog.step_spec import CheckStep
from codex_multi_role.checks import find_check
from codex_multi_role.checks.contract import COULD_NOT_RUN
from codex_multi_role.errors import CheckFailed, CodexMultiRoleError, RunInterrupted, RunParked, UsageError
from codex_multi_role.host.atomic import make_folder, write_json
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Question
from codex_multi_role.run_folder.events import Warning, now
from codex_multi_role.steps.check_context import context_of, observed
from codex_multi_role.steps.protection import checked
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.review import decide
from codex_multi_role.steps.test_runs import run_tests, tree_of, without_tree
from codex_multi_role.steps.unit import StepOutcome, Unit

BEGAN, UNDONE = "began.json", "undone.patch"
"""Files in the folder of a check: the started attempt, and what another one had left."""
WITHOUT_SLOT = 0
"""The place of work that the journal does not record, because it is done again at another time: nothing is undone."""


def check_step(run: RunResources, unit: Unit) -> StepOutcome:
    """Carry out the step's check with its rendered ``with:`` options; a bad result is an outcome, not a failure.

    Raises `TemplateFailed`; `CheckFailed`, `UsageError`, `DefinitionError` if a failure is not tolerated.
    """
    name = unit.step.check or ""
    options = unit.fill("with")
    with unit.record(f"check {name}") as work:
        if work.is_due:
            run.after_baseline()
            try:
                work.result = _carry_out(run.in_copy("", fresh=False), unit, work.place, options)
            except CodexMultiRoleError as error:
                failure = unit.failure(error) if isinstance(error, UsageError) else error
                if not unit.tolerate or isinstance(error, (RunInterrupted, RunParked)):
                    raise failure from error
                tree = tree_of(run) if name == "tests" else {}
                work.result = {"status": COULD_NOT_RUN, "reason": str(failure), **tree}
    output = work.result
    problem = str(output.get("reason", "")) if output["status"] == COULD_NOT_RUN else ""
    output, tested = without_tree(run, output)
    bad = find_check(name).why_bad(output)
    if name == "tests":
        return StepOutcome(output, problem, tests=output, tested=tested, judged=True, bad=bad and f"tests: {bad}")
    return StepOutcome(output, problem, bad=bad and f"check {name}: {bad}")


def _carry_out(run: RunResources, unit: Unit, place: int, options: Mapping[str, object]) -> Json:
    name, folder = unit.step.check or "", run.services.folder.path / "checks" / unit.key
    with once(run, unit, place, folder):
        if name == "tests":
            result = run_tests(run, "", 0, options, unit=unit.key)
        else:
            context = context_of(run, make_folder(folder), options, unit.key, name)
            check = partial(checked, run, folder, partial(find_check(name), context), (), "")
            result = observed(run, folder, name, options, check)
    if result["status"] == COULD_NOT_RUN:
        raise CheckFailed(f"{unit.where}: the check {name} could not run: {result.get('reason', '')}")
    return result


@contextmanager
def once(run: RunResources, unit: Unit, place: int, folder: Path) -> Iterator[None]:
    """Carry out the unit's check in the block; what an interrupted attempt at this ``place`` left is undone first.

    A step with ``once: true`` asks a person instead. ``folder`` has the check's artifacts. Raises
    `ReviewWaiting`, and `CheckFailed` if the person does not want it to run again.
    """
    undoes = find_check(unit.step.check or "").undo_interrupted
    is_once = isinstance(unit.step, CheckStep) and unit.step.once
    if not is_once and not undoes:
        yield
        return
    began = folder / BEGAN
    before = read_object(began)
    if before.get("place") not in (place, WITHOUT_SLOT):
        before = {}
    elif is_once:
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
