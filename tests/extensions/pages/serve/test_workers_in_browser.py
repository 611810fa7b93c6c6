"""Workers, queues and their runs as a person sees them: only here in real Chromium, from a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from codex_multi_role.extensions.machines.workers.membership import Membership, WorkerSettings
from tests.support.browser import assert_accessible
from tests.support.recorded_runs import make_asking
from tests.support.runs_without_workers import RunsWithoutWorkers, on_workers
from tests.support.serving import Served, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["on_workers"]
pytestmark = pytest.mark.long
SECONDS = 30_000


@pytest.fixture
def server(on_workers: RunsWithoutWorkers, tmp_path: Path) -> Iterator[Served]:
    (folder := tmp_path / "served").mkdir()
    with served(folder, "--database-url", on_workers.url, XDG_CACHE_HOME=str(tmp_path / "cache")) as server:
        yield server


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    with browser.new_context(base_url=str(server.client.base_url)) as visit:
        visit.set_default_timeout(SECONDS)
        yield visit.new_page()


def test_workers_queues_and_runs_are_shown(page: Page, on_workers: RunsWithoutWorkers, tmp_path: Path) -> None:
    (anna := Membership(on_workers.database, WorkerSettings("anna", ("goals",), ("gpu",), 3, 3600))).join()
    for run_id in ("working", "waiting"):
        on_workers.submit(run_id)
    on_workers.claim("working", identity=anna.identity)
    on_workers.share(make_asking(tmp_path / "worker"))
    page.goto("/")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Workers").click()
    page.get_by_role("table", name="Workers").get_by_role("row", name=re.compile("anna.*alive.*1 of 3")).wait_for()
    page.get_by_role("table", name="Queues").get_by_role("row", name=re.compile("goals.*are busy")).wait_for()
    assert_accessible(page)
    page.goto("/?show=waiting")
    page.get_by_role("row", name=re.compile("ok.1 waits")).get_by_role("link").first.click()
    page.get_by_role("heading", name="Your decision: Ship it?").wait_for()
    assert_accessible(page)
    page.get_by_role("link", name="Review and decide").click()
    page.locator("#comment").fill("good")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("Approved.").wait_for()
    page.get_by_role("button", name="Take it out of the queue").wait_for()
    page.goto("/runs/waiting")
    page.get_by_text("goals: the workers for it are busy").wait_for()
    assert_accessible(page)
