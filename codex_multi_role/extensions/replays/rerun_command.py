"""``rerun``: do a run again with the current YAML; equal turns are taken over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from codex_multi_role.cli.flow_explanation import worst_cost_words
from codex_multi_role.cli.options import FORKABLE, OF_THIS_PROCESS, RUNS_DIR, command, run_argument
from codex_multi_role.cli.output import put_json_line, put_line, say
from codex_multi_role.cli.resume import parent_and_changes, start_from
from codex_multi_role.cli.setting import flag
from codex_multi_role.extensions.replays.rerun_forecast import forecast_rerun
from codex_multi_role.option import Use
from codex_multi_role.presentation.wording import cost_in_words, plural
from codex_multi_role.run_folder.cost import Cost

if TYPE_CHECKING:
    from codex_multi_role.extensions.replays.rerun_forecast import ExpectedTurn, Forecast


DRY_RUN = flag(
    "--dry-run", "List the turns that the edits of YAML and options ask again, and what they used; nothing is started."
)


@command(RUNS_DIR, *FORKABLE, DRY_RUN, *OF_THIS_PROCESS, works=True, use=Use.FORK)
@run_argument
@click.pass_context
def rerun(ctx: click.Context, /, run: str, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Do RUN (default: the latest run) again in a new run, with the YAML as it is now.

    A turn is taken over from RUN if everything it depends on is equal: its prompt, the settings of its role, the
    conversation so far and, if it looked at files, the workspace. All other turns are asked again. Checks and tests run
    again, too. The workspace is restored in a new folder as it was when RUN started. RUN and its workspace are not
    changed.

    The new run has the options of RUN. Options given here, as flags or in the environment, replace them; -i and -c add
    to them.

    \b
    Examples:
      codex-multi-role rerun --dry-run
      codex-multi-role rerun 20260131_101500 --goal "The same in Rust"
    """
    folder, changes = parent_and_changes(ctx, run)
    if not values["dry_run"]:
        start_from(ctx, folder, changes, "codex_multi_role.extensions.replays:rerun")
        return

    _put_forecast(forecast_rerun(folder, changes), as_json=values["json"], quiet=values["quiet"])


def _put_forecast(forecast: Forecast, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        for turn in forecast.asked:
            put_json_line(turn.as_json())
        put_json_line({**forecast.as_json(), "at_most": _at_most(forecast)})
    elif not quiet:
        for turn in forecast.asked:
            put_line(_line(turn))
        say(_summary(forecast))
        if not forecast.asks_nothing:
            say(f"the new run: {_at_most(forecast)}")


def _line(turn: ExpectedTurn) -> str:
    asked = "asked" if turn.certain else "may be asked"
    return f"{turn.position}: {asked}, {_used(turn.tokens, Cost.of(turn.cost))}: {turn.reason}"


def _summary(forecast: Forecast) -> str:
    found = forecast.as_json()
    parts = [f"{plural(forecast.taken, 'turn')} taken over, {found['asked']} asked, {found['possible']} may be asked"]
    if forecast.asked:
        parts.append(f"in the earlier run, all of these used {_used(forecast.tokens, forecast.cost)}")
    if forecast.more_may_follow:
        parts.append("other turns may follow")
    return "; ".join(parts)


def _at_most(forecast: Forecast) -> str:
    """What the turns of the new run can cost, in words."""
    if forecast.asks_nothing:
        return "no model is asked"
    new, options = forecast.definitions, forecast.definitions.options
    asked = [(role, new.model_of(role)) for role in new.roles]
    return worst_cost_words(asked, new.prices, options.limits.max_tokens, options.limits.max_cost)


def _used(tokens: Mapping[str, int], cost: Cost) -> str:
    return f"{tokens['input']:,} tokens in, {tokens['output']:,} out, {cost_in_words(cost)}"
