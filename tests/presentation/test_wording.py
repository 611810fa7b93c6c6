from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.errors import RunStatus
from codex_multi_role.presentation.outcome import (
    ASKS,
    BAD,
    BUSY,
    GOOD,
    IDLE,
    UNUSED,
    WAITING,
    WARN,
    ending_in_words,
    has_failed,
    run_status,
    tokens_in_words,
    tone_of,
    turns_in_words,
)
from codex_multi_role.presentation.wording import (
    ago,
    compact,
    costs_by_step,
    cut,
    duration,
    failed_tests,
    named,
    one_line,
    plural,
    verdict,
)
from codex_multi_role.run_folder.cost import Cost, dollars


@given(st.text(), st.integers(min_value=4, max_value=50))
def test_any_text_becomes_one_short_printable_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.isprintable()
    line.encode()


def test_words_without_a_printable_letter_leave_nothing_behind() -> None:
    assert one_line("\x00 \x00") == ""
    assert one_line("a \x1b b") == "a b"


def test_words_are_cut_between_words_and_only_too_long_a_word_in_its_middle() -> None:
    assert cut("a test, and more of it", 10) == "a test,..."
    assert cut("test_nine_hundred_and_ninety_nine of the roman numerals", 20) == "test_nine_...ty_nine"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (125, "2 min 05 s"),
        (3725, "1 h 02 min"),
        (71 * 3600, "71 h 00 min"),
        (72 * 3600, "3 days"),
        (101_793_600, "1,178 days"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(("seconds", "words"), [(0, "0 s ago"), (125, "2 min ago"), (7300, "2 h ago")])
def test_how_long_ago(seconds: float, words: str) -> None:
    assert ago((datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()) == words
    assert ago("") == ""


@pytest.mark.parametrize(("number", "words"), [(0, "0"), (9999, "9999"), (12345, "12.3k"), (4_560_000, "4.6M")])
def test_big_numbers(number: int, words: str) -> None:
    assert compact(number) == words


@pytest.mark.parametrize(
    ("amount", "words"),
    [(0, "$0.00"), (0.00004, "<$0.0001"), (0.0123456, "$0.0123"), (0.25, "$0.25"), (1234.567, "$1,234.57")],
)
def test_amounts_of_money(amount: float, words: str) -> None:
    assert dollars(amount) == words


def test_costs_by_step_say_which_have_no_price() -> None:
    costs = {"plan": Cost(Decimal("0.1")), "solve": Cost(Decimal(2), unpriced_turns=1)}
    assert costs_by_step(costs) == "plan $0.10, solve not known"
    assert costs_by_step({"plan": Cost(Decimal(1))}) == costs_by_step({"plan": Cost(), "solve": Cost()}) == ""


def test_plurals() -> None:
    assert [plural(1, "cycle"), plural(2, "cycle"), plural(2000, "process")] == [
        "1 cycle",
        "2 cycles",
        "2,000 processes",
    ]


def test_verdict_names_what_is_not_zero() -> None:
    counts = {"passed": 3, "failed": 1, "errors": 0, "skipped": 0}
    assert verdict({"status": "failed", **counts}) == "failed: 3 passed, 1 failed"
    assert verdict({"status": "no tests"}) == "no tests"


def test_failed_tests_are_named_as_far_as_they_are_known() -> None:
    assert failed_tests({"failures": ["a", "b"], "failed": 1, "errors": 1}) == "a, b"
    assert failed_tests({"failures": [{"test": "a", "message": "m"}], "failed": 20}) == "a and 19 more"
    assert failed_tests({"failures": list("abcde"), "failed": 5}) == "a, b, c and 2 more"
    assert failed_tests({"failed": 2}) == failed_tests({"failures": []}) == ""


def test_names_beyond_the_most_are_counted() -> None:
    assert named(["a", "b"], 2) == "a, b"
    assert named(["a", "b", "c"], 1) == "a and 2 more"


def test_each_status_of_a_run_has_its_tone() -> None:
    tones = {status: run_status(status).tone for status in (*RunStatus, WAITING)}
    assert {status for status, tone in tones.items() if tone == GOOD} == {"succeeded"}
    assert {status for status, tone in tones.items() if tone == BAD} == {"failed", "unreadable"}
    assert {status for status, tone in tones.items() if tone == BUSY} == {"running"}
    cut_short = {"ended", "parked", "interrupted", "killed"}  # cycles that are used up are no error
    assert {status for status, tone in tones.items() if tone == WARN} == cut_short
    assert tones[WAITING] == ASKS
    assert {status for status in tones if has_failed(status)} == {"ended", "failed", "unreadable"}


@pytest.mark.parametrize(
    ("status", "tone"),
    [
        *(("completed", GOOD), ("passed", GOOD), ("COMPLETED", GOOD), ("timed_out", BAD), ("could not run", BAD)),
        *(("skipped", UNUSED), ("working", BUSY), ("IN_PROGRESS", BUSY), ("no tests", IDLE), ("PENDING", IDLE)),
    ],
)
def test_tone_is_of_the_word_however_it_is_written(status: str, tone: str) -> None:
    assert tone_of(status, "other") == tone


def test_unknown_status_has_the_tone_that_is_given() -> None:
    assert (tone_of("stalled"), tone_of("stalled", BAD)) == (IDLE, BAD)


def test_run_without_an_outcome_says_why() -> None:
    assert ending_in_words("ended", "cycles_used_up") == "All cycles are used up"
    assert ending_in_words("killed", "") == "It was killed"
    assert ending_in_words("", "") == "The end was not recorded"


def test_news_is_a_sentence_for_every_status() -> None:
    assert run_status("succeeded").news == "The run succeeded."
    assert run_status("odd").news == "The run is odd."
    assert len({run_status(status).news for status in (*RunStatus, WAITING)}) == len(RunStatus) + 1


def test_totals_name_repairs_only_if_there_are_any() -> None:
    assert turns_in_words({"turns": 8, "repairs": 1, "seconds": 6.8}) == "8 (1 repair) in 6.8 s"
    assert turns_in_words({}) == "0 in 0.0 s"
    assert tokens_in_words(75_878, 1_419) == "75,878 in, 1,419 out"
