"""Runs on threads of this process: each has an address of its own."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import Question, RunStatus, UsageError, events, load_run, start, start_async
from codex_multi_role.host.processes import Family
from tests.support.console import DEADLINE_SECONDS
from tests.support.processes import wait_for
from tests.support.reviews import reviewed, until_over
from tests.support.teams import NEVER, Record, TeamFolder, say

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]


def options(folder: Path, *plays: Record) -> dict[str, Any]:
    team = TeamFolder(folder, {"one": {}}, {"one": [*plays]})
    places = {
        "roles": folder / "roles",
        "runs_dir": team.runs,
        "workspace": team.workspace,
        "playbook": str(team.playbook),
    }
    return {**places, "cycles": len(plays), "run_tests": False}


def test_each_of_three_runs_is_stopped_alone(tmp_path: Path) -> None:
    plays = {"a": [NEVER], "b": [say(), say()], "c": [{**say(), "delay_seconds": 3}, say()]}
    handles = [start("reach it", **options(tmp_path / name, *entries)) for name, entries in plays.items()]
    for each in handles:
        wait_for(each.run.folder / "one/turn_001/turn.json")
    handles[2].pause()
    assert handles[0].cancel().outcome == "cancelled"
    assert [each.wait(DEADLINE_SECONDS).outcome for each in handles] == ["cancelled", "cycles_used_up", "paused"]
    assert handles[0].cancel().outcome == "cancelled"
    assert [each.run.status for each in handles] == [RunStatus.INTERRUPTED, RunStatus.ENDED, RunStatus.PARKED]


def test_stopped_run_leaves_what_others_in_this_process_start(tmp_path: Path) -> None:
    """Such as git of another run, or a program that the application starts itself: neither has the run's mark."""
    one, two = (start("reach it", **options(tmp_path / name, NEVER)) for name in "ab")
    for each in (one, two):
        wait_for(each.run.folder / "one/turn_001/turn.json")
    with subprocess.Popen(["sleep", "86521"]) as stranger:
        try:
            one.cancel()
            assert stranger.poll() is None
        finally:
            stranger.kill()
    two.cancel()
    assert not [each for each in two.events() if isinstance(each, events.RoleRestarted)]


def test_handle_tells_every_event_and_how_the_run_ended(tmp_path: Path) -> None:
    handle = start("reach it", **options(tmp_path, say()))
    told = list(handle.events())
    assert (type(told[0]), type(told[-1])) == (events.RunStarted, events.RunEnded)
    report, run = handle.wait(), load_run(handle.id, runs_dir=tmp_path / "runs")
    assert (report.run_id, report.exit_code) == (handle.id, 1)
    assert run.started.timestamp() <= run.started.timestamp() + run.seconds
    assert (run.cost, run.turns[0].model) == (None, "playbook")


def test_question_is_answered_by_the_handle(tmp_path: Path) -> None:
    keywords = options(tmp_path, say("it"))
    reviewed(tmp_path)
    handle = start("reach it", ask_person=until_over, flow="own", **keywords)
    for event in handle.events():
        if isinstance(event, events.ReviewAsked):
            handle.answer(approved=True, comment="good")
    assert handle.wait(DEADLINE_SECONDS).outcome == "shipped"


def test_question_is_answered_while_the_event_loop_goes_on(tmp_path: Path) -> None:
    keywords = options(tmp_path, say("it"))
    reviewed(tmp_path)

    async def main() -> tuple[Question, str]:
        async with start_async("reach it", ask_person=until_over, flow="own", **keywords) as run:
            async for event in run.events():
                if isinstance(event, events.ReviewAsked):
                    answered = await run.answer(approved=True, comment="good", question=event.key)
            return answered, (await run.wait()).outcome

    answered, outcome = asyncio.run(main())
    assert answered.answer is not None
    assert (answered.answer.comment, outcome) == ("good", "shipped")


def test_what_is_wrong_before_the_run_is_raised(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='unknown flow "cycels"'):
        start("reach it", **{**options(tmp_path, say()), "flow": "cycels"})


def test_cancelled_task_stops_its_run(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def follow() -> None:
        async with start_async("reach it", **options(tmp_path, NEVER)) as run:
            async for event in run.events():
                if isinstance(event, events.TurnStarted):
                    begun.set()

    async def main() -> None:
        task = asyncio.create_task(follow())
        await asyncio.wait_for(begun.wait(), DEADLINE_SECONDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    run = load_run(runs_dir=tmp_path / "runs")
    assert (run.status, run.outcome) == ("interrupted", "cancelled")
    assert not Family.of_run(run.folder).end()


def test_run_that_is_left_alone_ends(tmp_path: Path) -> None:
    async def main() -> str:
        async with start_async("reach it", **options(tmp_path, say())) as run:
            return (await run.wait()).outcome

    assert asyncio.run(main()) == "cycles_used_up"
