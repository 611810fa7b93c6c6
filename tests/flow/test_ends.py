from __future__ import annotations

from codex_multi_role.flow import End
from codex_multi_role.flow.routing import ends
from tests.support.flows import flow_of


def test_every_end_once_with_its_exit_code() -> None:
    flow = flow_of("""steps:
      - {check: a, next: [{when: "steps.a.red", end: red, exit: 1}, {when: "steps.a.odd", end: red}]}
      - {check: b, limits: {visits: 2}, next: [{when: "steps.b.red", end: red, exit: 1}]}
    """)
    assert ends(flow) == (End("red", 1), End("red", 0), End("b_visits_used_up", 1), End("success", 0))


def test_last_step_that_always_goes_elsewhere_is_not_a_success() -> None:
    assert ends(flow_of('steps: [{check: a, next: [{when: "cycle < 3", to: a}, {end: over, exit: 1}]}]')) == (
        End("over", 1),
    )
