"""The pages of the keys of roles and of flows, from their models."""

from __future__ import annotations

from codex_multi_role.catalog import load_yaml
from codex_multi_role.catalog.catalog import CatalogFile
from codex_multi_role.catalog.flow_inputs import GoalSpec, InputSpec
from codex_multi_role.catalog.flow_spec import FlowFile, FlowStates, ResultSpec, WorkspaceNeeds
from codex_multi_role.catalog.mcp_servers import McpServer
from codex_multi_role.catalog.prices import PRICES_FILE, ModelPrice, PricesFile
from codex_multi_role.catalog.role_entries import LimitsEntry, RoleEntry, RoleSettings
from codex_multi_role.catalog.role_spec import AutoApprove, PromptFlags, RoleBehaviors
from codex_multi_role.catalog.step_spec import Retry, RouteSpec, StepLimits, StepSpec
from codex_multi_role.extensions.machines.batches.goal_line import GoalLine
from codex_multi_role.reading.shipped import packaged_roles
from tests.docs.markdown import code, keys, page, prose, table

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
Each step has exactly one of `ask`, `check`, `review` and `call`. `roles`, `prompt`, `reply`, `isolate` and `merge`
belong to `ask`; `repeatable` to `check`; `show`, `options`, `fields`, `time_limit_seconds` and `default` to `review`;
`max_depth` to `call`; `as`, `concurrency`, `max_items`, `needs`, `until` and `on_item_error` to `for_each`.
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
INPUTS = "`max_iterations: 5` is short for a default and its type, `question:` for a required text."


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
        *("### `limits`", keys(LimitsEntry)),
        *("## MCP server keys", "A server has either a `command` or a `url`.", keys(McpServer)),
    )


def flows() -> str:
    """The keys of a flow and of its steps."""
    return page(
        "Flow and step keys",
        *("## Flow keys", FLOWS, keys(FlowFile)),
        *("### `inputs`", INPUTS, keys(InputSpec)),
        *("### `goal`", keys(GoalSpec)),
        *("### `workspace`", WORKSPACE, keys(WorkspaceNeeds)),
        *("### `states`", keys(FlowStates)),
        *("### `result`", RESULT, keys(ResultSpec)),
        *("## Step keys", STEPS, keys(StepSpec)),
        *("### `next`", keys(RouteSpec)),
        *("### `retry`", keys(Retry)),
        *("### `limits`", keys(StepLimits)),
    )


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
