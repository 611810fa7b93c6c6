"""Plan and solve from Python, like the seed's ``create_plan_solver``: a planner, solvers and an aggregator."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from codex_multi_role.api import run
from codex_multi_role.catalog import packaged_roles
from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.session import OnEvent
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import AskPerson, RunFolder
from codex_multi_role.run_folder.items import ItemResults
from codex_multi_role.run_folder.states import read_states
from codex_multi_role.run_options import RunOptions, RunReport

Role = str | Path | None
"""Who plays a part: None for the shipped role, a `Path` to a role's YAML file, a role's name, or a prompt.

A name is a single word; its file is in the roles folder or shipped. Any other text is a prompt for the shipped role.
"""

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
    report: RunReport


@dataclass(frozen=True)
class PlanSolver:
    """Created by `create_plan_solver`; each call of `run` starts a new run."""

    roles: Mapping[str, Role]
    inputs: Mapping[str, Any]
    options: Mapping[str, Any]

    def run(self, goal: str, on_event: OnEvent | None = None, ask_person: AskPerson | None = None) -> PlanSolved:
        """Plan, solve, aggregate, verify. Raises what `api.run` raises; the report contains failures within the run."""
        folder = self.options.get("roles")
        with tempfile.TemporaryDirectory() as name:
            names = _write_roles(Path(name), self.roles, Path(folder) if folder else None)
            given = {**self.options, "roles": Path(name), "flow": FLOW, "inputs": self.inputs}
            report = run(RunOptions(goal=goal, **given), on_event, ask_person)
        return _solved(goal, names, report)


def create_plan_solver(
    planner: Role = None,
    solver: Role = None,
    aggregator: Role = None,
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


def _write_roles(folder: Path, roles: Mapping[str, Role], known: Path | None) -> dict[str, str]:
    """Write a catalog of the roles and the flow that asks them; returns the role name of each step."""
    entries = {step: _entry(step, role, folder, known) for step, role in roles.items()}
    catalog = {"version": 1, "roles": list(entries.values())}
    flow = yaml.safe_load((packaged_roles() / "flows" / f"{FLOW}.yaml").read_text(encoding="utf-8"))
    for step in flow["steps"]:
        if step["id"] in entries:
            step["ask"] = entries[step["id"]]["name"]
    (folder / "flows").mkdir()
    (folder / "catalog.yaml").write_text(yaml.safe_dump(catalog, allow_unicode=True), encoding="utf-8")
    (folder / "flows" / f"{FLOW}.yaml").write_text(yaml.safe_dump(flow, allow_unicode=True), encoding="utf-8")
    return {step: entry["name"] for step, entry in entries.items()}


def _entry(step: str, role: Role, folder: Path, known: Path | None) -> Json:
    """The catalog entry of a role. Its file is relative to the catalog, so that the run's copy finds it."""
    shipped = packaged_roles() / f"{PARTS[step]}.yaml"
    if isinstance(role, str) and len(role.split()) != 1:
        return {"name": PARTS[step], "role_file": _relative(shipped, folder), "prompt_text": role}
    file = shipped if role is None else role if isinstance(role, Path) else _file_of(role, known)
    return {"name": _name_in(file), "role_file": _relative(file, folder)}


def _relative(file: Path, folder: Path) -> str:
    return os.path.relpath(file.resolve(), folder.resolve())


def _file_of(name: str, known: Path | None) -> Path:
    folders = [*([known if known.is_dir() else known.parent] if known else []), Path("roles"), packaged_roles()]
    files = [folder / f"{name}.{ending}" for folder in folders for ending in ("yaml", "yml")]
    found = [file for file in files if file.is_file()]
    if not found:
        places = ", ".join(dict.fromkeys(str(file.parent) for file in files))
        raise UsageError(f'role file not found: "{name}.yaml"', f"Searched in {places}; a Path names any file.")
    return found[0]


def _name_in(file: Path) -> str:
    """The role's name. Errors in the file are reported when the catalog is loaded."""
    try:
        written = yaml.safe_load(file.read_text(encoding="utf-8"))
        return str(written.get("name") or file.stem)
    except (OSError, ValueError, AttributeError, yaml.YAMLError):
        return file.stem


def _solved(goal: str, names: Mapping[str, str], report: RunReport) -> PlanSolved:
    folder = RunFolder(report.folder)
    latest = json.loads(folder.state_path.read_text(encoding="utf-8"))["latest_json_by_role"]
    verification = latest.get("verifier", {})
    items = ItemResults(folder.path)
    results = [
        found
        for each in read_states(folder)["items"]
        if each["unit"].rpartition(".")[0] == "solve.1" and (found := _result(items.read(each["unit"])))
    ]
    counts = Counter(each["status"] for each in results)
    tasks = latest.get(names["plan"], {}).get("todos", [])
    return PlanSolved(
        context={"goal": goal, "tasks": tasks, "verification": verification},
        results=results,
        aggregate=latest.get(names["aggregate"]),
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
    return {"id": item["value"]["id"], "status": status, "error": outcome["error"], **outcome["output"]}
