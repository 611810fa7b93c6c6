"""What a run is given that its bounds depend on, besides what the YAML says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

CheckSeconds = Callable[[str, Mapping[str, object]], float]
"""``check_seconds(name, with)``: the longest that a check takes with these options; those not known are missing.

Raises ``UsageError`` for a name that no check has.
"""


@dataclass(frozen=True)
class Terms:
    """``cycles`` and ``repair_attempts`` as in the run's options.

    ``test_seconds``: the longest that the tests take which follow an ask that changed files, 0 where none do.
    """

    cycles: int
    repair_attempts: int
    check_seconds: CheckSeconds
    test_seconds: float
