"""The pages as a person uses them: real Chromium, a real server, real runs of a playbook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from codex_multi_role.lifecycle.stopping import stop_run
from codex_multi_role.run_folder import Question, Questions, RunFolder
from codex_multi_role.run_folder.owner import is_alive
from tests.support.browser import assert_accessible, browser
from tests.support.recorded_runs import make_many_turns, make_run, whole_run
from tests.support.serving import PLAYBOOK, QUICK, Served, project, served
from tests.support.teams import TeamFolder, read

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

__all__ = ["browser"]
SECONDS = 30_000


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> TeamFolder:
    return project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def server(team: TeamFolder) -> Iterator[Served]:
    with served(team.folder, **QUICK) as server:
        yield server
    for path in team.runs.iterdir():  # some of what pages started waits for an answer
        if is_alive(run := RunFolder(path)):
            stop_run(run)


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    """A page that no script of ours fails on."""
    with context(browser, server) as visit:
        page = visit.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
        yield page
        assert wrong == []


def context(browser: Browser, server: Served, **settings: object) -> BrowserContext:
    visit = browser.new_context(base_url=str(server.client.base_url), **settings)  # type: ignore[arg-type]
    visit.set_default_timeout(SECONDS)
    return visit


def start(page: Page, flow: str) -> str:
    """Start a run of ``flow`` from the first page on; returns its id."""
    page.goto("/")
    page.get_by_role("main").get_by_role("link", name="Start a run").first.click()
    page.get_by_role("link", name=flow, exact=True).click()
    if flow == "ship":
        page.get_by_label("Goal").fill("Make something")
        page.get_by_label("size").fill("5")
        page.get_by_label("colour").select_option("blue")
        page.get_by_label("careful").uncheck()
        page.get_by_label("place").fill("here")
    if flow == "release":
        page.get_by_label("Goal").fill("release it")
    page.get_by_label("Workspace").fill("workspace")
    page.get_by_label("Answers from").select_option(PLAYBOOK)
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url(re.compile(r"/runs/.*done=started"))
    return page.url.partition("?")[0].rpartition("/")[2]


def decide(page: Page) -> None:
    """Open the open question of the run that the page shows."""
    page.get_by_role("link", name=re.compile("Review and decide|Answer")).click()
    page.locator("#decision").wait_for()


def status(page: Page, word: str) -> None:
    """Wait until the page, which is not loaded again, says that status."""
    page.locator("#now .badge", has_text=word).wait_for()


def wait_for(server: Served, run_id: str, word: str) -> None:
    """Wait until the run has that status, for a page that is not told."""
    assert any(news["status"] == word for _, news in server.news(f"/runs/{run_id}/events"))


@pytest.mark.long
def test_run_is_started_found_and_approved_with_comment(page: Page, team: TeamFolder) -> None:
    """Only here a browser shows a whole run while it works, from its form to its report."""
    run_id = start(page, "ship")
    page.get_by_role("heading", name="Your decision: Ship 5 blue?").wait_for()
    page.goto("/?show=waiting")
    page.get_by_role("row", name="Ship 5 blue?").get_by_role("link").first.click()
    decide(page)
    assert '"summary": "it"' in page.get_by_label("Subject").inner_text()
    assert_accessible(page)
    page.locator("#comment").fill("good")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("Approved.").wait_for()
    status(page, "succeeded")
    assert page.get_by_role("log").get_by_text("review ok.1: approved by").count() == 1
    assert page.get_by_role("heading", name="Your decision").count() == 0
    page.get_by_role("link", name="Report", exact=True).wait_for()
    record = read(team.runs / run_id / "run.json")
    assert (record["outcome"], record["inputs"]["careful"], record["inputs"]["names"]) == ("shipped", False, ["a"])
    with page.expect_download() as download:
        page.get_by_role("link", name="run.json").click()
    assert json.loads(Path(download.value.path()).read_text()) == record


@pytest.mark.long
@pytest.mark.parametrize("scripts", [True, False])
def test_decision_with_line_comment_and_edit_then_fork_and_compare(
    browser: Browser, server: Served, team: TeamFolder, scripts: bool
) -> None:
    """Only here a browser comments on a line, is refused a value, edits a list, forks a run and compares both."""
    with context(browser, server, java_script_enabled=scripts, viewport={"width": 390, "height": 844}) as visit:
        page = visit.new_page()
        (team.folder / "workspace/a.html").unlink(missing_ok=True)
        first = start(page, "release")
        wait_for(server, first, "waiting")
        page.goto(f"/runs/{first}/decide")
        page.get_by_text("since the start").wait_for()
        assert "<script>bad()</script>" in page.get_by_role("group", name="a.html").inner_text()
        page.get_by_role("button", name="Comment on line 2").click()
        page.get_by_label("a.html, line 2").fill("why two?")
        page.get_by_label("version").fill("12")
        assert page.get_by_label("tasks").input_value() == "<i>docs\nlater"
        page.get_by_label("tasks").fill("<i>docs\ntests")
        page.get_by_role("button", name="ship").click()
        page.get_by_text("'12' does not match").first.wait_for()
        assert page.get_by_label("a.html, line 2").input_value() == "why two?"
        if scripts:
            assert_accessible(page)
        page.get_by_label("version").fill("v1")
        page.get_by_role("button", name="ship").click()
        page.get_by_text("Approved.").wait_for()
        wait_for(server, first, "succeeded")
        answer = read(team.runs / first / "reviews/look.1.json")["answer"]
        assert (answer["option"], answer["values"]) == ("ship", {"tasks": ["<i>docs", "tests"], "version": "v1"})
        assert answer["comments"] == [{"path": "a.html", "line": 2, "side": "after", "text": "why two?"}]
        second = fork(page, first, "look:1")
        page.goto(f"/compare?run={first}&run={second}")
        page.get_by_role("row", name="make.1 same").wait_for()
        if scripts:
            assert_accessible(page)
        page.goto(f"/runs/{first}/changes")
        page.get_by_role("heading", name="1 file changed since the start").wait_for()
        page.locator("summary", has_text="2 lines").click()
        assert (
            page.get_by_role("link", name="writer 1").first.get_attribute("href") == f"/runs/{first}?at=turn-writer-1"
        )
        if scripts:
            assert_accessible(page)
        page.get_by_role("link", name="since the decision look.1").click()
        page.get_by_role("heading", name="0 files changed since the decision look.1").wait_for()
        page.goto(f"/start?from={first}")
        assert page.get_by_label("Goal").input_value() == "release it"
        assert page.get_by_text("Worst case: at most").count() == 1


def fork(page: Page, run_id: str, point: str) -> str:
    """Fork the run once its process has ended; returns the id of the fork."""
    for _ in range(300):
        page.goto(f"/runs/{run_id}")
        if page.get_by_role("button", name="Fork the run").count():
            break
    page.get_by_label("From", exact=True).select_option(point)
    page.get_by_role("button", name="Fork the run").click()
    page.wait_for_url(re.compile(r"/runs/.*done=started"))
    return page.url.partition("?")[0].rpartition("/")[2]


@pytest.mark.long
def test_key_enter_decides_nothing(page: Page, team: TeamFolder) -> None:
    """Only here a key is pressed in the form of an answer."""
    run = make_run(team.runs, "undecided", status="parked", outcome="waiting_for_review", exit_code=4)
    Questions(run.path).ask(Question("ok.1", "Ship it?", "", whole_run()[0].at, None, None))
    page.goto("/runs/undecided/decide")
    page.get_by_label("Resume the run").uncheck()
    page.get_by_label("Resume the run").press("Enter")
    page.locator("#comment").fill("no")
    page.get_by_role("button", name="Reject").click()
    page.get_by_text("Rejected.").wait_for()
    assert read(run.path / "reviews/ok.1.json")["answer"]["approved"] is False


@pytest.mark.long
def test_rejection_requires_reason(page: Page, team: TeamFolder) -> None:
    """Only here a browser is refused an answer: the form comes back as it was."""
    run_id = start(page, "ship")
    decide(page)
    page.get_by_role("button", name="Reject").click()
    page.get_by_role("alert").get_by_text("A rejection needs a comment").wait_for()
    page.locator("#comment").fill("too big")
    page.get_by_role("button", name="Reject").click()
    status(page, "ended")
    assert read(team.runs / run_id / "reviews/ok.1.json")["answer"]["comment"] == "too big"


@pytest.mark.long
def test_what_a_role_asks_is_answered_in_words(page: Page, team: TeamFolder) -> None:
    """Only here a browser answers what a role asks in its turn."""
    run_id = start(page, "ask")
    page.get_by_role("heading", name="A role asks: Which database?").wait_for()
    decide(page)
    page.get_by_label("Your answer").fill("use sqlite")
    page.get_by_role("button", name="Send answer").click()
    status(page, "succeeded")
    assert read(team.runs / run_id / "asker/turn_001/handoff.json")["summary"] == "use sqlite"


@pytest.mark.long
def test_task_is_cancelled_and_others_continue(page: Page, team: TeamFolder) -> None:
    """Only here a browser stops a task, and then its run."""
    run_id = start(page, "tasks")
    page.locator("#tree summary", has_text="at work: T2").wait_for()
    page.get_by_label("Cancel a task").select_option(label="T1 (in progress)")
    page.get_by_label("Reason").fill("known")
    page.get_by_role("button", name="Cancel the task").click()
    page.locator("#tree summary", has_text="skipped: T1").wait_for()
    page.get_by_role("button", name="Stop the run").click()
    status(page, "interrupted")
    page.get_by_role("button", name="Resume this run").wait_for()  # once its process has ended, too
    told = {each["item"]: each["state"] for each in read(team.runs / run_id / "states.json")["items"]}
    assert told == {"T1": "SKIPPED", "T2": "IN_PROGRESS"}


@pytest.mark.long
def test_everything_is_done_without_javascript(browser: Browser, server: Served, team: TeamFolder) -> None:
    """Only here a browser executes no script."""
    with context(browser, server, java_script_enabled=False) as visit:
        page = visit.new_page()
        run_id = start(page, "ship")
        wait_for(server, run_id, "waiting")
        page.reload()
        decide(page)
        page.locator("#comment").fill("fine")
        page.get_by_role("button", name="Approve").click()
        page.get_by_text("Approved.").wait_for()
        wait_for(server, run_id, "succeeded")
        page.reload()
        page.get_by_text("Facts").click()
        page.get_by_text("exit code").wait_for()
        page.get_by_role("navigation", name="Steps, tasks and turns").get_by_role("link", name="maker 1").click()
        page.get_by_role("heading", name="maker turn 1").wait_for()
        page.locator("pre", has_text="exitCode: 0").filter(has_text="ran-42").wait_for()
        assert "at=turn-maker-1" in page.url
    assert read(team.runs / run_id / "run.json")["outcome"] == "approved"


@pytest.fixture(scope="module")
def shown(team: TeamFolder) -> None:
    """A run that ended, with long words, one that asks, and one with many turns."""
    make_many_turns(team.runs, 500, prompt="Do it.", answer="Done.")
    long = "averylongword" * 30
    make_run(team.runs, "ended", goal=long, workspace=long, reason=long)
    asking = make_run(team.runs, "asking", status="parked", outcome="waiting_for_review", exit_code=4)
    for key in ("ok.1", "ok.2"):
        Questions(asking.path).ask(Question(key, f"Ship {long}?", long, whole_run()[0].at, 1e9, "reject"))


PAGES = [
    *("/", "/?q=nothing+like+it", "/runs/asking", "/runs/asking/decide", "/runs/ended", "/runs/ended/files/"),
    *("/start", "/start?flow=ship", "/start?flow=testgen", "/compare?run=asking&run=ended", "/nowhere"),
]


@pytest.mark.long
@pytest.mark.usefixtures("shown")
def test_pages_are_accessible(page: Page) -> None:
    """Only here axe judges the pages."""
    for path in PAGES:
        page.goto(path)
        assert_accessible(page)
        assert page.locator("h1").count() == 1
        assert "unpriced" not in page.locator("body").inner_text()


@pytest.mark.long
@pytest.mark.usefixtures("shown")
def test_turn_and_filter_are_chosen_and_in_the_address(page: Page) -> None:
    """Only here a browser goes through a run by its tree, its timeline and the filters of its log."""
    page.goto("/runs/ended")
    tree = page.get_by_role("navigation", name="Steps, tasks and turns")
    tree.get_by_role("link", name="planner 2").click()
    page.get_by_role("heading", name="planner turn 2").wait_for()
    assert_accessible(page)
    page.locator("#lanes rect[data-target='turn-planner-1']").first.click()
    page.get_by_role("heading", name="planner turn 1").wait_for()
    assert "planner 1" in tree.locator("[aria-current]").inner_text()
    page.go_back()
    page.get_by_role("heading", name="planner turn 2").wait_for()
    page.get_by_label("Level").select_option("problems")
    page.get_by_label("Text", exact=True).fill("invalid")
    lines = page.get_by_role("log").locator("p:visible")
    assert lines.count() == 1
    assert "at=turn-planner-2" in page.url
    page.reload()
    assert lines.count() == 1
    page.get_by_role("heading", name="planner turn 2").wait_for()


@pytest.mark.long
@pytest.mark.usefixtures("shown")
def test_turns_are_searched_and_opened_by_keys(page: Page) -> None:
    """Only here the live page is searched; the report's tests try the rest of the same script."""
    page.goto("/runs/ended")
    leaves = page.get_by_role("navigation", name="Steps, tasks and turns").locator("a:visible")
    page.keyboard.press("/")
    page.keyboard.type("role: Planner")
    page.get_by_text("2 of 7 entries").wait_for()
    assert leaves.locator("mark").all_inner_texts() == ["Role: planner"] * 2
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="planner turn 1").wait_for()
    page.reload()
    page.get_by_text("2 of 7 entries").wait_for()
    assert_accessible(page)
    for key in "jjo":
        page.keyboard.press(key)
    page.get_by_role("heading", name="planner turn 2").wait_for()
    page.keyboard.press("Escape")
    page.get_by_label("Show", exact=True).select_option("problem")
    page.get_by_text("2 of 7 entries").wait_for()
    assert page.url.endswith("at=turn-planner-2&kind=problem")


@pytest.mark.long
@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize("scripts", [True, False])
def test_closed_branches_of_a_long_run_open(browser: Browser, server: Served, scripts: bool) -> None:
    """Only here a browser shows a run of so many turns that branches are closed: they are loaded when opened."""
    with context(browser, server, java_script_enabled=scripts) as visit:
        page = visit.new_page()
        page.goto("/runs/500_turns?at=turn-planner-3")
        tree = page.get_by_role("navigation", name="Steps, tasks and turns")
        tree.get_by_role("link", name="planner 3").wait_for()
        tree.locator("summary", has_text="team x2").first.click()
        if not scripts:
            tree.get_by_role("link", name="Show 5 parts").click()
        tree.get_by_role("link", name="planner 2").click()
        page.get_by_role("heading", name="planner turn 2").wait_for()
        tree.get_by_role("link", name="tests 002").click()
        page.get_by_role("heading", name="tests 002").wait_for()
        if scripts:
            assert_accessible(page)
            page.locator("#lanes rect[data-target='turn-planner-60']").click()
            tree.get_by_role("link", name="planner 60").wait_for()
            page.get_by_label("Show", exact=True).select_option("problem")
            page.get_by_text("63 of 625 entries").wait_for()
            tree.get_by_role("link", name="tests 061").click()
            page.get_by_role("heading", name="tests 061").wait_for()


@pytest.mark.long
def test_line_is_commented_on_by_keyboard_alone(page: Page, server: Served, team: TeamFolder) -> None:
    """Only here a comment on a line is made without a mouse."""
    (team.folder / "workspace/a.html").unlink(missing_ok=True)
    run_id = start(page, "release")
    wait_for(server, run_id, "waiting")
    page.goto(f"/runs/{run_id}/decide")
    page.get_by_role("group", name="a.html").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == "Comment on line 1"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("why two?")
    assert page.get_by_label("a.html, line 2").input_value() == "why two?"


@pytest.mark.long
@pytest.mark.usefixtures("shown")
def test_narrow_page_fits_and_works_with_keyboard(browser: Browser, server: Served) -> None:
    """Only here a narrow browser is used: the page does not scroll sideways, and the keyboard reaches every control."""
    with context(browser, server, viewport={"width": 320, "height": 640}) as visit:
        page = visit.new_page()
        for path in ("/", "/start?flow=testgen", "/runs/asking/decide", "/runs/ended"):
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 320, path
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.keyboard.press("Enter")
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.textContent.trim()"))
        assert {"Resume this run", "All files of this run", "run.json"} <= reached
