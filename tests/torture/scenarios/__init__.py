"""The runs that are tortured."""

from tests.torture.scenarios.cycles import CYCLES
from tests.torture.scenarios.fan_out import FAN_OUT
from tests.torture.scenarios.plan_solve import PLAN_SOLVE
from tests.torture.scenarios.scenario import Scenario

SCENARIOS = {scenario.name: scenario for scenario in (CYCLES, FAN_OUT, PLAN_SOLVE)}

__all__ = ["SCENARIOS", "Scenario"]
