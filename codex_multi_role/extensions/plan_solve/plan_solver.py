"""Plan and solve from Python, like the seed's ``create_plan_solver``: a planner, solvers and an aggregator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_multi_role.api.python_team import Flow, Role, Team
from codex_multi_role.api.recorded_runs import OnTypedEvent, ReportedRun
from codex_multi_role.api.run_goal import run
from codex_multi_role.catalog.source_files import LOCAL_ROLES
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.shipped import definition_folders
from codex_multi_role.reading.yaml_source import load_yaml
from codex_multi_role.run_folder import AskPerson, RunFolder
from codex_multi_role.run_folder.items import ItemResults
from codex_multi_role.run_folder.states import read_states

Part = str | Path | None
"""Who plays a part: None for the shipped role, a `Path` to a role's YAML file, a role's name, or a prompt.

A name is a single word; its file is in the roles folder or shipped. Any other text is a prompt for the shipped role.
"""

SHIPPED = Path(__file__).with_name("roles")
FLOW = "plan-solve"
PARTS = {"plan": "planner_agent", "solve": "solver", "aggregate": "aggregator"}
"""The shipped role of each step."""


@dataclass(frozen=True)
class PlanSolved:
    """The result of a run. ``report``: how it ended, and its folder.

    ``context``: ``goal``, ``tasks`` (the plan) and ``verification`` (``verified``, ``issues``), empty if the run did
    not get that far. ``results``: one per task, in plan order: ``id``, ``status`` (done, failed or skipped), ``error``,
    and the fields of the solver's answer. ``aggregate``: the aggregator's answer, or None. ``statistics``: the numbers
    of ``tasks``, and of those ``done``, ``failed`` and ``skipped``; and the run's totals (``turns``, ``repairs``,
    ``input_tokens``, ``output_tokens``, ``seconds``).
    """

    context: Json
    results: list[Json]
    aggregate: Json | None
    statistics: Mapping[str, float]
    report: ReportedRun


@dataclass(frozen=True)
class PlanSolver:
    """Created by `create_plan_solver`; each call of `run` starts a new run."""

    roles: Mapping[str, Part]
    inputs: Mapping[str, Any]
    options: Mapping[str, Any]

    def run(self, goal: str, on_event: OnTypedEvent | None = None, ask_person: AskPerson | None = None) -> PlanSolved:
        """Plan, solve, aggregate, verify. Raises what `run` raises; the report contains failures within the run."""
        known = self.options.get("roles")
        roles = {step: _role(step, part, Path(known) if known else None) for step, part in self.roles.items()}
        team = Team(roles=list(roles.values()), flow=_flow({step: str(role.name) for step, role in roles.items()}))
        others = {name: value for name, value in self.options.items() if name != "roles"}
        return _solved(goal, roles, run(goal, on_event, ask_person, team=team, inputs=self.inputs, **others))


def create_plan_solver(
    planner: Part = None,
    solver: Part = None,
    aggregator: Part = None,
    concurrency: int = 2,
    *,
    confirm: bool = False,
    **options: Any,  # noqa: ANN401 - the fields of RunOptions
) -> PlanSolver:
    """Configure who plans, who solves, who aggregates, and how many tasks are solved at once.

    ``confirm``: a person must approve the plan first. ``options``: fields of `RunOptions`, such as ``workspace``,
    ``runs_dir``, ``model``; ``roles`` is the folder in which roles are looked up by name. Raises `UsageError` if
    ``concurrency`` is not positive.
    """
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency <= 0:
        raise UsageError(f"concurrency must be at least 1, not {concurrency!r}")
    taken = {"goal", "flow", "inputs"} & options.keys()
    if taken:
        raise UsageError(f"a plan solver has its own {', '.join(sorted(taken))}")
    roles = dict(zip(PARTS, (planner, solver, aggregator), strict=True))
    return PlanSolver(roles, {"concurrency": concurrency, "confirm": confirm}, options)


def _flow(names: Mapping[str, str]) -> Flow:
    """The shipped flow with these roles for its steps."""
    shipped = Flow.model_validate(load_yaml(SHIPPED / "flows" / f"{FLOW}.yaml"))
    steps = (step.model_copy(update={"ask": names[step.id]}) if step.id in names else step for step in shipped.steps)
    return shipped.model_copy(update={"steps": tuple(steps)})


def _role(step: str, part: Part, known: Path | None) -> Role:
    shipped = SHIPPED / f"{PARTS[step]}.yaml"
    if isinstance(part, str) and len(part.split()) != 1:
        return Role(name=PARTS[step], role_file=str(shipped), prompt_text=part)
    file = shipped if part is None else part if isinstance(part, Path) else _file_of(part, known)
    return Role(name=_name_in(file), role_file=str(file))


def _file_of(name: str, known: Path | None) -> Path:
    folders = [*([known if known.is_dir() else known.parent] if known else []), *definition_folders(LOCAL_ROLES)]
    files = [folder / f"{name}.{ending}" for folder in folders for ending in ("yaml", "yml")]
    found = [file for file in files if file.is_file()]
    if not found:
        places = ", ".join(dict.fromkeys(str(file.parent) for file in files))
        raise UsageError(f'role file not found: "{name}.yaml"', f"Searched in {places}; a Path names any file.")
    return found[0]


def _name_in(file: Path) -> str:
    """The role's name. Errors in the file are reported when the catalog is loaded."""
    with suppress(DefinitionError):
        written = load_yaml(file)
        return str(written.get("name") or file.stem) if isinstance(written, dict) else file.stem
    return file.stem


def _solved(goal: str, roles: Mapping[str, Role], report: ReportedRun) -> PlanSolved:
    folder, latest = RunFolder(report.folder), report.handoffs
    verification = latest.get("verifier", {})
    items = ItemResults(folder.path)
    units = [each["unit"] for each in read_states(folder)["items"] if each["unit"].rpartition(".")[0] == "solve.1"]
    results = [found for unit in units if (found := _result(items.read(unit)))]
    counts = Counter(each["status"] for each in results)
    tasks = latest.get(str(roles["plan"].name), {}).get("todos", [])
    return PlanSolved(
        context={"goal": goal, "tasks": tasks, "verification": verification},
        results=results,
        aggregate=latest.get(str(roles["aggregate"].name)),
        statistics={
            "tasks": len(tasks),
            **{name: counts[name] for name in ("done", "failed", "skipped")},
            **report.totals,
        },
        report=report,
    )


def _result(item: Json | None) -> Json:
    """The result of a task that has ended; empty for any other."""
    if item is None:
        return {}
    outcome = item["outcome"]
    status = "skipped" if outcome["skipped"] else "failed" if outcome["error"] else "done"
    return {**outcome["output"], "id": item["value"]["id"], "status": status, "error": outcome["error"]}
