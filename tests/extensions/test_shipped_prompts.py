"""Every prompt of the shipped flows: the role's own words, the step's task and one description of the answer."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_multi_role import RunOptions
from codex_multi_role.catalog import FlowSpec
from codex_multi_role.lifecycle.dry_run import dry_run
from codex_multi_role.reading.shipped import definition_folders, packaged_roles
from codex_multi_role.run_folder import Record
from tests.support.paths import shipped_team

pytestmark = pytest.mark.extensions

INPUTS: Mapping[str, Mapping[str, str]] = {
    "cycles": {},
    "testgen": {"target": "sign.py"},
    "plan-solve": {},
    "research": {},
    "document": {"planning": "agentic", "synthesis": "agentic"},
}
"""A dry run has every step of a flow and of those it calls, whatever the inputs choose; `testgen-duel` calls one."""
ROLE_FILES = sorted(
    file
    for folder in definition_folders()
    for file in folder.glob("*.yaml")
    if "prompt_text" in (yaml.safe_load(file.read_text()) or {})
)
OWN_FIELDS = {
    "analysis_md": "analysis_md",
    "key_points": "key_points",
    "files": "field files|in files:",
    "status": "status (DONE|CONTINUE)",
    "requests": "need_more_context",
    "next_owner_suggestion": "next_owner_suggestion",
    "error": '"error"',
}
"""Fields of a handoff, and how a prompt speaks of them."""
CONTRADICTIONS = (
    ("(?i)short", r"at least \d+ words"),
    ("source alone", "meant to do"),
    ("must not use tools", "may read files"),
    ("nothing else", "analysis_md"),
    ("exactly one JSON object", "(?s)exactly one JSON object.*exactly one"),
)
NEVER = (r"\\u00\d\d", "sha256", r"(?i)from 0 to 1\b(?!:)", r"(?i)\byou are an? (?:expert|senior|experienced|world)")
"""Escaped signs, what only the tool needs, numbers without anchors, and titles."""


def in_words(text: str) -> str:
    return " ".join(text.split())


def sentences(text: str) -> list[str]:
    return [each for each in re.split(r"(?<=[.:!?]) ", in_words(text)) if each]


def first_pass(folder: Path, flow: str, roles: Path) -> list[Record]:
    folder.mkdir(exist_ok=True)
    (folder / "sign.py").write_text("def sign(number):\n    return -1 if number < 0 else 1\n")
    goal = "Who built the old bridge, and when was it opened?"
    options = RunOptions(flow=flow, goal=goal, inputs=INPUTS[flow], workspace=folder, roles=roles, run_tests=False)
    return [record for record in dry_run(options) if record["type"] == "ask"]


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], str]:
    """By flow, step and role. Each role says, beside its own words, that its file was edited."""
    folder = tmp_path_factory.mktemp("prompts")
    roles = shutil.copytree(packaged_roles(), folder / "roles")
    for file in ROLE_FILES:
        edited = f"prompt_text: |\n  Edited {yaml.safe_load(file.read_text())['name']}.\n"
        (roles / file.name).write_text(file.read_text().replace("prompt_text: |\n", edited))
    return {
        (flow, record["step"], record["role"]): record["prompt"]
        for flow in INPUTS
        for record in first_pass(folder / flow, flow, roles)
    }


def answer_schema(flow: str, step: str, role: str) -> Any:
    flows, catalog = shipped_team(flow)
    own = [each for each in steps(flows) if each.id == step.rpartition("/")[2] and role in each.asked]
    return next((each.reply for each in own if each.reply is not None), catalog.role(role).output_schema)


def steps(flows: Mapping[str, FlowSpec]) -> list[Any]:
    return [step for flow in flows.values() for step in flow.steps]


def test_each_shipped_role_and_step_is_asked(prompts: Mapping[tuple[str, str, str], str]) -> None:
    assert {role for _, _, role in prompts} == {yaml.safe_load(file.read_text())["name"] for file in ROLE_FILES}
    asking = {
        (step.id, role)
        for flow in INPUTS
        for step in steps(shipped_team(flow)[0])
        if step.ask not in (None, "*")
        for role in step.roles or [step.ask]
    }
    assert {(step.rpartition("/")[2], role) for _, step, role in prompts if step != "team"} == asking


def test_shipped_prompts_have_the_role_the_task_and_one_answer(prompts: Mapping[tuple[str, str, str], str]) -> None:
    problems = [
        f"{' '.join(place)}: {problem}" for place, prompt in prompts.items() for problem in problems_of(place, prompt)
    ]
    assert not problems


def problems_of(place: tuple[str, str, str], prompt: str) -> list[str]:
    flow, step, role = place
    flows, catalog = shipped_team(flow)
    words, schema = in_words(prompt), answer_schema(*place)
    found = [f"lacks {each!r}" for each in sentences(catalog.role(role).prompt_text) if each not in words]
    own = next((each for each in steps(flows) if each.id == step.rpartition("/")[2] and each.prompt), None)
    if prompt.count("\nYOUR TASK:\n") != (1 if own else 0):
        found.append("its task is not there once")
    if prompt.count("\nYOUR ANSWER:\n") != 1 or prompt.index("\nYOUR ANSWER:\n") < prompt.rindex("\nRULES:\n"):
        found.append("its answer is not described once, at the end")
    shown, whole = (text.count('"additionalProperties"') for text in (prompt, json.dumps(schema)))
    if shown != (0 if catalog.role(role).schema_hint else whole):
        found.append("its schema is not shown once")
    fields = (schema or {}).get("properties") or {}
    spoken = [OWN_FIELDS[name] for name in OWN_FIELDS if schema and name not in fields]
    said = re.sub(r'(?m)^ *".*$', "", prompt.replace("YOUR ANSWER:", ""))
    found += [f"speaks of {each!r}" for each in spoken if re.search(each, said)]
    found += [f"{a!r} with {b!r}" for a, b in CONTRADICTIONS if re.search(a, prompt) and re.search(b, prompt)]
    return found + [f"has {each!r}" for each in NEVER if re.search(each, prompt)]


def test_edited_role_says_what_its_file_says(prompts: Mapping[tuple[str, str, str], str]) -> None:
    """In all of its prompts, and in no other role's."""
    assert {role: set(re.findall(r"Edited (\S+)\.", prompt)) for (_, _, role), prompt in prompts.items()} == {
        role: {role} for _, _, role in prompts
    }
