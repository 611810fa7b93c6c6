"""One known fault: what we do about it, what it is called, and the tests that hold it."""

from __future__ import annotations

from typing import NamedTuple

PLAYED_TEST = "test_fault_has_one_word_everywhere_and_next_command_works"
START_TEST = "test_start_that_fails_says_why_and_costs_nothing"
CLIENT = "codex/test_client.py::test_"
DISTURBED = "codex/test_disturbed.py::test_"
FAULTS = "engine/test_faults.py::test_"
RESUME = "engine/test_resume.py::test_"


class Row(NamedTuple):
    """``outcome``: empty where the fault ends no turn. ``tests``: ``file::function`` below `tests`, or a ``[case]``."""

    fault: str
    handling: str
    outcome: str
    tests: tuple[str, ...]


def played(*names: str) -> tuple[str, ...]:
    return tuple(f"faults/test_played.py::{PLAYED_TEST}[{name}]" for name in names)


def started(*names: str) -> tuple[str, ...]:
    return tuple(f"faults/test_start.py::{START_TEST}[{name}]" for name in names)


def on_the_wire(name: str) -> str:
    return f"faults/test_protocol.py::test_{name}"
