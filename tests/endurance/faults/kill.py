"""SIGKILL at any write, message or start of a child: ``resume`` leaves what an undisturbed run leaves."""

from __future__ import annotations

import os
import signal

from tests.endurance.faults.fault import KILLED, Fault
from tests.endurance.marks import MARKS
from tests.endurance.scenarios import CYCLES, FAN_OUT, MIXED, PLAN_SOLVE, PLANNED


class Kill(Fault):
    name = "kill"
    scenarios = (CYCLES, FAN_OUT, PLAN_SOLVE, MIXED, PLANNED)
    marks = MARKS
    exit_code = KILLED

    def harm(self, pid: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)
