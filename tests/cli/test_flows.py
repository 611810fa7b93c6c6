from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from codex_multi_role.reading.registry import Registry
from tests.support.catalogs import write_team
from tests.support.console import console
from tests.support.prices import write_prices
from tests.support.recorded_runs import make_run

FLOW = """
description: Think once, then do.
steps:
  - ask: thinker
  - ask: doer
    next: [{end: done}]
"""


WITH_INPUTS = """
description: Tests for a file.
protect: [tests/**, "*.toml"]
inputs:
  target: {type: path, description: What to test}
  most: 5
  note: {required: false}
steps:
  - {id: plan, ask: thinker}
  - {id: develop, ask: doer, for_each: {items: "{{ steps.plan.tasks }}", as: task, max_items: 8, concurrency: 3}}
  - id: execute
    check: tests
    next:
      - {when: "steps.execute.visits >= inputs.most", end: timeout, exit: 1}
      - {when: "steps.execute.verdict == 'failed'", to: develop}
  - {call: once}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_team(tmp_path, once=FLOW, testing=WITH_INPUTS)


def test_list_has_the_own_and_the_shipped_flows(project: Path) -> None:
    done = console("flows", "list", "--roles", "team", folder=project)
    assert "once" in done.stdout
    assert "Think once, then do." in done.stdout
    assert "cycles" in done.stdout
    listed = json.loads(console("flows", "list", "--json", "--roles", "team", folder=project).stdout)
    flows = {flow["name"]: flow for flow in listed}
    assert list(flows) == sorted(flows)
    assert {"cycles", "once", "testing"} <= set(flows)
    most = flows["testing"]["inputs"]["most"]
    assert (most["type"], most["default"], most["required"]) == ("integer", 5, False)
    assert flows["testing"]["ends"] == [{"outcome": "timeout", "exit_code": 1}, {"outcome": "success", "exit_code": 0}]


def test_list_tells_inputs_ends_and_what_cannot_be_read(project: Path) -> None:
    (project / "team" / "flows" / "wrong.yaml").write_text("stpes: []\n")
    table = console("flows", "list", "--roles", "team", folder=project).stdout
    rows = {line.split()[0]: line for line in table.splitlines()}
    assert "target, most=5, [note]  timeout 1, success 0  Tests for a file." in re.sub(" {2,}", "  ", rows["testing"])
    assert "done 0" in rows["once"]
    assert 'unknown key "stpes"; did you mean "steps"?' in rows["wrong"]


@pytest.mark.extensions
def test_list_leaves_out_internal_flows_unless_all(project: Path) -> None:
    (project / "team" / "flows" / "part.yaml").write_text(f"internal: true{FLOW}")
    listed = console("flows", "list", "--roles", "team", folder=project).stdout
    assert re.findall(r"^(part|once|testgen-rounds|testgen)\b(?!-)", listed, re.MULTILINE) == ["once", "testgen"]
    everything = json.loads(console("flows", "list", "--all", "--json", "--roles", "team", folder=project).stdout)
    internal = {flow["name"] for flow in everything if flow["internal"]}
    assert {"part", "testgen-rounds"} <= internal
    assert internal.isdisjoint({"once", "testgen", "cycles"})


def test_show_is_the_file_or_what_was_read(project: Path) -> None:
    done = console("flows", "show", "once", "--roles", "team", folder=project)
    assert done.stdout.endswith(FLOW.strip() + "\n")
    assert yaml.safe_load(done.stdout) == yaml.safe_load(FLOW)
    shown = json.loads(console("flows", "show", "once", "--json", "--roles", "team", folder=project).stdout)
    assert [step["id"] for step in shown["steps"]] == ["thinker", "doer"]


def test_show_explains_the_flow_in_comments(project: Path) -> None:
    done = console("flows", "show", "testing", "--roles", "team", "--repair-attempts", "0", folder=project)
    assert yaml.safe_load(done.stdout) == yaml.safe_load(WITH_INPUTS)
    explained = done.stdout.split("description: Tests", maxsplit=1)[0].splitlines()
    assert all(line.startswith("#") or not line for line in explained)
    assert [line.split() for line in explained[3:7]] == [
        ["#", "Inputs"],
        ["#", "target", "path", "required", "What", "to", "test"],
        ["#", "most", "integer", "default", "5"],
        ["#", "note", "string", "optional"],
    ]
    words = " ".join(" ".join(explained).replace("#", "").split())
    assert "develop ask doer; for each task of steps.plan.tasks, 8 at most, 3 at a time -> execute" in words
    assert "execute check tests -> (timeout, exit 1), develop, once" in words
    assert "timeout exit 1 after execute" in words
    assert "success exit 0 after once" in words
    assert "Protects tests/**, *.toml" in words
    assert "Calls once Think once, then do." in words
    assert "at most 51 turns and 0 repair turns, 153 prompts including retries after provider failures, of 5" in words


RULES = {
    "{id: x, ask: thinker}": "a failure ends the run with exit 3",
    "{id: x, ask: thinker, retry: {attempts: 2}, allow: [failed]}": "up to 2 tries; a failure is allowed",
    "{id: x, call: once}": (
        "a failure ends the run with exit 3; a bad result (exit 1 of once) ends the flow with exit 1"
    ),
    "{id: x, call: once, allow: [failed]}": (
        "a failure is allowed; a bad result (exit 1 of once) ends the flow with exit 1"
    ),
    "{id: x, call: once, allow: [bad, failed]}": "a failure is allowed; a bad result (exit 1 of once) is allowed",
    "{id: x, call: once, next: [{when: steps.x.exit_code, end: odd}]}": (
        "a failure ends the run with exit 3; with a bad result (exit 1 of once), next decides; "
        "if no entry is taken, the flow ends with exit 1"
    ),
    "{id: x, review: Good?}": "a bad result (a rejection) ends the flow with exit 1",
    "{id: x, ask: thinker, for_each: {items: [1], allow: [failed]}}": (
        "a failed item is allowed; a bad result (no good item) ends the flow with exit 1"
    ),
    "{id: x, call: once, for_each: {items: [1], allow: [failed]}}": (
        "a failed item is allowed; a bad result (exit 1 of once or no good item) ends the flow with exit 1"
    ),
    "{id: x, call: once, for_each: {items: [1], allow: [bad]}}": (
        "a failed item ends the run with exit 3; a bad result (no good item) ends the flow with exit 1"
    ),
    "{id: x, ask: thinker, for_each: {items: [1], until: results}}": (
        "a failed item is allowed; a bad result (until is not met) ends the flow with exit 1"
    ),
}


@pytest.mark.parametrize("step", RULES)
def test_show_tells_which_bad_ends_a_step_allows(project: Path, step: str) -> None:
    (project / "team/flows/own.yaml").write_text(f"steps: [{step}]\n")
    shown = console("flows", "show", "own", "--roles", "team", folder=project).stdout
    _, _, rules = shown.partition("# If a step goes wrong\n")
    assert " ".join(rules.partition("\n#\n")[0].replace("#", "").split()) == f"x {RULES[step]}"


@pytest.mark.parametrize(
    ("goal", "told"),
    [
        ("goal: {min_length: 10, max_length: 500}", "required, 10 to 500 characters"),
        ("goal: {default: Document it}", 'default "Document it"'),
        ("", ""),
    ],
)
def test_show_tells_what_goal_a_flow_takes(project: Path, goal: str, told: str) -> None:
    (project / "team/flows/own.yaml").write_text(f"{goal}\nsteps: [{{ask: thinker}}]\n")
    lines = console("flows", "show", "own", "--roles", "team", folder=project).stdout.splitlines()
    found = [after for before, after in pairwise(lines) if before == "# Goal"]
    assert bool(found) == bool(told)
    assert all(line.startswith(f"#   {told}") for line in found)


def test_show_tells_why_a_flow_has_no_worst_case(project: Path) -> None:
    (project / "team" / "flows" / "endless.yaml").write_text("steps:\n  - {ask: thinker, next: [{to: thinker}]}\n")
    done = console("flows", "show", "endless", "--roles", "team", folder=project)
    assert done.returncode == 0
    assert "can loop forever: thinker -> thinker" in " ".join(done.stdout.replace("#", "").split())


def test_show_tells_that_a_role_may_finish(tmp_path: Path) -> None:
    done = console("flows", "show", "cycles", folder=tmp_path)
    words = [line.split() for line in done.stdout.splitlines()]
    assert ["#", "done", "exit", "0", "when", "integrator", "says", "DONE"] in words


def test_graph_draws_mermaid_or_plain_text(project: Path) -> None:
    drawn = console("flows", "graph", "testing", "--roles", "team", folder=project).stdout
    assert drawn.startswith("flowchart TD\n")
    assert 'subgraph f1["flow once"]' in drawn
    text = console("flows", "graph", "--ascii", "testing", "--roles", "team", folder=project).stdout
    assert text.startswith("flow testing: Tests for a file.\n")
    assert "[plan] ask thinker\n" in text
    assert "flow once" in text


def test_graph_draws_the_default_flow(tmp_path: Path) -> None:
    assert "[team] ask every role" in console("flows", "graph", "--ascii", folder=tmp_path).stdout


def test_validate_shows_the_worst_case(project: Path) -> None:
    done = console("flows", "validate", "--roles", "team", "once", folder=project)
    assert done.returncode == 0
    assert done.stdout == (
        "ok: once: at most 2 turns and 4 repair turns, 18 prompts including retries after provider failures, "
        "of 2 processes in 4 h 57 min, with 2 repair attempts; no bound in money: set --max-tokens or --max-cost\n"
    )
    assert ", with 3 cycles and 2 repair" in console("flows", "validate", "cycles", folder=project).stdout


def test_validate_shows_what_limits_leave_of_the_worst_case(project: Path) -> None:
    limits = ["--max-turns=5", "--max-tokens=9000", "--max-seconds=90", "--max-processes=1", "--repair-attempts=1"]
    write_prices(project / "team/prices.yaml", m=(1, 0.1, 5))
    limits.append("--model=m")
    done = console("flows", "validate", "--roles", "team", *limits, "once", folder=project)
    words = done.stdout.removeprefix("ok: once: ").strip().split("; ")
    assert words[0].startswith("at most 2 turns and 2 repair turns, 5 prompts including retries after ")
    assert " of 1 process in " in words[0]
    assert words[1:] == [
        "at most $0.0450 if all of 9,000 tokens are of the most expensive kind, and the model calls in progress then "
        "(prices of 2026-01-31)",
        "at most 9,000 tokens, and the model calls in progress when they are exceeded",
        "turns end after 1 min 30 s",
    ]


def test_validate_prices_the_model_of_the_settings(project: Path) -> None:
    write_prices(project / "team/prices.yaml", m=(1, 0.1, 5))
    (project / "codex-multi-role.yaml").write_text("config: ['model=\"m\"']\n")
    done = console("flows", "validate", "--roles", "team", "--max-tokens=9000", "once", folder=project)
    assert "; at most $0.0450 if all of 9,000 tokens " in done.stdout


def test_validate_shows_the_cost_limit_of_a_role(project: Path) -> None:
    """It also says that a run is refused, because the role has no price."""
    catalog = project / "team/catalog.yaml"
    team = yaml.safe_load(catalog.read_text())
    team["roles"][0]["limits"] = {"idle_seconds": 9, "turn_seconds": 9, "max_turns": 3, "max_cost": 2}
    catalog.write_text(yaml.safe_dump(team))
    said = console("flows", "validate", "--roles", "team", "--model=m", "once", folder=project).stdout
    assert "has no price for m (thinker); max_cost would be refused; of role thinker at most 3 turns and $2.00" in said


def test_worst_case_includes_check_time_and_names_omissions(project: Path) -> None:
    """It includes the time of tests and checks, and notes that the time until a person answers a review is not
    included.
    """
    steps = "{check: command, with: {argv: [make], timeout_seconds: 60}}, {id: ok, review: Well?}"
    (project / "team" / "flows" / "half.yaml").write_text(f"steps: [{steps}, {{check: tests}}]\n")
    done = console("flows", "validate", "--roles", "team", "--test-seconds", "120", "half", folder=project)
    assert " in 5 min 00 s, " in done.stdout
    assert done.stdout.endswith("; plus the time until a person answers each review\n")


def test_validate_tells_the_roles_that_are_never_asked(project: Path) -> None:
    (project / "team" / "flows" / "half.yaml").write_text("steps: [{ask: thinker}]\n")
    done = console("flows", "validate", "--roles", "team", "half", "once", folder=project)
    assert done.returncode == 0
    assert done.stderr == "note: half never asks doer\n"


def test_validate_looks_at_all_flows_and_names_what_is_wrong(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here without those of extensions, which take seconds and are each validated by a test of its own."""
    monkeypatch.setattr("codex_multi_role.reading.shipped._EXTENSIONS", Registry("package", "no group", {}))
    (project / "team" / "flows" / "part.yaml").write_text(f"internal: true{FLOW}")
    (project / "team" / "flows" / "wrong.yaml").write_text("steps:\n  - ask: thinkr\n")
    done = console("flows", "validate", "-i", "most=7", "--roles", "team", folder=project)
    assert done.returncode == 2
    assert "unknown input" not in done.stderr
    assert "ok: once" in done.stdout
    assert "ok: cycles" in done.stdout
    assert "ok: part" not in done.stdout
    assert "never asks" not in done.stderr
    assert "wrong.yaml" in done.stderr
    assert "thinker" in done.stderr


def test_unknown_flow_gets_the_nearest_name(project: Path) -> None:
    done = console("flows", "validate", "--roles", "team", "onec", folder=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'did you mean "once"?' in done.stderr


def test_worst_case_is_in_days_beside_what_runs_took(project: Path) -> None:
    done = console("flows", "validate", "testing", "--roles", "team", "--repair-attempts", "5", folder=project)
    assert " in 4 days, with 5 repair attempts; " in done.stdout
    assert "typically" not in done.stdout
    make_run(project / "runs", "first", flow="testing")
    done = console("flows", "validate", "testing", "--roles", "team", folder=project)
    assert done.stdout.splitlines()[0].endswith("; typically 2 turns in 12 s, as in the only run so far")
    shown = console("flows", "show", "testing", "--roles", "team", folder=project).stdout
    assert "# Earlier runs\n#   typically 2 turns in 12 s" in shown


def test_validate_knows_the_inputs_that_it_is_given(tmp_path: Path) -> None:
    """Like a run, which accepts a loop that only an input bounds."""
    flow = "inputs: {most: {type: integer}}\nsteps: [{ask: doer, next: [{when: cycle < inputs.most, to: doer}]}]\n"
    project = write_team(tmp_path, loop=flow)
    arguments = ("flows", "validate", "loop", "--roles", "team")
    assert "can loop forever" in console(*arguments, folder=project).stderr
    assert "at most 7 turns" in console(*arguments, "-i", "most=7", folder=project).stdout
    wrong = console(*arguments, "-i", "most=x", folder=project)
    assert "not of type integer" in wrong.stderr
    assert "unknown input" in console(*arguments, "-i", "least=7", folder=project).stderr
