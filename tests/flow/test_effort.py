from __future__ import annotations

import pytest

from codex_multi_role.flow.effort import Effort

ASK = Effort(turns=1, seconds=10.0, one_by_one=10.0, records=16, own=frozenset({"reader"}))
FAN = ASK.fanned_out(items=6, at_once=4)


def test_fan_out_takes_as_many_rounds_as_it_needs() -> None:
    assert (FAN.turns, FAN.seconds, FAN.records, FAN.own, FAN.fan_out) == (6, 20.0, 96, frozenset(), {"reader": 4})
    assert FAN.one_by_one == 60.0


@pytest.mark.parametrize(("items", "at_once", "processes"), [(6, 64, 6), (6, None, 6), (99, None, 64), (0, 3, 1)])
def test_there_are_never_more_processes_than_items(items: int, at_once: int | None, processes: int) -> None:
    assert ASK.fanned_out(items, at_once).processes == {"reader": processes}


def test_items_with_unknown_concurrency_may_run_one_by_one() -> None:
    assert ASK.fanned_out(6, None).seconds == 60.0


def test_one_after_the_other_uses_the_same_processes() -> None:
    both = ASK.then(FAN).then(ASK.fanned_out(2, 2)).then(ASK)
    assert (both.turns, both.seconds, both.records) == (10, 50.0, 160)
    assert both.processes == {"reader": 5}
    assert both.repeated(3).processes == both.processes
    assert both.repeated(3).turns == 30


def test_item_has_all_its_processes_to_itself() -> None:
    assert ASK.then(FAN).fanned_out(3, 2).processes == {"reader": 10}
