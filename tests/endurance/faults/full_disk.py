"""A disk that is full from any write or message on: the run reports it, and resumes once there is space."""

from __future__ import annotations

from pathlib import Path

from tests.endurance.faults.fault import Fault
from tests.endurance.findings import HONEST_OUTCOMES, WITHOUT_CODEX
from tests.endurance.marks import MARKS
from tests.endurance.scenarios import CYCLES, FAN_OUT, PLAN_SOLVE
from tests.support.disks import fill


class FullDisk(Fault):
    name = "full-disk"
    scenarios = (CYCLES, FAN_OUT, PLAN_SOLVE)
    marks = MARKS
    honest_outcomes = HONEST_OUTCOMES | WITHOUT_CODEX
    loses_writes = True
    disk_megabytes = 96

    def harm(self, pid: int) -> None:
        fill(Path.cwd())
