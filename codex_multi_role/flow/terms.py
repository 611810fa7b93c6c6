"""What the bounds of a run depend on, besides its YAML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

CheckSeconds = Callable[[str, Mapping[str, object]], float]
"""``check_seconds(name, with)``: the maximum duration of a check with these options; unknown ones are missing.

Raises ``UsageError`` for an unknown check.
"""


@dataclass(frozen=True)
class Terms:
    """``cycles`` and ``repair_attempts`` as in the run's options.

    ``test_seconds``: the maximum duration of the tests after an ask that changed files, 0 if there are none.
    """

    cycles: int
    repair_attempts: int
    check_seconds: CheckSeconds
    test_seconds: float
