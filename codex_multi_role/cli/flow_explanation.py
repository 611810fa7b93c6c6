"""The explanation of a flow: its inputs, steps, ends and worst case, also in money as far as limits and prices tell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from textwrap import wrap

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, GoalSpec, InputSpec, RoleSpec, RoleSpecCatalog, StepSpec
from codex_multi_role.catalog.flow_spec import steps_below, with_called
from codex_multi_role.catalog.prices import MILLION, PriceList
from codex_multi_role.checks import find_check
from codex_multi_role.flow import End, worst_case
from codex_multi_role.flow.answer_requirements import told
from codex_multi_role.flow.chart import Chart, Node, chart_of, end_words
from codex_multi_role.flow.references import unused_roles
from codex_multi_role.flow.result_reads import routes_on_result, uses_cycles
from codex_multi_role.flow.routing import ends
from codex_multi_role.lifecycle.definitions import role_settings
from codex_multi_role.lifecycle.model_providers import model_of
from codex_multi_role.lifecycle.team_loading import CheckedTeam
from codex_multi_role.presentation.wording import duration, one_line, plural
from codex_multi_role.run_folder.cost import dollars
from codex_multi_role.run_options import RunLimits, RunOptions
from codex_multi_role.steps.check_context import terms

COLUMNS = 100
LEAST_TEXT_COLUMNS = 40
MOST_CHARACTERS = 1000

IN_FLIGHT = "and the model calls in progress then"
UNBOUNDED = "no bound in money: set --max-tokens or --max-cost"
CHOSEN = "the model that Codex chooses"
Asked = Sequence[tuple[RoleSpec, str | None]]
"""Roles, each with its model; None if Codex chooses it."""
Row = Sequence[str]


def explanation(team: CheckedTeam, name: str, most: str, typical: str) -> str:
    """Explain the flow ``name`` of a team in lines that are YAML comments, so that the flow's file can follow.

    ``most``: its worst case in words; ``typical``: what its runs took, empty if that is not known.
    """
    flows, catalog = team
    flow = flows[name]
    chart = chart_of(flow)
    parts: dict[str, Iterable[Row]] = {
        "Goal": [(_goal(flow.goal),)] if flow.goal != GoalSpec() else [],
        "Inputs": [(key, spec.type, _requirement(spec), spec.description) for key, spec in flow.inputs.items()],
        "Steps": map(_step_row, chart.nodes),
        "What roles are sent": [(step.id, _sent(step)) for step in flow.steps if step.ask is not None],
        "If a step goes wrong": [(step.id, _if_wrong(step)) for step in flow.steps],
        "What steps must answer": answer_rows(team, name),
        "Ends": _end_rows(flow, chart, catalog),
        "Finally": [(step.id, f"check {step.check}") for step in flow.finally_],
        "Calls": [(other.name, other.description) for other in flows.values() if other is not flow],
        "Protects": [(", ".join(flow.protect),)] if flow.protect else [],
        "Worst case": [(most,)],
        "Earlier runs": [(typical,)] if typical else [],
    }
    described = ": ".join(filter(None, (name, flow.description)))
    lines = [one_line(each, MOST_CHARACTERS) for each in (described, flow.source)]
    for heading, rows in parts.items():
        if table := list(_aligned([[one_line(cell, MOST_CHARACTERS) for cell in row] for row in rows])):
            lines += ["", heading, *(f"  {line}" for line in table)]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def inputs_in_short(flow: FlowSpec) -> str:
    """``target, max_iterations=5``: inputs without a default are required, or optional in brackets: ``[note]``."""
    return ", ".join(
        name if spec.required else f"[{name}]" if spec.default is None else f"{name}={json.dumps(spec.default)}"
        for name, spec in flow.inputs.items()
    )


def ends_in_short(flow: FlowSpec) -> str:
    """``timeout 1, success 0``: each end with its exit code."""
    return ", ".join(f"{end.outcome} {end.exit_code}" for end in ends(flow))


def _goal(spec: GoalSpec) -> str:
    requirement = f"default {json.dumps(spec.default)}" if spec.default else "required"
    return f"{requirement}, {spec.wanted} characters" if spec.wanted else requirement


def _requirement(spec: InputSpec) -> str:
    requirement = "optional" if spec.default is None else f"default {json.dumps(spec.default)}"
    return ", ".join(part for part in ("required" if spec.required else requirement, spec.wanted) if part)


def _step_row(node: Node) -> Row:
    targets = dict.fromkeys(f"({end_words(way.to)})" if isinstance(way.to, End) else way.to for way in node.arrows)
    return node.id, "; ".join([node.words, *node.notes]) + f" -> {', '.join(targets)}"


def _sent(step: StepSpec) -> str:
    whose = "each role's" if step.ask == EVERY_ROLE or step.roles else f"the role {step.ask}'s"
    if step.prompt_replaces:
        return f"the step's prompt instead of {whose} instructions"
    return f"{whose} instructions" + (", and the step's prompt as the task" if step.prompt is not None else "")


def answer_rows(team: CheckedTeam, name: str) -> Iterator[Row]:
    """Each field that templates read of a role's answer: the step, what the field must be, and who reads it."""
    for flow in team.flows.values():
        for step in (each for each in flow.steps if each.ask is not None):
            asked = [role for role in team.catalog.roles if {EVERY_ROLE, role.name} & {*step.asked}]
            for role in asked:
                own = step.id if flow.name == name else f"{flow.name}/{step.id}"
                whose = f"{own} ({role.name})" if len(asked) > 1 else own
                for need in told(team.contracts.judged(flow.name, step, role)):
                    yield whose, f"{need.in_words} ({need.readers})"


def _if_wrong(step: StepSpec) -> str:
    """What happens if the step fails, or its result is bad."""
    tries = f"up to {step.retry.attempts} tries" if step.retry is not None else ""
    return "; ".join(filter(None, (tries, _if_failed(step), _if_bad(step, _what_is_bad(step)))))


def _if_failed(step: StepSpec) -> str:
    if step.review is not None:
        return ""
    whose, allow = ("a failure", step.allow) if step.for_each is None else ("a failed item", step.for_each.allow)
    is_allowed = "failed" in allow or (step.for_each is not None and step.for_each.until is not None)
    return f"{whose} {'is allowed' if is_allowed else 'ends the run with exit 3'}"


def _if_bad(step: StepSpec, what_is_bad: str) -> str:
    if not what_is_bad:
        return ""
    bad = f"a bad result ({what_is_bad})"
    if "bad" in step.allow:
        return f"{bad} is allowed"
    if routes_on_result(step):
        return f"with {bad}, next decides; if no entry is taken, the flow ends with exit 1"
    return f"{bad} ends the flow with exit 1"


def _what_is_bad(step: StepSpec) -> str:
    """Which results of the step are bad, in words; empty if none is."""
    bad, fan_out = f"exit 1 of {step.call}" if step.call is not None else "", step.for_each
    if step.check is not None:
        bad = find_check(step.check).what_is_bad
    elif step.review is not None:
        bad = "a rejection"
    if fan_out is None:
        return bad
    if fan_out.until is not None:
        return "until is not met"
    of_items = [bad if "bad" not in fan_out.allow else "", "no good item" if fan_out.allow else ""]
    return " or ".join(filter(None, of_items))


def _end_rows(flow: FlowSpec, chart: Chart, catalog: RoleSpecCatalog) -> Iterator[Row]:
    for end in chart.ends:
        origins = [node.id for node in chart.nodes if end in node.ends]
        yield end.outcome, f"exit {end.exit_code}", f"after {', '.join(origins)}"
    unused = unused_roles({flow.name: flow}, catalog)
    if can_finish := [role.name for role in catalog.roles if role.behaviors.can_finish and role.name not in unused]:
        yield "done", "exit 0", f"when {' or '.join(can_finish)} says DONE"
        yield "tests_failed", "exit 1", "if the latest tests failed"


def _aligned(rows: Sequence[Row]) -> Iterator[str]:
    """Align columns to their content; the last one wraps in what is left of the line."""
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)][:-1]
    indent = sum(widths)
    for *cells, text in rows:
        begin = "".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        lines = wrap(text, max(COLUMNS - indent, LEAST_TEXT_COLUMNS), break_on_hyphens=False) or [""]
        yield f"{begin}{lines[0]}".rstrip()
        yield from (" " * indent + line for line in lines[1:])


def worst_case_words(flows: Mapping[str, FlowSpec], name: str, catalog: RoleSpecCatalog, options: RunOptions) -> str:
    """Return ``at most 12 turns and …`` for these options. Raises `DefinitionError` for a flow without a bound."""
    answers, limits = options.answers, options.limits
    most = worst_case(flows, name, catalog, terms(options), flows[name].known_inputs(options.inputs)).within(
        turns=limits.max_turns, processes=limits.max_processes
    )
    has_cycles = any(map(uses_cycles, with_called(flows, name)))
    rounds = f"{plural(options.cycles, 'cycle')} and " if has_cycles else ""
    words = (
        f"at most {plural(most.turns, 'turn')} and {plural(most.repair_turns, 'repair turn')}, "
        f"{plural(most.prompts, 'prompt')} including retries after provider failures, "
        f"of {plural(most.processes, 'process')} in {duration(most.seconds)}, "
        f"with {rounds}{plural(answers.repair_attempts, 'repair attempt')}"
    )
    unused = unused_roles(flows, catalog)
    roles = [role for role in catalog.roles if role.name not in unused]
    asked = [(role, model_of(role, answers.model, (*role_settings(role), *answers.config))) for role in roles]
    prices = PriceList.load(limits.prices, catalog.source.parent)
    money = worst_cost_words(asked, prices, limits.max_tokens, limits.max_cost)
    return "; ".join([words, money, *_limits(limits), *_role_limits(catalog), *_not_counted(flows, name)])


def _limits(limits: RunLimits) -> Iterator[str]:
    if limits.max_tokens is not None:
        yield f"at most {plural(limits.max_tokens, 'token')}, and the model calls in progress when they are exceeded"
    if limits.max_seconds is not None:
        yield f"turns end after {duration(limits.max_seconds)}"


def _role_limits(catalog: RoleSpecCatalog) -> Iterator[str]:
    for role in catalog.roles:
        own = (role.limits.max_turns, "turn"), (role.limits.max_tokens, "token")
        most = [plural(number, what) for number, what in own if number is not None]
        if role.limits.max_cost is not None:
            most.append(dollars(role.limits.max_cost))
        if most:
            yield f"of role {role.name} at most {' and '.join(most)}"


def _not_counted(flows: Mapping[str, FlowSpec], name: str) -> Iterator[str]:
    steps = steps_below(flows, name)
    if any(step.review is not None and step.review.after is None for step in steps):
        yield "plus the time until a person answers each review"


def worst_cost_words(asked: Asked, prices: PriceList, max_tokens: int | None, max_cost: float | None) -> str:
    """Say what a run that asks these roles costs at most.

    A limit of tokens is a bound in money only if the most expensive kind of token of each model is known.
    """
    if not asked:
        return "no model is asked"
    needed = [each for each in asked if max_cost is not None or each[0].limits.max_cost is not None]
    if unpriced := _unpriced(needed, prices):
        limit = "max_cost" if max_cost is None else "--max-cost"
        return f"unpriced: {prices.file} has no price for {unpriced}; {limit} would be refused"
    limited = all(role.limits.max_tokens or role.limits.max_cost for role, _ in asked)
    if max_tokens is None and max_cost is None and not limited:
        return UNBOUNDED
    if unpriced := _unpriced(asked, prices):
        return f"unpriced: {prices.file} has no price for {unpriced}"
    highest = [prices.models[model].highest for _, model in asked if model]
    bounds = [] if max_cost is None else [(_exact(max_cost), "")]
    if max_tokens is not None:
        dearest = f" if all of {plural(max_tokens, 'token')} are of the most expensive kind"
        bounds.append((max(highest) * max_tokens / MILLION, dearest))
    if limited:
        own = (_own_bound(role, price) for (role, _), price in zip(asked, highest, strict=True))
        bounds.append((sum(own, Decimal()), " by the roles' own limits"))
    amount, condition = min(bounds)
    return f"at most {dollars(amount)}{condition}, {IN_FLIGHT} (prices of {prices.date})"


def _own_bound(role: RoleSpec, price: Decimal) -> Decimal:
    """By the limits of a role of which it has at least one."""
    tokens, cost = role.limits.max_tokens, role.limits.max_cost
    bounds = [*([price * tokens / MILLION] if tokens else []), *([_exact(cost)] if cost else [])]
    return min(bounds)


def _exact(amount: float) -> Decimal:
    return Decimal(str(amount))


def _unpriced(asked: Asked, prices: PriceList) -> str:
    """``gpt-x (planner, solver) and the model that Codex chooses (verifier)``; empty if all have a price."""
    names: dict[str | None, list[str]] = {}
    for role, model in asked:
        if model not in prices.models:
            names.setdefault(model, []).append(role.name)
    return " and ".join(f"{model or CHOSEN} ({', '.join(each)})" for model, each in names.items())
