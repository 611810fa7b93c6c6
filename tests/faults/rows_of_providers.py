"""Faults of the model provider, and of what it answers."""

from __future__ import annotations

from tests.faults.row import CLIENT, FAULTS, Row, played

PROVIDER_ROWS = (
    Row(
        "connection refused, DNS", "no endless retry of Codex; three tries", "unreachable", played("connection refused")
    ),
    Row(
        "accepts and sends nothing",
        "our own silence deadline, interrupt, three tries",
        "stalled",
        (
            *played("server accepts and sends nothing"),
            f"{CLIENT}unresponsive_provider_is_a_stall_and_next_turn_runs",
        ),
    ),
    Row("SSE stalls", "the same deadline, pings or not", "stalled", played("SSE stalls")),
    Row(
        "429",
        "our own pause, the provider's within a cap",
        "rate_limited",
        (
            *played("429"),
            "steps/test_recovery.py::test_provider_is_given_the_pause_it_asks_for_within_bounds",
            "steps/test_recovery.py::test_pauses_grow_and_differ",
        ),
    ),
    Row(
        "usage limit, insufficient quota",
        "the run parks, no retry is spent",
        "quota",
        (
            *played("usage limit", "insufficient quota"),
            f"{FAULTS}usage_limit_parks_the_run_until_it_resets",
            f"{FAULTS}resume_can_wait_for_that",
        ),
    ),
    Row(
        "500",
        "no retries of Codex, three counted tries",
        "provider_error",
        (
            *played("500"),
            "codex/test_codex_settings.py::test_codex_retries_of_user_defined_provider_are_disabled",
        ),
    ),
    Row("503 overloaded", "three counted tries", "overloaded", played("503 overloaded")),
    Row("401", "fails at once, with the way to log in", "unauthorized", played("401")),
    Row(
        "a replay has no recorded answer",
        "fails at once, with the diff of the prompts",
        "not_as_recorded",
        ("extensions/replays/test_record_and_replay.py::test_changed_prompt_fails_its_turn_and_shows_the_difference",),
    ),
    Row(
        "402",
        "the run parks until the account has credit",
        "quota",
        (f"{CLIENT}provider_faults_have_reasons",),
    ),
    Row("404", "fails at once", "not_found", played("404")),
    Row("other 4xx", "fails at once", "bad_request", played("400")),
    Row(
        "drop, EOF, bad JSON, HTML with 200",
        "three tries",
        "provider_error",
        played("drop", "EOF before the first byte", "bad JSON", "HTML with 200"),
    ),
    Row(
        "context_length_exceeded",
        "a new thread with the handoff; at a first prompt it fails",
        "context_full",
        (
            *played("context length exceeded"),
            f"{FAULTS}full_conversation_continues_in_new_thread",
        ),
    ),
    Row(
        "empty answer",
        "no success: repair turns",
        "empty_answer",
        (*played("empty answer"), f"{CLIENT}empty_answer_is_a_completed_turn_without_text"),
    ),
    Row("prose, JSON of another shape", "repair turns", "invalid_reply", played("prose instead of JSON")),
)
