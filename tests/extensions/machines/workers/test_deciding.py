"""Answers, cancellations and resumes from any machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import ExitCode, RunBusy, StorageError, UsageError
from codex_multi_role.extensions.machines.workers import deciding
from codex_multi_role.extensions.machines.workers.deciding import (
    answer_shared,
    cancel_shared,
    pause_shared,
    resume_shared,
)
from codex_multi_role.extensions.machines.workers.messages import PAUSE, STOP, answered_runs, receive, send
from codex_multi_role.extensions.machines.workers.queued_runs import RunState
from codex_multi_role.extensions.machines.workers.submission import Submitter
from codex_multi_role.presentation.recorded import open_questions
from codex_multi_role.run_folder import Question, Questions, RunFolder
from tests.support.batches import one_role
from tests.support.prices import price_playbook, write_prices
from tests.support.recorded_runs import make_run
from tests.support.runs_without_workers import RunsWithoutWorkers, on_workers
from tests.support.teams import say

__all__ = ["on_workers"]
ASKED_AT = "2026-01-31T10:15:00.000+00:00"


@pytest.fixture
def asking(on_workers: RunsWithoutWorkers, tmp_path: Path) -> RunFolder:
    """A run that is parked with a question, in the folder of its worker."""
    folder = make_run(tmp_path / "worker", "first", status="parked", outcome="waiting_for_review", exit_code=4)
    Questions(folder.path).ask(Question("ok.1", "Ship it?", "", ASKED_AT, None, None))
    on_workers.share(folder)
    return folder


def answer(on_workers: RunsWithoutWorkers, **more: object) -> Question:
    given = {"approved": True, "comment": "good", "question": None, **more}
    return answer_shared(on_workers.shared, on_workers.row("first"), **given)  # type: ignore[arg-type]


def test_answer_reaches_the_process_of_the_run(on_workers: RunsWithoutWorkers, asking: RunFolder) -> None:
    given = answer(on_workers)
    assert given.answer is not None
    assert on_workers.shared.mirror(on_workers.row("first")).record()["status"] == "queued"
    assert receive(on_workers.database, asking) == set()
    assert Questions(asking.path).find("ok.1") == given
    assert answered_runs(on_workers.database) == set()


@pytest.mark.usefixtures("asking")
def test_second_answer_is_refused_before_it_is_received(on_workers: RunsWithoutWorkers) -> None:
    answer(on_workers)
    with pytest.raises(UsageError, match=r"ok\.1 was approved by"):
        answer(on_workers, approved=False)
    with pytest.raises(UsageError, match=r'no question "o\.1"'):
        answer(on_workers, question="o.1")


@pytest.mark.usefixtures("asking")
def test_answer_that_was_not_sent_can_be_given_again(
    on_workers: RunsWithoutWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("the database cannot be reached")

    with monkeypatch.context() as broken:
        broken.setattr(deciding, "send_answer", fail)
        with pytest.raises(StorageError):
            answer(on_workers)
    assert answer(on_workers, comment="again").answer is not None


def test_waiting_run_is_taken_out_of_its_queue(on_workers: RunsWithoutWorkers) -> None:
    cancel_shared(on_workers.shared, on_workers.submit("first"))
    run = on_workers.row("first")
    assert (run.state, run.exit_code) == (RunState.ENDED, ExitCode.INTERRUPTED)
    assert run.why.startswith("cancelled by ")
    assert on_workers.queued.claim("first", "anna", "1") is None
    cancel_shared(on_workers.shared, run)  # has ended already
    assert on_workers.row("first") == run


@pytest.mark.usefixtures("asking")
def test_cancelled_parked_run_stays_cancelled(on_workers: RunsWithoutWorkers) -> None:
    def asked() -> list[str]:
        folder = on_workers.shared.mirror(on_workers.row("first"))
        return [question.key for question in open_questions(folder, folder.record())]

    assert asked() == ["ok.1"]
    cancel_shared(on_workers.shared, on_workers.row("first"))
    assert (on_workers.row("first").state, asked()) == (RunState.ENDED, [])
    assert resume_shared(on_workers.shared, on_workers.row("first"), {})
    assert on_workers.claim("first").attempt == 2


def test_process_of_a_running_run_is_asked_to_stop(
    on_workers: RunsWithoutWorkers, asking: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deciding, "STOP_SECONDS", 0)
    on_workers.queued.enqueue_again(on_workers.row("first"), "resumed")
    on_workers.claim("first")
    with pytest.raises(RunBusy, match="the worker anna has not stopped run first yet"):
        cancel_shared(on_workers.shared, on_workers.row("first"))
    assert pause_shared(on_workers.shared, on_workers.row("first"))
    assert receive(on_workers.database, asking) == {"stop", "pause"}
    assert receive(on_workers.database, asking) == set()


@pytest.mark.usefixtures("asking")
def test_parked_run_is_not_paused_again(on_workers: RunsWithoutWorkers) -> None:
    assert not pause_shared(on_workers.shared, on_workers.row("first"))
    on_workers.submit("second")
    with pytest.raises(UsageError, match=r"second is not running \(state: waiting\); nothing to pause"):
        pause_shared(on_workers.shared, on_workers.row("second"))


@pytest.mark.usefixtures("asking")
def test_resumed_run_has_the_changed_options(on_workers: RunsWithoutWorkers) -> None:
    send(on_workers.database, "first", STOP)  # too late, and must not stop what is resumed now
    send(on_workers.database, "first", PAUSE)
    assert resume_shared(on_workers.shared, on_workers.row("first"), {"cycles": 6, "config": ("a=1", "b=2")})
    run = on_workers.claim("first")
    assert run.request.changes == {"cycles": 6, "config": ["a=1", "b=2"]}
    assert receive(on_workers.database, on_workers.shared.mirrors.folder_of("first")) == set()


def test_run_that_never_started_starts_with_the_changes(on_workers: RunsWithoutWorkers) -> None:
    cancel_shared(on_workers.shared, on_workers.submit("first"))
    assert resume_shared(on_workers.shared, on_workers.row("first"), {"cycles": 6})
    assert on_workers.row("first").request.options == {"goal": "goal of first", "cycles": 6}


def test_run_that_cannot_be_resumed_now_is_refused(on_workers: RunsWithoutWorkers) -> None:
    on_workers.submit("first")
    with pytest.raises(RunBusy, match="run first is in the queue goals already"):
        resume_shared(on_workers.shared, on_workers.row("first"), {})
    on_workers.claim("first")
    with pytest.raises(RunBusy, match=r"the worker anna is working on run first \(attempt 1\)"):
        resume_shared(on_workers.shared, on_workers.row("first"), {})


def test_finished_run_is_resumed_only_with_changes(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    run = on_workers.share(make_run(tmp_path / "worker", "done", status="succeeded", exit_code=0))
    assert not resume_shared(on_workers.shared, run, {})
    assert on_workers.row("done").state is RunState.ENDED
    assert resume_shared(on_workers.shared, run, {"cycles": 9})


@pytest.mark.parametrize("changes", [{"roles": "here"}, {"python": "python3"}])
def test_options_of_this_machine_cannot_be_changed(
    on_workers: RunsWithoutWorkers, asking: RunFolder, changes: dict[str, object]
) -> None:
    with pytest.raises(UsageError, match="cannot be used for a run on workers"):
        resume_shared(on_workers.shared, on_workers.row(asking.run_id), changes)


def test_secret_is_not_put_into_a_queue(
    on_workers: RunsWithoutWorkers, asking: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sesame-open-sesame")
    with pytest.raises(UsageError, match="secret environment variable"):
        resume_shared(on_workers.shared, on_workers.row(asking.run_id), {"config": ("key=sesame-open-sesame",)})
    with pytest.raises(UsageError, match='"comment" contains the value of a secret environment variable'):
        answer_shared(
            on_workers.shared, on_workers.row(asking.run_id), approved=True, comment="sesame-open-sesame", question=None
        )


def test_maximum_cost_without_prices_is_not_stored(on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    """The run could never be started again, because no later command removes the limit."""
    team = one_role(tmp_path / "team", say())
    prices = tmp_path / "team/roles/prices.yaml"
    write_prices(prices)
    for run_id in ("unpriced", "priced"):
        request = Submitter(on_workers.store).request(team.options(run_id=run_id))
        on_workers.queued.submit([request])
        cancel_shared(on_workers.shared, on_workers.row(run_id))
        price_playbook(prices)
    before = on_workers.row("unpriced")
    with pytest.raises(
        UsageError, match=r"^run unpriced: prices\.yaml:\d+:\d+: models: a maximum cost needs"
    ) as refused:
        resume_shared(on_workers.shared, before, {"max_cost": 5.0})
    assert "submit the goal again with --prices FILE" in refused.value.hint
    assert on_workers.row("unpriced") == before
    assert resume_shared(on_workers.shared, on_workers.row("priced"), {"max_cost": 5.0})
    assert on_workers.row("priced").request.options["max_cost"] == 5
