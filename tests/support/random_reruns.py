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
HABITS = ("", "", "LOOK at it.", "SUBMIT {name}.txt now.", "WRITE {name}.md now.", "WRITE {name}.log now.")
"""What roles do besides answering. Git ignores the last file."""
COMMANDS = ("cat *.txt *.md *.log", "ls -l a.txt | cut -c1-10", "cat a.txt >> made.txt", "true", "false")
SCHEMA = {"type": "object", "required": ["summary"], "properties": {"summary": {"type": "string"}}}


@dataclass
class Project:
    """All that people edit: the catalog, flows by name, the files of the workspace, and options of the run."""

    catalog: Json
    flows: dict[str, Json]
    files: dict[str, str]
    options: Json = field(default_factory=dict)
    executable: set[str] = field(default_factory=set)

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
            path.chmod(0o755 if name in self.executable else 0o644)
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
        "inner": {"inputs": {"tone": "calm"}, "steps": _checked(chance, [_ask(chance, roles, "deep")], "within")},
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
    return Project({"version": 1, "roles": roles}, flows, {"a.txt": "a\n", "b/c.txt": "c\n", ".gitignore": "*.log\n"})


def _role(chance: Random, name: str) -> Json:
    habit = chance.choice(HABITS).format(name=name)
    role: Json = {"name": name, "prompt_text": f"You are {name}. {habit}", "output_schema": copy.deepcopy(SCHEMA)}
    if "SUBMIT" in habit:
        role["behaviors"] = {"apply_files": True}
    if "WRITE" in habit:
        role["prompt_flags"] = {"allow_write": True}
    if chance.random() < 0.1:
        role["protect"] = [f"{name}.*"]
    return role


def _checked(chance: Random, steps: list[Json], name: str) -> list[Json]:
    """The ``steps`` with, in half of all cases, a check before the last one, whose prompt has its result."""
    if chance.random() < 0.5:
        return steps
    *others, last = steps
    if "ask" in last:
        last = {**last, "with": {"seen": f"{{{{ steps.{name}.stdout }}}}"}}
    check: Json = {"id": name, "check": "command", "max_visits": 6}
    return [*others, check | {"with": _command(chance)}, last]


def _command(chance: Random) -> Json:
    argv = ["sh", "-c", f"{chance.choice(COMMANDS)} 2>&1"]
    return {"argv": argv, "expect": [0, 1], "sandbox": False}  # outside it, because that is faster


def _steps(chance: Random, roles: list[Json]) -> list[Json]:
    steps = _checked(chance, [_ask(chance, roles, "first")], "before")
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
    return _checked(chance, steps, "then")


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
    _any_role(chance, project)["tools"] = ["terminate"]


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


def edit_check(chance: Random, project: Project) -> None:
    checks = [step for flow in project.flows.values() for step in flow["steps"] if "check" in step]
    if checks:
        chance.choice(checks)["with"] = _command(chance)


def edit_protect(chance: Random, project: Project) -> None:
    chance.choice([_any_role(chance, project), project.flows["own"]])["protect"] = [
        chance.choice(["a*", "*.md", "b/*"])
    ]


def edit_sandbox(chance: Random, project: Project) -> None:
    _any_role(chance, project)["sandbox"] = "workspace-write"


def edit_max_steps(chance: Random, project: Project) -> None:
    _any_role(chance, project)["max_steps"] = chance.randint(0, 2)


def edit_ignored_file(chance: Random, project: Project) -> None:
    project.files["old.log"] = f"{chance.random()}\n"


def edit_mode(_: Random, project: Project) -> None:
    project.executable ^= {"a.txt"}


def edit_nothing(_: Random, __: Project) -> None:
    pass


EDITS: tuple[Edit, ...] = (
    *(edit_prompt, edit_prompt, edit_prompt, edit_schema, edit_effort, edit_model, edit_codex_config, edit_tools),
    *(edit_step_prompt, edit_payload, edit_dependency, edit_file, edit_file, edit_instructions, edit_goal, edit_input),
    *(edit_run_model, edit_settings, add_step, remove_step, edit_limits, edit_repairs, edit_cycles, edit_nothing),
    *(edit_check, edit_check, edit_protect, edit_sandbox, edit_max_steps, edit_ignored_file, edit_mode),
)
WITHOUT_EFFECT = (edit_limits, edit_nothing)
"""Edits that no turn depends on."""
CAUTIOUS = (edit_protect, edit_sandbox, edit_max_steps)
"""Edits after which more turns may be asked than what they show the model requires."""


def is_exact(project: Project, edit: Edit) -> bool:
    """Whether a turn is asked only if it shows the model something new. Those that write ignored files always are."""
    return edit not in CAUTIOUS and not any(".log" in role["prompt_text"] for role in project.catalog["roles"])
