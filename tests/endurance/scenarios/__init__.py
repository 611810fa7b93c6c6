"""What faults strike: runs, a worker's process, and a batch."""

from tests.endurance.scenarios.cycles import CYCLES
from tests.endurance.scenarios.every_child import EVERY_CHILD
from tests.endurance.scenarios.every_message import EVERY_MESSAGE
from tests.endurance.scenarios.fan_out import FAN_OUT
from tests.endurance.scenarios.mixed import MIXED
from tests.endurance.scenarios.plan_solve import PLAN_SOLVE
from tests.endurance.scenarios.scenario import Scenario, Struck

WORKER, BATCH = Struck(name="worker"), Struck(name="batch")

__all__ = [
    "BATCH",
    "CYCLES",
    "EVERY_CHILD",
    "EVERY_MESSAGE",
    "FAN_OUT",
    "MIXED",
    "PLAN_SOLVE",
    "WORKER",
    "Scenario",
    "Struck",
]
