"""The pages of the keys of roles and of flows, from their models."""

from __future__ import annotations

from pydantic import BaseModel

from codex_multi_role.catalog import load_yaml
from codex_multi_role.catalog.catalog import CatalogFile
from codex_multi_role.catalog.flow_inputs import GoalSpec, InputSpec
from codex_multi_role.catalog.flow_spec import FlowFile, FlowStates, ResultSpec, WorkspaceNeeds
from codex_multi_role.catalog.mcp_servers import McpServer
from codex_multi_role.catalog.prices import PRICES_FILE, ModelPrice, PricesFile
from codex_multi_role.catalog.role_entries import RoleEntry, RoleSettings
from codex_multi_role.catalog.role_spec import AutoApprove, PromptFlags, RoleBehaviors, RoleLimits
from codex_multi_role.catalog.step_spec import (
    AfterSeconds,
    AskStep,
    CallLimits,
    CallStep,
    CheckStep,
    ForEach,
    Isolate,
    Retry,
    Review,
    ReviewStep,
    RouteSpec,
    Step,
    StepLimits,
    TurnLimits,
)
from codex_multi_role.extensions.machines.batches.goal_line import GoalLine
from codex_multi_role.reading.shipped import packaged_roles
from tests.docs.markdown import code, key_lines, keys, page, prose, table

CATALOG = """
A catalog is `roles/catalog.yaml`, or any file that `--roles` names. [Define a team](../how-to/teams.md) explains
how to write one. Unknown keys are errors, and a key without a value counts as not given.
"""
ROLES = """
`name`, and one of `prompt_text` and `prompt_file`, are required. A role may be an entry of the catalog, a file of
its own (`role_file`), or both: the keys of the entry override those of the file.
"""
FLOWS = """
A flow is `roles/flows/<name>.yaml`. [Write a flow](../how-to/flows.md) explains how to write one.
"""
STEPS = """
Each step has exactly one of `ask`, `check`, `review` and `call`, the keys of that kind, and those of every step. A
key that does not belong to it is an error. `finally` takes checks with `id`, `with`, `limits: {seconds}` and `once`.
"""
FLOW = """
name: review
description: Two roles review a change.
internal: true
goal: {default: Review the last commit.}
inputs: {target: {type: path}, rounds: 3}
vars: {found: []}
allow_removed_tests: ["tests/old/*"]
protect: [LICENSE, ".github/**"]
workspace: {copy: [.env]}
states: {begin: OPEN, success: MERGED, failure: CLOSED}
outputs: [judge]
result: {title: Findings, text: "{{ vars.found }}"}
steps: [{ask: reviewer}]
finally: [{check: command, with: {argv: [make, clean]}}]
"""
FLOW_GROUPS: dict[str, tuple[type[BaseModel], str]] = {
    "inputs": (
        InputSpec,
        """
        type: integer
        default: 3
        required: false
        description: Rounds of review.
        choices: [1, 3, 9]
        minimum: 1
        maximum: 9
        must_exist: true
        """,
    ),
    "goal": (GoalSpec, "default: Review the last commit.\nmin_length: 10\nmax_length: 2000"),
    "workspace": (WorkspaceNeeds, "copy: [.env, 'config/*.local']\nsetup: uv sync --offline"),
    "states": (FlowStates, "begin: OPEN\nsuccess: MERGED\nfailure: CLOSED"),
    "result": (
        ResultSpec,
        """
        title: "Findings in {{ inputs.target }}"
        text: "{{ steps.judge.summary }}"
        file: report.md
        format: markdown
        figures: {findings: "{{ vars.found }}"}
        """,
    ),
}
"""The keys of a flow that are groups: an example of each of their keys."""
STEP = """
id: solve
title: "Solve {{ item.name }}"
for_each: {items: "{{ steps.plan.tasks }}", max_items: 8}
limits: {visits: 5}
retry: {attempts: 3}
allow: [failed]
set: {found: "{{ steps.solve.results }}"}
next: [{when: "steps.solve.failed > 2", to: plan}, {end: done}]
state: SOLVING
"""
KINDS: dict[type[Step], str] = {
    AskStep: """
    ask: planner
    with: {task: "{{ item }}"}
    roles: [python, web]
    prompt: "Plan {{ goal }}."
    prompt_replaces: true
    reply: {type: object, required: [tasks]}
    isolate: worktree
    """,
    CheckStep: """
    check: command
    with: {argv: [./deploy]}
    once: true
    """,
    ReviewStep: "review: Ship it?",
    CallStep: """
    call: improve
    with: {target: a.py}
    isolate: {merge: none}
    """,
}
"""Each kind of step, with an example of each of its own keys."""
GROUPS: dict[str, tuple[tuple[type[BaseModel], ...], str]] = {
    "for_each": (
        (ForEach,),
        """
        items: "{{ steps.plan.tasks }}"
        as: task
        concurrency: 4
        max_items: 8
        needs: "{{ task.after }}"
        until: results[0].good
        on_failure: cancel
        allow: [failed]
        """,
    ),
    "isolate": ((Isolate,), "merge: passed"),
    "limits": (
        (StepLimits, TurnLimits, CallLimits),
        "seconds: 600\nvisits: 5\nturn_seconds: 300\nidle_seconds: 60\ndepth: 3",
    ),
    "retry": ((Retry,), "attempts: 3\nbackoff_seconds: 2"),
    "review": (
        (Review,),
        """
        question: Ship it?
        show: "{{ steps.judge.summary }}"
        options: [now, later]
        fields: {version: {type: string}}
        after: {seconds: 3600, answer: reject}
        """,
    ),
    "after": ((AfterSeconds,), "seconds: 3600\nanswer: reject"),
    "next": (
        (RouteSpec,),
        """
        when: steps.plan.visits > 2
        to: plan
        end: gave_up
        exit: 1
        reason: "{{ steps.plan.comment }}"
        suggest: fork RUN --from plan
        """,
    ),
}
"""The keys of a step that are groups: what they can have, and an example of each."""
VERDICTS = """
A step can fail (it could not do its work), or its result can be bad (tests fail, a person rejects).

1. `retry` tries again.
2. If an entry of the step's own `next` is taken, and a `when` there reads the result, the flow goes there.
3. Otherwise a bad result ends the flow with exit 1, and a failure ends the run with exit 3.

`allow` says which of these ends the flow survives; it then follows `next`. `[bad]` is for a step that only measures:
something must read its result. In `for_each`, `allow` is about the items: what it names does not count while at least
one item is good. `codex-multi-role flows show` says what applies to each step. More in [When a step
fails](../how-to/when-a-step-fails.md).
"""
SEEN = """
Texts with `{{ … }}`, and each `when` and `until`, see `goal`, `inputs`, `vars`, `cycle`, `cycles`, `roles.<name>`
(the latest answer of that role) and `steps.<id>`: the fields of the step's latest result, and `visits`, `status`,
`error` and `verdict`; a fan-out has `results`, in the order of its items. Items also see `item` (or what `as` says),
`index` and `needed`; `until` sees `results`. More in [Conditions and
templates](../how-to/flows.md#conditions-and-templates).
"""
RESULT = """
All but `format` are templates. They know what a `when` knows, `files` (`path`, `added` and `removed` lines of each file
that the run changed; null for a binary file) and `tests`, the latest test result. Whatever cannot be rendered, because
its step was not reached, is left out.
"""
WORKSPACE = """
A key that is given here replaces that of the settings. See [Work in a separate worktree](../how-to/worktree.md).
"""
GOAL_FILE = """
A goal file has a JSON object per line; `batch` runs them. [Run many goals](../how-to/batch.md) explains how. Unknown
keys are errors, and a key with the value `null` counts as not given. At most one of `workspace`, `repository` and
`repositories` is given.
"""
PRICES = """
A price list says what models cost, in US dollars per million tokens. A run uses the first of these:

1. the file that `--prices` names, also as the setting `prices`;
2. `prices.yaml` beside the catalog, or `roles/prices.yaml` if the shipped roles are used;
3. the shipped list, which is below.

One list replaces another as a whole. A run keeps a copy of its list in `catalog/prices.yaml` and uses it when it is
resumed, unless `resume --prices` names another one. `turn.json` records the cost of a turn and, as `prices`, the date
of the list. [Limit a run](../how-to/limits.md#money) explains how costs are used.
"""
MODELS = """
The name must be exactly the one that Codex reports for the turn (`model` in `turn.json`): a name with a date or a
provider's prefix is another model. A model that is not listed has no price. What it costs is then "unpriced", never 0.
List a model that costs you nothing, such as a local one, with prices of 0.
"""
SHIPPED_PRICES = """
The shipped list is dated {date}. {source}
"""
ABOUT = {
    "inputs": "`max_iterations: 5` is short for a default and its type, `question:` for a required text.",
    "limits": "`turn_seconds` and `idle_seconds` belong to an `ask`, `depth` to a `call`.",
    "result": RESULT,
    "workspace": WORKSPACE,
}
"""What is said before the keys of a group."""


def roles() -> str:
    """The keys of a catalog and of a role."""
    defaults = ", ".join(map(code, RoleSettings.model_fields))
    return page(
        "Role keys",
        *("## Catalog keys", CATALOG, keys(CatalogFile), prose(f"`defaults` can have {defaults}.")),
        *("## Role keys", ROLES, keys(RoleEntry)),
        *("### `prompt_flags`", keys(PromptFlags)),
        *("### `behaviors`", keys(RoleBehaviors)),
        *("### `auto_approve`", keys(AutoApprove)),
        *("### `limits`", keys(RoleLimits)),
        *("## MCP server keys", "A server has either a `command` or a `url`.", keys(McpServer)),
    )


def flows() -> str:
    """The keys of a flow and of its steps."""
    return page(
        "Flow and step keys",
        *("## Flow keys", FLOWS, key_lines(FLOW, FlowFile)),
        *(part for name, (group, example) in FLOW_GROUPS.items() for part in _of_group(name, example, group)),
        *("## Step keys", STEPS, "### Every step", key_lines(STEP, Step)),
        *(
            part
            for kind, example in KINDS.items()
            for part in (f"### `{kind.kind}`", key_lines(example, kind, without=Step.model_fields))
        ),
        *(part for name, (groups, example) in GROUPS.items() for part in _of_group(name, example, *groups)),
        *("## What a bad result or a failure does", VERDICTS),
        *("## What templates see", SEEN),
    )


def _of_group(name: str, example: str, *kinds: type[BaseModel]) -> tuple[str, ...]:
    return f"### Keys of `{name}`", ABOUT.get(name, ""), key_lines(example, *kinds)


def goal_file() -> str:
    """The keys of a line of a goal file."""
    return page("Goal file keys", GOAL_FILE, keys(GoalLine))


def prices() -> str:
    """The keys of a price list, and the shipped one."""
    shipped = PricesFile.model_validate(load_yaml(packaged_roles() / PRICES_FILE))
    names = list(ModelPrice.model_fields)
    rows = [(code(model), *(_applied(price, name) for name in names)) for model, price in shipped.models.items()]
    return page(
        "Price list keys",
        *(PRICES, keys(PricesFile)),
        *("### `models`", MODELS, keys(ModelPrice)),
        "## The shipped list",
        SHIPPED_PRICES.format(date=shipped.date, source=prose(shipped.source.strip())),
        table(("model", *names), rows),
    )


def _applied(price: ModelPrice, name: str) -> str:
    """The price as given, or else the one that applies."""
    given = getattr(price, name)
    return str(price.input if given is None else given)
