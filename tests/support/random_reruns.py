"""Random teams with flows of every shape, and random edits of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import yaml

from codex_multi_role import RunOptions

Json = dict[str, Any]
PROVIDER = (
    'model_provider="pure"',
    'model_providers.pure={name="pure", base_url="http://127.0.0.1:9", wire_api="responses"}',
)
HABITS = ("", "", "LOOK at it.", "SUBMIT {name}.txt now.", "WRITE {name}.md now.")
"""What roles do besides answering."""
SCHEMA = {"type": "object", "required": ["summary"], "properties": {"summary": {"type": "string"}}}


@dataclass
class Project:
    """All that people edit: the catalog, flows by name, the files of the workspace, and options of the run."""

    catalog: Json
    flows: dict[str, Json]
    files: dict[str, str]
    options: Json = field(default_factory=dict)

    def write(self, folder: Path) -> RunOptions:
        """Write the team to ``folder/roles``, the files to ``folder/workspace``; the options of a run there."""
        (folder / "roles/flows").mkdir(parents=True)
        (folder / "roles/catalog.yaml").write_text(yaml.safe_dump(self.catalog))
        for name, flow in self.flows.items():
            (folder / f"roles/flows/{name}.yaml").write_text(yaml.safe_dump({"name": name, **flow}))
        for name, text in self.files.items():
            path = folder / "workspace" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        given: Json = {"goal": "reach it", "flow": "own", "cycles": 2, "config": PROVIDER, **self.options}
        return RunOptions(
            roles=folder / "roles",
            workspace=folder / "workspace",
            runs_dir=folder.parent / "runs",
            run_tests=False,
            **given,
        )


def random_project(chance: Random) -> Project:
    names = ["alpha", "beta", "gamma", "delta"][: chance.randint(2, 4)]
    roles = [_role(chance, name) for name in names]
    flows: dict[str, Json] = {
        "own": {"inputs": {"tone": "calm"}, "steps": _steps(chance, roles)},
        "inner": {"steps": [_ask(chance, roles, "deep")]},
    }
    if chance.random() < 0.2:
        flows["own"] = {
            "inputs": {"tone": "calm"},
            "steps": [
                {
                    "id": "team",
                    "ask": "*",
                    "next": [{"when": "cycle < cycles", "to": "team"}, {"end": "over", "exit": 1}],
                }
            ],
        }
        for role, before in zip(roles[1:], roles, strict=False):
            role["depends_on"] = [before["name"]] if chance.random() < 0.6 or _any_writes(roles) else []
    return Project({"version": 1, "roles": roles}, flows, {"a.txt": "a\n", "b/c.txt": "c\n"})


def _role(chance: Random, name: str) -> Json:
    habit = chance.choice(HABITS).format(name=name)
    role: Json = {"name": name, "prompt_text": f"You are {name}. {habit}", "output_schema": copy.deepcopy(SCHEMA)}
    if "SUBMIT" in habit:
        role["behaviors"] = {"apply_files": True}
    if "WRITE" in habit:
        role["prompt_flags"] = {"allow_write": True}
    return role


def _steps(chance: Random, roles: list[Json]) -> list[Json]:
    steps: list[Json] = [_ask(chance, roles, "first")]
    for number in range(chance.randint(1, 4)):
        kind = chance.choice(("ask", "ask", "fan", "call", "loop"))
        step = _ask(chance, roles, f"s{number}")
        before = chance.choice([each["id"] for each in steps if "for_each" not in each and "ask" in each])
        if kind == "fan":
            step |= {
                "for_each": chance.choice([["x", "y", "x"], f"{{{{ steps.{before}.get('items', []) }}}}"]),
                "max_items": 3,
            }
            step |= {"concurrency": chance.choice([1, 3])}
            if _writes(roles, step["ask"]):
                step |= {"isolate": "worktree", "merge": "all"}
        elif kind == "call":
            step = {"id": step["id"], "call": "inner"}
        elif kind == "loop":
            step["next"] = [{"when": f"steps.{step['id']}.visits < 3", "to": before}]
            step["max_visits"] = 3
        steps.append(step)
    for each in steps:
        each.setdefault("max_visits", 6)
    return [*steps]


def _writes(roles: list[Json], name: str) -> bool:
    return any(role["name"] == name and ("prompt_flags" in role or "behaviors" in role) for role in roles)


def _any_writes(roles: list[Json]) -> bool:
    return any(_writes(roles, role["name"]) for role in roles)


def _ask(chance: Random, roles: list[Json], name: str) -> Json:
    step: Json = {"id": name, "ask": chance.choice(roles)["name"]}
    if chance.random() < 0.3:
        step["with"] = {"note": chance.choice(["fixed", "{{ goal }}"])}
    elif chance.random() < 0.2:
        step["prompt"] = f"Do {name}. LOOK at it." if chance.random() < 0.5 else f"Do {name}."
    return step


Edit = Callable[[Random, Project], None]


def _any_role(chance: Random, project: Project) -> Json:
    role: Json = chance.choice(project.catalog["roles"])
    return role


def _any_step(chance: Random, project: Project) -> Json:
    steps = [step for flow in project.flows.values() for step in flow["steps"] if step.get("ask", "*") != "*"]
    step: Json = chance.choice(steps) if steps else {}
    return step


def edit_prompt(chance: Random, project: Project) -> None:
    _any_role(chance, project)["prompt_text"] += f" Take {chance.uniform(0, 9):.2f} s."


def edit_schema(chance: Random, project: Project) -> None:
    _any_role(chance, project)["output_schema"]["description"] = str(chance.random())


def edit_effort(chance: Random, project: Project) -> None:
    _any_role(chance, project)["reasoning_effort"] = chance.choice(["low", "high"])


def edit_model(chance: Random, project: Project) -> None:
    _any_role(chance, project)["model"] = "another"


def edit_codex_config(chance: Random, project: Project) -> None:
    _any_role(chance, project)["codex_config"] = {"model_verbosity": chance.choice(["low", "high"])}


def edit_tools(chance: Random, project: Project) -> None:
    _any_role(chance, project)["tools"] = ["calculator"]


def edit_step_prompt(chance: Random, project: Project) -> None:
    _any_step(chance, project)["prompt"] = f"Do it the other way {chance.random()}."


def edit_payload(chance: Random, project: Project) -> None:
    _any_step(chance, project)["with"] = {"note": chance.choice(["fixed", "other", "{{ inputs.tone }}"])}


def edit_dependency(chance: Random, project: Project) -> None:
    roles = project.catalog["roles"]
    if not _any_writes(roles):  # those that write at the same time have no order that could be repeated
        roles[-1]["depends_on"] = chance.choice([[], [roles[0]["name"]]])


def edit_file(chance: Random, project: Project) -> None:
    project.files[chance.choice(["a.txt", "b/c.txt", "new.txt"])] = f"{chance.random()}\n"


def edit_instructions(chance: Random, project: Project) -> None:
    project.files["AGENTS.md"] = f"Be brief: {chance.random()}\n"


def edit_goal(chance: Random, project: Project) -> None:
    project.options["goal"] = f"reach {chance.random()}"


def edit_input(chance: Random, project: Project) -> None:
    project.options["inputs"] = {"tone": str(chance.random())}


def edit_run_model(_: Random, project: Project) -> None:
    project.options["model"] = "run-model"


def edit_settings(chance: Random, project: Project) -> None:
    project.options["config"] = (*PROVIDER, f"model_verbosity={chance.choice(['low', 'high'])}")


def add_step(chance: Random, project: Project) -> None:
    steps = project.flows["own"]["steps"]
    if steps[0]["id"] == "team":
        return
    steps.insert(
        chance.randint(0, len(steps)), {"id": "added", "ask": _any_role(chance, project)["name"], "max_visits": 6}
    )


def remove_step(_: Random, project: Project) -> None:
    steps = project.flows["own"]["steps"]
    if len(steps) > 1 and "next" not in steps[-1]:
        steps.pop()


def edit_limits(chance: Random, project: Project) -> None:
    _any_role(chance, project)["limits"] = {"turn_seconds": chance.randint(100, 900)}


def edit_repairs(chance: Random, project: Project) -> None:
    project.options["repair_attempts"] = chance.randint(0, 3)


def edit_cycles(chance: Random, project: Project) -> None:
    project.options["cycles"] = chance.randint(1, 3)


def edit_nothing(_: Random, __: Project) -> None:
    pass


EDITS: tuple[Edit, ...] = (
    *(edit_prompt, edit_prompt, edit_prompt, edit_schema, edit_effort, edit_model, edit_codex_config, edit_tools),
    *(edit_step_prompt, edit_payload, edit_dependency, edit_file, edit_file, edit_instructions, edit_goal, edit_input),
    *(edit_run_model, edit_settings, add_step, remove_step, edit_limits, edit_repairs, edit_cycles, edit_nothing),
)
WITHOUT_EFFECT = (edit_limits, edit_nothing)
"""Edits that no turn depends on."""
