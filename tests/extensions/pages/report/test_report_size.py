"""A run of a thousand turns: the page stays usable, and writing it does not hold the run in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from codex_multi_role.extensions.pages.report.page import write_report
from codex_multi_role.extensions.pages.report.parts import ALL_BYTES, LONGEST, SHORTEST, cut_length
from codex_multi_role.run_folder import RunFolder
from tests.support.browser import Report
from tests.support.memory import most_allocated
from tests.support.recorded_runs import make_many_turns as make

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TURNS = 1000
WORDS = 'A line of <code> & "words", as a model says it.\n'
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 MB of texts: more than the page may have."""
    folder = make(tmp_path_factory.mktemp("runs"), TURNS, prompt=WORDS * 200, answer=WORDS * 40)
    return write_report(folder)


@pytest.mark.long
def test_writing_holds_no_more_than_a_turn(tmp_path: Path) -> None:
    """No short test measures the memory that writing takes."""
    few, many = (make(tmp_path / str(turns), turns, prompt=WORDS * 4000, answer=WORDS * 1000) for turns in (2, 60))
    assert most_allocated(_write, many.path) - most_allocated(_write, few.path) < MEGABYTE  # both import modules
    assert many.report_path.stat().st_size > 8 * MEGABYTE


def _write(folder: Path) -> None:
    write_report(RunFolder(folder))


@pytest.mark.long
def test_thousand_turns_stay_below_15_megabytes_and_note_cuts(thousand: Path) -> None:
    """No short test writes more than a page may hold."""
    assert 3 * MEGABYTE < thousand.stat().st_size < 15 * MEGABYTE
    report = Report(thousand)
    assert len(report.entries) == TURNS
    prompt = report.part("turn-integrator-250", "Prompt")
    whole = thousand.parent / "integrator/turn_250/prompt.txt"
    assert prompt["file"] == "integrator/turn_250/prompt.txt"
    assert f"({whole.stat().st_size:,} bytes)" in prompt["cut"]
    assert f"Texts longer than {len(prompt['text']):,} characters are truncated" in report.text
    assert whole.read_text().startswith(prompt["text"])


@pytest.mark.long
def test_thousand_turns_are_searched_and_opened_in_the_browser(browser: Browser, thousand: Path) -> None:
    """No short test opens a page of a thousand turns."""
    from playwright.sync_api import expect

    page = browser.new_page()
    page.goto(thousand.as_uri())
    page.locator("#search").fill("did part 77\n")
    expect(page.locator("#count")).to_have_text("4 of 1,000 entries")
    page.keyboard.press("Enter")
    expect(page.locator("[id='turn-planner-77'] .part").first).to_be_visible()
    assert page.locator(".entry[open]").count() == 1, "no other turn was opened"
    page.close()


@pytest.mark.parametrize(
    ("sizes", "length"),
    [
        ([], LONGEST),
        ([10, LONGEST + 1], LONGEST),
        ([ALL_BYTES], LONGEST),
        ([100_000] * 100, ALL_BYTES // 100),
        ([1_000] * 1_000 + [100_000] * 100, (ALL_BYTES - 1_000_000) // 100),
        ([10_000] * 10_000, SHORTEST),
    ],
)
def test_texts_are_cut_where_all_together_fit(sizes: list[int], length: int) -> None:
    assert cut_length(sizes) == length
