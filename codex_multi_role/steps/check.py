"""The step kind ``check``: work that needs no model, recorded once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from codex_multi_role.catalog import StepSpec
from codex_multi_role.catalog.templates import render
from codex_multi_role.checks import CheckContext, find_check
from codex_multi_role.run_folder.atomic import make_folder
from codex_multi_role.run_folder.events import TestsEnded, TestsStarted
from codex_multi_role.steps.resources import Json, Recorder, RunResources


def check(run: RunResources, step: StepSpec, context: Mapping[str, object], visit: int, record: Recorder) -> Json:
    """Carry out the step's check with its ``with:`` options rendered. Raises `CheckFailed`, `DefinitionError`."""
    name = step.check or ""
    options = render(step.with_, context, f"steps.{step.id}.with")
    if name == "tests":
        return record(f"check {name}", lambda: run_tests(run, "", 0, options))
    folder = run.folder.path / "checks" / step.id / f"{visit:03d}"

    def work() -> Json:
        make_folder(folder)
        return find_check(name)(_context(run, folder, options))

    return record(f"check {name}", work)


def run_tests(run: RunResources, role: str, turn: int, options: Mapping[str, object] | None = None) -> Json:
    """The check ``tests`` on the workspace as it is; the result names its ``number`` (``tests/<nnn>``)."""
    folder = run.folder.new_tests_folder()
    number = int(folder.name)
    run.events.publish(TestsStarted(number, role, turn))
    own = {"pytest_cmd": run.tests.pytest_cmd} if run.tests.pytest_cmd else {}
    result = {"number": number, **find_check("tests")(_context(run, folder, {**own, **(options or {})}))}
    counts = {name: int(str(result.get(name, 0))) for name in ("passed", "failed", "errors", "skipped")}
    seconds = float(str(result.get("seconds", 0)))
    run.events.publish(TestsEnded(number, str(result["status"]), seconds=seconds, **counts))
    return result


def _context(run: RunResources, folder: Path, options: Mapping[str, object]) -> CheckContext:
    return CheckContext(
        workspace=run.workspace,
        folder=folder,
        environment=run.environment,
        sandbox=run.sandbox,
        deadline_seconds=run.tests.deadline_seconds,
        options=options,
        stopping=run.stopping,
    )
