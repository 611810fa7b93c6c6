"""The step kind ``check``: work that needs no model, recorded once; and how long the checks of a run can take."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from codex_multi_role.catalog import load_yaml, render, settings_file, validate
from codex_multi_role.checks import CheckContext, RunFacts, find_check
from codex_multi_role.checks.test_changes import Outcomes
from codex_multi_role.errors import CheckFailed, CodexMultiRoleError, DefinitionError, RunInterrupted
from codex_multi_role.flow import Terms
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import own_turns
from codex_multi_role.run_folder.events import BaselineMeasured, TestsEnded, TestsStarted
from codex_multi_role.run_options import RunOptions
from codex_multi_role.steps.baseline import KINDS, outcomes_in
from codex_multi_role.steps.protection import checked
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.unit import StepOutcome, Unit


def terms(options: RunOptions, cycles: int | None = None) -> Terms:
    """The terms of a run with these options; ``cycles`` overrides theirs. `test_seconds` limits every check."""

    def check_seconds(name: str, given: Mapping[str, object]) -> float:
        return find_check(name).max_seconds(given, options.tests.test_seconds)

    seconds_of_tests = check_seconds("tests", {}) if options.tests.run_tests else 0.0
    return Terms(cycles or options.cycles, options.answers.repair_attempts, check_seconds, seconds_of_tests)


COULD_NOT_RUN = "could not run"
TREE = "tree"
"""In a recorded test result: the state of the files that were tested. Nobody else sees it."""
BESIDE_BASELINE = ("verdict", *KINDS, "without_baseline")
FAILURES_TOLD, MAX_NAME_CHARACTERS = 5, 200
"""Maximum number of failed tests that an event names, and the length of a name."""


def check_step(run: RunResources, unit: Unit) -> StepOutcome:
    """Carry out the step's check with its rendered ``with:`` options; a bad result is an outcome, not a failure.

    Raises `CheckFailed`, `UsageError`, `DefinitionError` if a failure is not tolerated.
    """
    name = unit.step.check or ""
    options = render(unit.step.with_, unit.context, f"{unit.where}: with")

    def work(_: int) -> Json:
        try:
            return _carry_out(run.in_copy("", fresh=False), unit, name, options)
        except CodexMultiRoleError as error:
            if not unit.tolerate or isinstance(error, RunInterrupted):
                raise
            return {"status": COULD_NOT_RUN, "reason": str(error)}

    output = unit.record(f"check {name}", work)
    error = str(output.get("reason", "")) if output["status"] == COULD_NOT_RUN else ""
    bad = find_check(name).why_bad(output)
    output, tested = without_tree(output)
    if name == "tests":
        return StepOutcome(output, error, tests=output, tested=tested, judged=True, bad=bad and f"tests: {bad}")
    return StepOutcome(output, error, bad=bad and f"check {name}: {bad}")


def without_tree(recorded: Json) -> tuple[Json, str]:
    """A recorded test result as others see it, and the state of the files that were tested; empty if unknown."""
    return {name: value for name, value in recorded.items() if name != TREE}, recorded.get(TREE, "")


def _carry_out(run: RunResources, unit: Unit, name: str, options: Mapping[str, object]) -> Json:
    if name == "tests":
        result = run_tests(run, "", 0, options)
    else:
        folder = make_folder(run.services.folder.path / "checks" / unit.key)
        context = _context(run, folder, options, unit.key, name)
        result = _observed(
            run, folder, name, options, lambda: checked(run, folder, partial(find_check(name), context), (), "")
        )
    if result["status"] == COULD_NOT_RUN:
        raise CheckFailed(f"{unit.where}: the check {name} could not run: {result.get('reason', '')}")
    return result


def run_tests(
    run: RunResources,
    role: str,
    turn: int,
    options: Mapping[str, object] | None = None,
    put_back: Collection[str] = (),
) -> Json:
    """Run the check ``tests`` on the current workspace; the result has its ``number`` (``tests/<nnn>``) and its `TREE`.

    ``put_back``: protected files that the previous turn had changed.
    """
    folder = run.services.folder.new_tests_folder()
    number = int(folder.name)
    run.services.events.publish(TestsStarted(number, role, turn))
    own = {"pytest_cmd": run.settings.tests.pytest_cmd} if run.settings.tests.pytest_cmd else {}
    context = _context(run, folder, {**own, **(options or {})})
    test = partial(checked, run, folder, partial(find_check("tests"), context), put_back, role)
    result = _observed(run, folder, "tests", context.options, lambda: {"number": number, **test()})
    command = str(context.options.get("pytest_cmd") or "")
    look_again = partial(_outcomes_of_second_look, run, folder / "again", context)
    result |= run.services.baseline.judge(folder, result, command, look_again)
    context.write_artifact("result.json", json.dumps(context.redact.within(result), indent=2) + "\n")
    counts = (int(str(result.get(name, 0))) for name in ("passed", "failed", "errors", "skipped"))
    passed, failed, errors, skipped = counts
    seconds = float(str(result.get("seconds", 0)))
    names = _failed_tests(result, run.services.folder.redact)
    beside = {name: result[name] for name in BESIDE_BASELINE if name in result}
    run.services.events.publish(
        TestsEnded(number, str(result["status"]), passed, failed, errors, skipped, seconds, names, **beside)
    )
    return {**result, TREE: run.snapshots.take() if run.settings.changes_workspace else ""}


def measure_baseline(run: RunResources) -> None:
    """Run the tests before the first turn, once. Raises `CodexUnavailable`, `StorageError`, `RunInterrupted`."""
    baseline = run.services.baseline
    if baseline.is_measured or not run.settings.tests.baseline:
        return
    baseline.require_sandbox()
    own = {"pytest_cmd": baseline.pytest_cmd} if baseline.pytest_cmd else {}
    context = _context(run, baseline.folder, own)
    result = checked(run, baseline.folder, partial(find_check("tests"), context), (), "")
    passed, failed, errors, skipped = (int(str(result[name])) for name in ("passed", "failed", "errors", "skipped"))
    seconds = float(str(result["seconds"]))
    status, problem = str(result["status"]), baseline.problem
    run.services.events.publish(BaselineMeasured(status, passed, failed, errors, skipped, seconds, problem))


def _outcomes_of_second_look(run: RunResources, folder: Path, context: CheckContext) -> Outcomes:
    checked(run, folder, partial(find_check("tests"), replace(context, folder=folder)), (), "")
    return outcomes_in(folder)


def _observed(
    run: RunResources, folder: Path, name: str, options: Mapping[str, object], carry_out: Callable[[], Json]
) -> Json:
    for observer in run.services.observers(run):
        carry_out = partial(observer.check, run, folder, name, options, carry_out)
    return carry_out()


def _failed_tests(result: Json, redact: Callable[[str], str]) -> list[str]:
    """The names of the first failed tests. The beginning of a secret would not be recognized: redacted, then cut."""
    failures: list[Json] = result.get("failures") or []
    return [redact(str(each["test"]))[:MAX_NAME_CHARACTERS] for each in failures[:FAILURES_TOLD]]


def _context(
    run: RunResources, folder: Path, options: Mapping[str, object], key: str = "", name: str = "tests"
) -> CheckContext:
    return CheckContext(
        workspace=run.workspace,
        folder=folder,
        environment=run.services.environment,
        sandbox=run.services.sandbox,
        deadline_seconds=run.settings.tests.deadline_seconds,
        options=options,
        stopping=run.progress.stopping,
        worktrees=run.services.worktrees,
        redact=run.services.folder.redact,
        run=lambda: _facts(run, key),
        python=run.settings.tests.python,
        settings=lambda: load_settings(name, run.catalog.source.parent),
    )


def load_settings(name: str, roles: Path) -> Any:  # noqa: ANN401 - whatever model the check declares
    """The settings of the check called ``name``; None if it has none.

    Raises one `DefinitionError` for all mistakes in its file.
    """
    settings = find_check(name).settings
    if settings is None:
        return None
    file = settings_file(settings.file, roles)
    if file is None:
        raise DefinitionError(f"{roles / settings.file}: is missing", f"The check {name} reads its settings there.")
    return validate(settings.model, load_yaml(file), file)


def _facts(run: RunResources, key: str) -> RunFacts:
    folder = run.services.folder
    record = folder.record()
    turns = [{"role": role, **turn} for role, turn in own_turns(folder)]
    return RunFacts(
        folder.run_id, record["flow"], record["started_at"], folder.path, key, turns, run.settings.searches_web
    )
