"""How runs, turns and tests are doing: one word and one tone each, wherever they are shown."""

from __future__ import annotations

import pytest

from codex_multi_role.errors import RunStatus
from codex_multi_role.presentation.outcome import (
    BAD,
    BUSY,
    GOOD,
    IDLE,
    WAITING,
    WARN,
    ending_in_words,
    has_failed,
    run_status,
    tokens_in_words,
    tone_of,
    turns_in_words,
)


def test_each_status_of_a_run_has_its_tone() -> None:
    tones = {status: run_status(status).tone for status in (*RunStatus, WAITING)}
    assert {status for status, tone in tones.items() if tone == GOOD} == {"succeeded"}
    assert {status for status, tone in tones.items() if tone == BAD} == {"failed", "unreadable"}
    assert {status for status, tone in tones.items() if tone == BUSY} == {"running"}
    cut_short = {"ended", "parked", "interrupted", "killed", "waiting"}  # cycles that are used up are no error
    assert {status for status, tone in tones.items() if tone == WARN} == cut_short
    assert {status for status in tones if has_failed(status)} == {"ended", "failed", "unreadable"}


@pytest.mark.parametrize(
    ("status", "tone"),
    [
        *(("completed", GOOD), ("passed", GOOD), ("COMPLETED", GOOD), ("timed_out", BAD), ("could not run", BAD)),
        *(("skipped", WARN), ("working", BUSY), ("IN_PROGRESS", BUSY), ("no tests", IDLE), ("PENDING", IDLE)),
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
