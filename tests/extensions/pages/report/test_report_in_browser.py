"""The report as a person uses it: in real Chromium, without a network.

Costs: Chromium starts and opens each report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from codex_multi_role.extensions.pages.report.page import write_report
from tests.support.browser import assert_accessible
from tests.support.recorded_runs import make_many_turns as make
from tests.support.recorded_runs import make_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.real

NEEDLE = "a needle of turn"
HOSTILE = "</noscript><img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
MARKDOWN = f"# Found\n\n- *one*\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n![i](https://example.org/i.png)\n\n{HOSTILE}\n"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report of 12 turns with hostile texts."""
    folder = make(tmp_path_factory.mktemp("runs"), 12, prompt=f"{HOSTILE}\n" * 40, answer=HOSTILE)
    result = {"title": "Answer", "text": MARKDOWN, "format": "markdown", "figures": {"score": 0.5}}
    folder.write_record({**folder.record(), "result": result})
    turn = folder.path / "integrator/turn_003"
    (turn / "assistant_text.txt").write_text(f"Said: {NEEDLE} 3\nand {NEEDLE} 3 again")
    arguments = {"todos": [{"id": "T1", "needs": ["T0"]}, {"id": "T2"}], "note": "A line\n" * 99}
    call = {"tool": "write_todos", "arguments": arguments, "success": True, "text": "2 tasks", "seconds": 0.1}
    (folder.path / "planner/turn_001/tool_calls.jsonl").write_text(f"{json.dumps(call)}\n")
    return write_report(folder).as_uri()


@pytest.fixture
def page(browser: Browser, report: str) -> Iterator[Page]:
    """The report, opened; at its end nothing may have been asked of a network, and no script of it may have failed."""
    wrong: list[str] = []
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url) if request.url.split("#")[0] != report else None)
    page.goto(report)
    yield page
    assert "taken" not in page.title()
    context.close()
    assert wrong == []


def entry(page: Page, name: str) -> Locator:
    return page.locator(f'[id="{name}"]')


def test_turn_opens_and_shows_content_as_text(page: Page) -> None:
    """HTML in an answer is not interpreted."""
    from playwright.sync_api import expect

    turn = entry(page, "turn-implementer-1")
    expect(turn.locator(".part").first).to_be_hidden()
    turn.locator("summary").first.click()
    parts = turn.locator(".part h3")
    expect(parts).to_have_text(["Prompt", "Answer", "Handoff", "Changes", "Tests 001", "Output", "Details"])
    expect(turn.locator(".diff .add")).to_have_text(["+new +line"])
    expect(turn.locator(".diff .del")).to_have_text(["-old"])
    expect(turn.locator(".part").nth(1).locator(".answer")).to_have_text(HOSTILE)
    expect(turn.locator("img, script:not([type])")).to_have_count(0)
    turn.locator(".part").first.locator("summary").click()
    expect(turn.get_by_text("Role: implementer")).to_be_visible()


def test_search_finds_what_is_in_turns_that_are_closed(page: Page) -> None:
    from playwright.sync_api import expect

    page.keyboard.press("/")
    page.keyboard.type(NEEDLE.upper())
    expect(page.locator("#count")).to_have_text("1 of 12 entries")
    expect(page.locator(".entry:visible")).to_have_count(1)
    expect(page.locator(".found:visible mark")).to_have_text(NEEDLE)
    page.keyboard.press("Enter")
    expect(entry(page, "turn-integrator-3").locator(".answer")).to_be_in_viewport()
    assert page.evaluate("CSS.highlights.get('found').size") == 2
    page.keyboard.press("Escape")
    expect(page.locator(".entry:visible")).to_have_count(12)
    page.locator("#search").fill("nothing is like this")
    expect(page.locator("#count")).to_have_text("0 of 12 entries")
    page.keyboard.press("Escape")
    page.locator("#kind").select_option("problem")
    expect(page.locator(".entry:visible .who")).to_have_text([f"implementer turn {number}" for number in (1, 3)])


def test_keys_lead_from_turn_to_turn(page: Page) -> None:
    from playwright.sync_api import expect

    for key in "jjjk":
        page.keyboard.press(key)
    turn = entry(page, "turn-architect-1")
    expect(turn.locator("summary").first).to_be_focused()
    page.keyboard.press("o")
    expect(turn.locator(".part").first).to_be_visible()
    page.keyboard.press("o")
    expect(turn.locator(".part").first).to_be_hidden()
    page.keyboard.press("Enter")
    expect(turn.locator(".part").first).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_timeline_leads_to_the_turn(page: Page) -> None:
    from playwright.sync_api import expect

    page.locator("#lanes rect[data-target='turn-planner-2']").click()
    expect(entry(page, "turn-planner-2").locator(".part").first).to_be_in_viewport()
    assert page.url.endswith("#turn-planner-2")
    page.reload()
    expect(entry(page, "turn-planner-2").locator(".part").first).to_be_in_viewport()
    page.get_by_role("link", name="tests 002").click()
    expect(entry(page, "tests-002")).to_be_in_viewport()
    expect(entry(page, "turn-implementer-2")).to_have_attribute("open", "")


def ground(page: Page) -> int:
    """How light the page is, 0 to 255."""
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", colour)[:3])) // 3


@pytest.mark.long
def test_it_is_light_or_dark_as_the_system_is(page: Page) -> None:
    """No short test looks at colours."""
    page.emulate_media(color_scheme="dark")
    assert ground(page) < 50
    page.emulate_media(color_scheme="light")
    assert ground(page) > 200
    page.emulate_media(media="print")
    assert ground(page) > 200 or page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgba(0, 0, 0, 0)"
    assert page.locator("#lanes .bar").first.is_visible()
    assert page.locator("nav.bar").is_hidden()


def test_it_fits_a_narrow_screen(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 700})
    page.get_by_role("button", name="Open all").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_result_is_rendered_as_markdown(page: Page) -> None:
    from playwright.sync_api import expect

    result = page.get_by_role("region", name="Answer")
    expect(result.get_by_role("heading", name="Found", level=3)).to_be_visible()
    expect(result.get_by_role("cell", name="2")).to_be_visible()
    expect(result.get_by_role("img")).to_have_count(0)
    expect(result).to_contain_text("<script>")


def test_it_is_accessible(page: Page) -> None:
    for name in ("turn-planner-1", "turn-implementer-2"):
        entry(page, name).locator("summary").first.click()
    assert_accessible(page)


def test_without_javascript_it_still_tells_the_run(browser: Browser, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    path = write_report(make_run(tmp_path / "runs", "plain"))
    context = browser.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    expect(page.get_by_role("heading", name="Convert roman numerals")).to_be_visible()
    entry(page, "turn-planner-1").locator("summary").first.click()
    prompt = entry(page, "turn-planner-1").locator("pre").first  # Playwright looks for no text in ``noscript``
    expect(prompt).to_contain_text("Role: planner")
    expect(prompt).to_be_visible()
    expect(page.get_by_role("searchbox")).to_have_count(0)
    context.close()
