"""The worst case of a flow's run, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog
from codex_multi_role.flow import worst_case
from codex_multi_role.flow.conditions import with_called
from codex_multi_role.presentation.wording import duration, plural
from codex_multi_role.steps.check import terms


def worst_case_words(
    flows: Mapping[str, FlowSpec],
    name: str,
    catalog: RoleSpecCatalog,
    *,
    cycles: int,
    repair_attempts: int,
    run_tests: bool,
    test_seconds: float,
    max_turns: int | None,
    max_tokens: int | None,
    max_seconds: float | None,
    max_processes: int | None,
) -> str:
    """Return ``at most 12 turns and …`` for these options. Raises `DefinitionError` for a flow without a bound."""
    given = terms(cycles=cycles, repair_attempts=repair_attempts, run_tests=run_tests, test_seconds=test_seconds)
    most = worst_case(flows, name, catalog, given).within(turns=max_turns, processes=max_processes)
    words = (
        f"at most {plural(most.turns, 'turn')} and {plural(most.repair_turns, 'repair turn')}, "
        f"{plural(most.prompts, 'prompt')} with those sent again where a provider fails, "
        f"of {plural(most.processes, 'process')} in {duration(most.seconds)}, "
        f"with {plural(cycles, 'cycle')} and {plural(repair_attempts, 'repair attempt')}"
    )
    return "; ".join([words, *_limits(max_tokens, max_seconds), *_not_counted(flows, name)])


def _limits(max_tokens: int | None, max_seconds: float | None) -> Iterator[str]:
    if max_tokens is not None:
        yield f"no turn begins once {plural(max_tokens, 'token')} are used, but those under way then still finish"
    if max_seconds is not None:
        yield f"no turn begins after {duration(max_seconds)}"


def _not_counted(flows: Mapping[str, FlowSpec], name: str) -> Iterator[str]:
    steps = [step for flow in with_called(flows, name) for step in flow.steps]
    if any(step.review is not None and step.time_limit_seconds is None for step in steps):
        yield "the time until a person answers a review comes on top"
