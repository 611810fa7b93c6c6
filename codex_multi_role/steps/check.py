"""The step kind ``check``: work that needs no model, recorded once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from codex_multi_role.checks import find_check
from codex_multi_role.checks.contract import COULD_NOT_RUN
from codex_multi_role.errors import CheckFailed, CodexMultiRoleError, RunInterrupted, RunParked, UsageError
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps.check_context import context_of, observed
from codex_multi_role.steps.protection import checked
from codex_multi_role.steps.repeated_check import once
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.test_runs import run_tests, tree_of, without_tree
from codex_multi_role.steps.unit import StepOutcome, Unit


def check_step(run: RunResources, unit: Unit) -> StepOutcome:
    """Carry out the step's check with its rendered ``with:`` options; a bad result is an outcome, not a failure.

    Raises `TemplateFailed`; `CheckFailed`, `UsageError`, `DefinitionError` if a failure is not tolerated.
    """
    name = unit.step.check or ""
    options = unit.fill("with")

    def work(place: int) -> Json:
        run.after_baseline()
        try:
            return _carry_out(run.in_copy("", fresh=False), unit, place, options)
        except CodexMultiRoleError as error:
            failure = unit.failure(error) if isinstance(error, UsageError) else error
            if not unit.tolerate or isinstance(error, (RunInterrupted, RunParked)):
                raise failure from error
            return {"status": COULD_NOT_RUN, "reason": str(failure), **(tree_of(run) if name == "tests" else {})}

    output = unit.record(f"check {name}", work)
    error = str(output.get("reason", "")) if output["status"] == COULD_NOT_RUN else ""
    output, tested = without_tree(run, output)
    bad = find_check(name).why_bad(output)
    if name == "tests":
        return StepOutcome(output, error, tests=output, tested=tested, judged=True, bad=bad and f"tests: {bad}")
    return StepOutcome(output, error, bad=bad and f"check {name}: {bad}")


def _carry_out(run: RunResources, unit: Unit, place: int, options: Mapping[str, object]) -> Json:
    name, folder = unit.step.check or "", run.services.folder.path / "checks" / unit.key
    with once(run, unit, place, folder):
        if name == "tests":
            result = run_tests(run, "", 0, options)
        else:
            context = context_of(run, make_folder(folder), options, unit.key, name)
            check = partial(checked, run, folder, partial(find_check(name), context), (), "")
            result = observed(run, folder, name, options, check)
    if result["status"] == COULD_NOT_RUN:
        raise CheckFailed(f"{unit.where}: the check {name} could not run: {result.get('reason', '')}")
    return result
