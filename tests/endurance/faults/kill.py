"""SIGKILL at any write, message or start of a child: what continues leaves what undisturbed work leaves."""

from __future__ import annotations

import os
import signal

from tests.endurance.faults.fault import KILLED, Fault
from tests.endurance.marks import MARKS
from tests.endurance.scenarios import BATCH, CYCLES, FAN_OUT, MIXED, PLAN_SOLVE, WORKER


class Kill(Fault):
    name = "kill"
    scenarios = (CYCLES, FAN_OUT, PLAN_SOLVE, MIXED, WORKER, BATCH)
    marks = MARKS
    exit_code = KILLED

    def harm(self, pid: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)
