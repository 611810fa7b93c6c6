"""Small flows to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog
from codex_multi_role.catalog.prompts import GeneralPrompts
from codex_multi_role.catalog.role_spec import RoleSpec
from codex_multi_role.flow import Terms

ROLES = {"planner": 100.0, "developer": 10.0, "reader": 1.0}
"""The roles of `CATALOG` and the seconds that a turn of theirs may take. The developer changes files."""
CHECK_SECONDS = 7.0
CATALOG = RoleSpecCatalog(
    Path("catalog.yaml"),
    tuple(
        RoleSpec.model_validate(
            {
                "name": name,
                "prompt_text": "Do.",
                "limits": {"turn_seconds": seconds},
                "behaviors": {"apply_files": name == "developer"},
            }
        )
        for name, seconds in ROLES.items()
    ),
    GeneralPrompts(),
    (),
)


def terms_of(cycles: int = 3, repairs: int = 0, tests: float = 0.0, checks: float = CHECK_SECONDS) -> Terms:
    """``tests``: the longest of those after an ask; ``checks``: that of every check a step names."""
    return Terms(cycles, repairs, lambda _, given: float(str(given.get("seconds", checks))), tests)


def flow_of(text: str, name: str = "x") -> FlowSpec:
    """The flow that a file ``flows/<name>.yaml`` of this text holds; nothing outside it is looked up."""
    return FlowSpec.model_validate({"name": name, "source": Path(f"flows/{name}.yaml")} | yaml.safe_load(text))


def flows_of(**texts: str) -> dict[str, FlowSpec]:
    """Flows by name: ``flows_of(main="steps: [{call: inner}]", inner="…")``."""
    return {name: flow_of(text, name) for name, text in texts.items()}


def specs_of(flows: Iterable[Mapping[str, Any]]) -> dict[str, FlowSpec]:
    """Flows by name, as the mappings in their files."""
    return {flow["name"]: FlowSpec.model_validate({"source": f"{flow['name']}.yaml", **flow}) for flow in flows}


def steps_of(**routes: str) -> FlowSpec:
    """A flow of checks: ``steps_of(a="", b='{when: "…", to: a}')``."""
    steps = [f"{{id: '{name}', check: tests, next: [{each}]}}" for name, each in routes.items()]
    return flow_of(
        f"{{inputs: {{most: 4, half: 2.5, word: x, asked: {{type: integer}}}}, steps: [{', '.join(steps)}]}}"
    )


TEST_GENERATION = """
inputs: {target: {type: path}, max_iterations: 5, target_coverage: 100}
steps:
  - id: plan
    ask: planner
  - id: develop
    ask: developer
  - id: execute
    check: coverage
    with: {target: "{{ inputs.target }}"}
    next:
      - {when: "steps.execute.visits >= inputs.max_iterations", end: timeout, exit: 1}
      - {when: "steps.execute.crashed or steps.execute.failed", to: develop}
      - {when: "steps.execute.coverage < inputs.target_coverage", to: plan}
      - {end: success}
"""
