"""The kinds of fault, by name. A new one is a file here and a line below."""

from collections.abc import Mapping

from tests.endurance.faults.fault import Fault
from tests.endurance.faults.frozen import Frozen
from tests.endurance.faults.full_disk import FullDisk
from tests.endurance.faults.kill import Kill
from tests.endurance.faults.line import Line

FAULTS: Mapping[str, Fault] = {fault.name: fault for fault in (Kill(), FullDisk(), Frozen(), Line())}

__all__ = ["FAULTS", "Fault", "Frozen", "FullDisk", "Kill", "Line"]
