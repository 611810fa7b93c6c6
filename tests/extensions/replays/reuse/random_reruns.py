"""Random teams and projects for runs that are repeated, and edits of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import yaml
from hypothesis import strategies as st

from codex_multi_role import RunOptions
from tests.support.random_flows import Weights, flows

Json = dict[str, Any]
PROVIDER = (
    'model_provider="pure"',
    'model_providers.pure={name="pure", base_url="http://127.0.0.1:9", wire_api="responses"}',
)
HABITS = ("", "", "LOOK at it.", "SUBMIT {name}.txt now.", "WRITE {name}.md now.", "WRITE {name}.log now.")
"""What roles do besides answering. Git ignores the last file."""
COMMANDS = ("cat *.txt *.md *.log", "ls -l a.txt | cut -c1-10", "cat a.txt >> made.txt", "true", "false")
CHECKS = [
    {"argv": ["sh", "-c", f"{command} 2>&1"], "expect": [0, 1], "sandbox": False}  # outside it, because that is faster
    for command in COMMANDS
]
SCHEMA = {"type": "object", "required": ["summary"], "properties": {"summary": {"type": "string"}}}


@dataclass
class Project:
    """All that people edit: the catalog, flows by name, the files of the workspace, and options of the run.

    The option ``executable`` has the names of such files.
    """

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
            path.chmod(0o755 if name in self.options.get("executable", ()) else 0o644)
        given: Json = {"goal": "reach it", "flow": "own", "cycles": 2, "config": PROVIDER, **self.options}
        given.pop("executable", None)
        return RunOptions(
            roles=folder / "roles",
            workspace=folder / "workspace",
            runs_dir=folder.parent / "runs",
            run_tests=False,
            **given,
        )


REPEATED = Weights(
    kinds={"ask": 6, "check": 2, "call": 1, "panel": 1, "chosen": 1, "every": 1},
    keys={
        **{"for_each": 30, "found": 50, "needs": 20, "at_once": 66, "until": 15, "copy": 15, "kept": 15, "retry": 15},
        **{"skip": 20, "set": 15, "back": 50, "combined": 20, "visits": 20},
        **{"plain": 100, "with": 60, "stdout": 75},
    },
    fields=("items",),
)


@st.composite
def projects(draw: st.DrawFn) -> Project:
    names = ["alpha", "beta", "gamma", "delta"][: draw(st.integers(2, 4))]
    roles = [_role(draw, name) for name in names]
    writers = [role["name"] for role in roles if "prompt_flags" in role or "behaviors" in role]
    for role, before in pairwise(roles):  # those that write at the same time have no order that could be repeated
        waits = bool(writers) or draw(st.booleans())
        role["depends_on"] = [before["name"]] if waits else []
    drawn = draw(flows(replace(REPEATED, roles=names, writers=writers)))
    for step in (step for flow in drawn for step in flow["steps"] if "check" in step):
        step["with"] = draw(st.sampled_from(CHECKS))
    files = {"a.txt": "a\n", "b/c.txt": "c\n", ".gitignore": "*.log\n"}
    return Project({"version": 1, "roles": roles}, {flow.pop("name"): flow for flow in drawn}, files)


def _role(draw: st.DrawFn, name: str) -> Json:
    habit = draw(st.sampled_from(HABITS)).format(name=name)
    role: Json = {"name": name, "prompt_text": f"You are {name}. {habit}", "output_schema": copy.deepcopy(SCHEMA)}
    if "SUBMIT" in habit:
        role["behaviors"] = {"apply_files": True}
    if "WRITE" in habit:
        role["prompt_flags"] = {"allow_write": True}
    return role | ({"protect": [f"{name}.*"]} if draw(st.integers(0, 9)) == 9 else {})


@dataclass(frozen=True)
class Edit:
    """A new value, one of ``values``, of the key of a role, an ask, a check, the own flow, the run or the files.

    ``is_cautious``: more turns may be asked than what they show the model requires. ``has_effect``: on turns.
    """

    of: str
    key: str
    values: Sequence[Any]
    is_cautious: bool = False
    has_effect: bool = True

    def apply(self, chance: Random, project: Project) -> None:
        steps = [step for flow in project.flows.values() for step in flow["steps"]]
        edited = {
            "role": project.catalog["roles"],
            "ask": [step for step in steps if step.get("ask", "*") != "*"],
            "check": [step for step in steps if "check" in step],
            "flow": [project.flows["own"]],
            "run": [project.options],
            "files": [project.files],
        }[self.of]
        if edited:
            values = chance.choice(edited)
            value = chance.choice(self.values)
            values[self.key] = value(values.get(self.key)) if callable(value) else value


def _add_step(steps: list[Json]) -> list[Json]:
    return [*steps[:1], {"id": "added", "ask": "alpha", "limits": {"visits": 6}}, *steps[1:]]


def _remove_step(steps: list[Json]) -> list[Json]:
    """The last one, if no other leads to it."""
    is_target = any(route.get("to") == steps[-1]["id"] for step in steps[:-1] for route in step.get("next", ()))
    return steps if is_target else steps[:-1] or steps


EFFORTS = ("low", "high")
EDITS: tuple[Edit, ...] = (
    *(Edit("role", "prompt_text", [lambda text: f"{text} Take 1.25 s.", lambda text: f"{text} Take 3 s."]),) * 3,
    Edit("role", "output_schema", [{**SCHEMA, "description": text} for text in EFFORTS]),
    Edit("role", "reasoning_effort", EFFORTS),
    Edit("role", "model", ["another"]),
    Edit("role", "codex_config", [{"model_verbosity": effort} for effort in EFFORTS]),
    Edit("role", "tools", [["terminate"]]),
    Edit("role", "limits", [{"turn_seconds": 100}, {"turn_seconds": 900}], has_effect=False),
    Edit("role", "sandbox", ["workspace-write"], is_cautious=True),
    Edit("role", "max_steps", [0, 1, 2], is_cautious=True),
    Edit("role", "protect", [["a*"], ["*.md"], ["b/*"]], is_cautious=True),
    Edit("flow", "protect", [["a*"], ["*.md"], ["b/*"]], is_cautious=True),
    Edit("flow", "steps", [_add_step]),
    Edit("flow", "steps", [_remove_step]),
    Edit("ask", "prompt", ["Do it the other way.", "Do it. LOOK at it."]),
    Edit("ask", "with", [{"note": "fixed"}, {"note": "other"}, {"note": "{{ inputs.most }}"}, {"note": "{{ goal }}"}]),
    *(Edit("check", "with", CHECKS),) * 2,
    *(Edit("files", name, ["1\n", "2\n"]) for name in ("a.txt", "b/c.txt", "new.txt", "AGENTS.md", "old.log")),
    Edit("run", "executable", [{"a.txt"}]),
    Edit("run", "goal", ["reach more", "reach less"]),
    Edit("run", "inputs", [{"most": 1}, {"most": 3}]),
    Edit("run", "model", ["run-model"]),
    Edit("run", "config", [(*PROVIDER, f"model_verbosity={effort}") for effort in EFFORTS]),
    Edit("run", "repair_attempts", [0, 1, 3]),
    Edit("run", "cycles", [1, 2, 3]),
    Edit("run", "cycles", [2], has_effect=False),
)


def is_exact(project: Project, edit: Edit) -> bool:
    """Whether a turn is asked only if it shows the model something new. Those that write ignored files always are."""
    return not edit.is_cautious and not any(".log" in role["prompt_text"] for role in project.catalog["roles"])
