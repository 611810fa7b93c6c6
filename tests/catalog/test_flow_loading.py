from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.catalog import FlowSpec, GoalSpec, RoleSpecCatalog, list_flows
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.reading.shipped import packaged_roles
from tests.support.catalogs import Mistake, Write, load_flow
from tests.support.wrong_values import rows_of

_TESTGEN = """\
description: Tests for a file.
inputs:
  {target: {type: path}, max_iterations: 5, ratio: 0.5, strict: false, label: {default: x}, note: {required: false}}
steps:
  - ask: planner
  - id: develop
    ask: developer
  - id: execute
    check: coverage
    limits: {visits: 9}
    with: {target: "{{ inputs.target }}", options: ["{{ goal }}", 3]}
    next:
      - {when: "steps.execute.visits >= inputs.max_iterations", end: timeout, exit: 1}
      - {when: "steps.execute.crashed or roles.planner.stop", to: develop}
      - {end: success}
"""


def test_shipped_flow_runs_any_catalog(two_roles: RoleSpecCatalog) -> None:
    flow = load_flow("cycles", None, two_roles)
    assert flow.name == "cycles"
    assert flow.source == packaged_roles() / "flows" / "cycles.yaml"
    step = flow.step("team")
    assert (step.kind, step.ask) == ("ask", "*")
    assert [route.model_dump(exclude_none=True) for route in step.next] == [
        {"when": "cycle < cycles", "to": "team"},
        {"end": "cycles_used_up", "exit": 1, "reason": "{{ steps.team.declined | join('; ') }}"},
    ]


def test_flow_of_the_roles_folder(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> None:
    source = write(_TESTGEN, "flows/testgen.yaml")
    flow = load_flow("testgen", tmp_path, two_roles)
    assert (flow.name, flow.source) == ("testgen", source)
    assert [(step.id, step.kind) for step in flow.steps] == [
        ("planner", "ask"),
        ("develop", "ask"),
        ("execute", "check"),
    ]
    assert flow.step("execute").with_ == {"target": "{{ inputs.target }}", "options": ["{{ goal }}", 3]}
    assert flow.step("execute").limits.visits == 9


def test_flows_of_the_roles_folder_hide_packaged_ones(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> None:
    own = write("description: Own.\nsteps: [{ask: planner}]", "flows/cycles.yaml")
    other = write("steps: [{ask: nobody_here}]", "flows/other.yml")
    broken = write("steps: 3", "flows/broken.yaml")
    assert load_flow("cycles", tmp_path, two_roles).source == own
    listed = {entry.name: entry for entry in list_flows(tmp_path)}
    assert (listed["cycles"].source, listed["cycles"].description) == (own, "Own.")
    assert (listed["other"].source, listed["other"].problem) == (other, "")
    assert listed["broken"].problem == f"{broken}:1:1: steps: must be a list, not 3"
    assert "cycles" in [entry.name for entry in list_flows(None)]


@pytest.mark.parametrize("name", ["cylces", "cycles.yaml", "../flows/cycles", ""])
def test_unknown_flow_names_the_nearest(two_roles: RoleSpecCatalog, name: str) -> None:
    with pytest.raises(UsageError, match=f'unknown flow "{name}"') as caught:
        load_flow(name, None, two_roles)
    assert "cycles" in caught.value.hint
    assert ('did you mean "cycles"?' in str(caught.value)) == name.startswith("cy")


@pytest.mark.parametrize(("text", "message"), rows_of("definitions", "flow", "before"))
def test_every_mistake_names_file_and_key(mistake: Mistake, text: str, message: str) -> None:
    assert mistake(text).startswith(message)


FLOWS = {
    "testgen": _TESTGEN,
    "collecting": """
inputs:
  names: [a, b]
  wanted: {type: list}
  sizes: {type: mapping, default: {a: 1}}
steps:
  - {ask: planner, for_each: {items: "{{ inputs.names }}", max_items: 9}}
""",
    "bounded": """
goal: {min_length: 3, max_length: 5}
inputs:
  depth: {default: quick, choices: [quick, deep]}
  results: {type: integer, default: 3, minimum: 1, maximum: 5}
  share: {type: number, default: 1, minimum: 0.5}
steps: [{ask: planner}]
""",
    "asking": "inputs: {question: }\nsteps: [{ask: planner}]",
}
Load = Callable[[str], FlowSpec]


@pytest.fixture
def loaded(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> Load:
    def load(name: str) -> FlowSpec:
        write(FLOWS[name], f"flows/{name}.yaml")
        return load_flow(name, tmp_path, two_roles)

    return load


def test_inputs_have_their_types(loaded: Load) -> None:
    flow = loaded("testgen")
    defaults = {"max_iterations": 5, "ratio": 0.5, "strict": False, "label": "x", "note": None}
    assert flow.resolve_inputs({"target": "src"}) == {"target": "src"} | defaults
    given = {"target": "s", "max_iterations": "7", "ratio": "2", "strict": "yes", "label": "5", "note": ""}
    converted = flow.resolve_inputs(given)
    assert converted == {"target": "s", "max_iterations": 7, "ratio": 2.0, "strict": True, "label": "5", "note": ""}
    assert flow.resolve_inputs({"target": "s", "max_iterations": 8})["max_iterations"] == 8
    bounded = loaded("bounded").resolve_inputs({"depth": "deep", "results": "5"})
    assert bounded == {"depth": "deep", "results": 5, "share": 1}


def test_lists_and_mappings_are_yaml_text(loaded: Load) -> None:
    collecting = loaded("collecting")
    read = collecting.resolve_inputs({"wanted": "[x, {y: 1}]", "sizes": '{"b": [true]}'})
    assert read == {"names": ["a", "b"], "wanted": ["x", {"y": 1}], "sizes": {"b": [True]}}
    assert collecting.resolve_inputs({"wanted": ["x"]}) == {"names": ["a", "b"], "wanted": ["x"], "sizes": {"a": 1}}


WANTED = "Set --input 'wanted=[a, b]'."


@pytest.mark.parametrize(
    ("flow", "given", "message", "hint"),
    [
        ("collecting", {}, 'the input "wanted" is missing', WANTED),
        ("collecting", {"wanted": "a"}, "the input \"wanted\" is not of type list: 'a'", WANTED),
        ("collecting", {"wanted": "[a"}, 'the input "wanted" is not valid YAML: did not find expected', WANTED),
        ("collecting", {"wanted": "[" * 100 + "]" * 100}, "is not valid YAML: nested more than 64", WANTED),
        ("collecting", {"wanted": "[\0]"}, 'the input "wanted" is not valid YAML', WANTED),
        ("collecting", {"wanted": "[]", "sizes": "[1]"}, '"sizes" is not of type mapping', "Set --input 'sizes={a: 1}"),
        ("testgen", {}, 'flow testgen: the input "target" is missing', "Set --input target=<path>."),
        ("testgen", {"traget": "x"}, 'unknown input "traget"; did you mean "target"?', "Known: target, max_"),
        ("testgen", {"target": "x", "max_iterations": "many"}, "is not of type integer: 'many'", ""),
        ("testgen", {"target": "x", "ratio": "nan"}, "is not of type number: 'nan'", ""),
        ("testgen", {"target": "x", "strict": "perhaps"}, "is not of type boolean: 'perhaps'", ""),
        ("testgen", {"target": 3}, "is not of type path: 3", ""),
        ("bounded", {"depth": "deeper"}, "the input \"depth\" must be one of quick, deep, not 'deeper'", ""),
        ("bounded", {"results": "6"}, "the input \"results\" must be at least 1 and at most 5, not '6'", ""),
        ("bounded", {"share": 0.25}, 'the input "share" must be at least 0.5, not 0.25', ""),
        ("asking", {}, 'the input "question" is missing', ""),
    ],
)
def test_wrong_inputs(loaded: Load, flow: str, given: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        loaded(flow).resolve_inputs(given)
    assert message in str(caught.value)
    assert caught.value.hint.startswith(hint)


def test_goal_is_neither_shorter_nor_longer_than_the_flow_takes(loaded: Load) -> None:
    bounded = loaded("bounded").goal
    assert bounded.resolve("bounded", " four") == " four"
    for goal in ("  ab   ", "abcdef"):
        with pytest.raises(UsageError, match=r"flow bounded: the goal has [26] characters, but 3 to 5 are required"):
            bounded.resolve("bounded", goal)


def test_flow_may_have_a_goal_of_its_own() -> None:
    own = GoalSpec(default="its own", max_length=10)
    assert (own.resolve("f", ""), own.resolve("f", " \n"), own.resolve("f", "mine")) == ("its own", "its own", "mine")
    with pytest.raises(UsageError, match="missing goal"):
        GoalSpec().resolve("f", " \n")


def test_flow_says_what_a_fresh_workspace_needs_and_what_is_protected(
    write: Write, two_roles: RoleSpecCatalog, tmp_path: Path
) -> None:
    """A key that is not given leaves the settings as they are; an empty list replaces them."""
    source = write("", "flows/keeps.yaml")

    def keeps(keys: str) -> FlowSpec:
        source.write_text(f"{keys}\nsteps: [{{ask: planner}}]\n")
        return load_flow("keeps", tmp_path, two_roles)

    flow = keeps("workspace: {copy: [], setup: make env}\nprotect: [tests/**]")
    assert (flow.workspace.copy_, flow.workspace.setup, flow.protect) == ((), "make env", ("tests/**",))
    assert (keeps("").workspace.copy_, keeps("").workspace.setup) == (None, None)
    with pytest.raises(DefinitionError, match=r"workspace\.copy\[1\]: .* must be relative to the workspace"):
        keeps("workspace: {copy: [.env, ../x]}")
    with pytest.raises(DefinitionError, match=r"keeps\.yaml:1:\d+: protect\[1\]: .* must be relative to the workspace"):
        keeps("protect: [tests/**, ../x]")
    source.write_text("steps: [{ask: planner, state: PLANNING}]")
    with pytest.raises(DefinitionError, match=r"the state of planner needs states: \{begin, success, failure\}"):
        load_flow("keeps", tmp_path, two_roles)
