"""The pages of a server that also shows the runs of workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.workers.membership import Membership, WorkerSettings
from codex_multi_role.extensions.machines.workers.queued_runs import RunState
from codex_multi_role.extensions.machines.workers.shared_runs import SharedRuns
from codex_multi_role.extensions.pages.serve.access import Access
from tests.support.recorded_runs import make_asking, make_run
from tests.support.runs_without_workers import RunsWithoutWorkers, on_workers
from tests.support.serving import client

__all__ = ["on_workers"]
ACCESS = Access("127.0.0.1")


@pytest.fixture
def pages(on_workers: RunsWithoutWorkers, tmp_path: Path) -> TestClient:
    return client(tmp_path / "runs", ACCESS, shared=on_workers.shared)


def form(**fields: str) -> dict[str, str]:
    return {"form_secret": ACCESS.form_secret, **fields}


def test_list_has_the_runs_of_both(on_workers: RunsWithoutWorkers, pages: TestClient, tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "here", goal="mine")
    on_workers.submit("waiting")
    on_workers.submit("working")
    on_workers.claim("working")
    parked = {"status": "parked", "outcome": "waiting_for_review", "exit_code": 4, "reason": "ok.1: Ship it?"}
    on_workers.share(make_run(tmp_path / "worker", "asking", **parked))
    shown = pages.get("/").text
    for words in ("mine", "there are no workers", "anna", "ok.1: Ship it?"):
        assert words in shown
    assert "Start a run" not in shown
    assert "goal of waiting" not in pages.get("/?show=waiting").text
    assert 'href="/runs/asking"' in pages.get("/?show=waiting").text


def test_page_of_a_run_follows_its_saved_states(
    on_workers: RunsWithoutWorkers, pages: TestClient, tmp_path: Path
) -> None:
    on_workers.submit("first")
    waiting = pages.get("/runs/first").text
    assert "Take it out of the queue" in waiting
    assert "goals: there are no workers" in waiting
    run = on_workers.claim("first")
    on_workers.save(run, make_run(tmp_path / "worker", "first", status="running", exit_code=None))
    on_workers.shared.mirror(on_workers.row("first"))
    shown = pages.get("/runs/first").text
    assert "anna, attempt 1" in shown
    assert "Stop the run" in shown
    assert "warning: the disk is nearly full" in shown
    assert pages.get("/runs/fir").headers["location"] == "/runs/first"
    assert pages.get("/runs/first/files/events.jsonl").status_code == 200


def test_report_of_a_worker_is_written_again(on_workers: RunsWithoutWorkers, pages: TestClient, tmp_path: Path) -> None:
    on_workers.share(make_run(tmp_path / "worker", "done"))
    assert 'href="/runs/done/report"' in pages.get("/runs/done").text
    assert "Convert roman numerals" in pages.get("/runs/done/report").text


def test_decisions_go_to_the_worker(on_workers: RunsWithoutWorkers, pages: TestClient, tmp_path: Path) -> None:
    on_workers.share(make_asking(tmp_path / "worker"))
    assert "Resume the run afterwards" not in pages.get("/runs/asking").text
    sent = form(question="ok.1", verdict="approve", comment="good", go_on="yes")
    assert pages.post("/runs/asking/answer", data=sent).headers["location"] == "/runs/asking?done=approved"
    again = pages.post("/runs/asking/answer", data=sent)
    assert (again.status_code, "ok.1 was approved by" in again.text) == (409, True)
    assert pages.post("/runs/asking/stop", data=form()).status_code == 303
    assert on_workers.row("asking").state is RunState.ENDED
    assert pages.post("/runs/asking/resume", data=form(cycles="many")).status_code == 409
    assert pages.post("/runs/asking/resume", data=form(cycles="5")).status_code == 303
    assert on_workers.row("asking").request.changes == {"cycles": 5}


def test_runs_are_not_started_from_the_pages(pages: TestClient) -> None:
    assert "Submit goals with `codex-multi-role batch`" in pages.get("/start").text
    assert pages.post("/start", data=form(flow="cycles", goal="go")).status_code == 404


def test_workers_and_queues_are_shown(on_workers: RunsWithoutWorkers, pages: TestClient) -> None:
    empty = pages.get("/workers").text
    assert "There are no workers. Start one with <code>codex-multi-role worker</code>." in empty
    assert "No runs have been submitted." in empty
    Membership(on_workers.database, WorkerSettings("anna", ("goals",), ("gpu",), 3)).join()
    on_workers.submit("first")
    on_workers.claim("first")
    on_workers.submit("second")
    shown = pages.get("/workers").text
    for words in ("with gpu", "of 3", '<td data-label="Running" class="number">1</td>', "the workers for it are busy"):
        assert words in shown


def test_pages_without_a_database_have_no_workers(tmp_path: Path) -> None:
    visitor = client(tmp_path / "runs", ACCESS)
    assert visitor.get("/workers").status_code == 404
    assert "Workers" not in visitor.get("/").text


def test_unreachable_database_is_reported(
    on_workers: RunsWithoutWorkers, pages: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is followed keeps what it has, and says that it is old."""
    on_workers.share(make_run(tmp_path / "worker", "done"))
    pages.get("/runs/done")

    def fail(*_: object) -> None:
        raise StorageError("the database cannot be reached", "Check the network.")

    monkeypatch.setattr(SharedRuns, "look", fail)
    listed = pages.get("/")
    assert (listed.status_code, "the database cannot be reached. Check the network." in listed.text) == (503, True)
    monkeypatch.setattr(SharedRuns, "mirror", fail)
    shown = pages.get("/runs/done").text
    assert "Not up to date: the database cannot be reached" in shown
    assert "warning: the disk is nearly full" in shown
