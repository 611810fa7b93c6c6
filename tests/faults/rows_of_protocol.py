"""Faults of the messages between us and Codex."""

from __future__ import annotations

from tests.faults.row import CLIENT, DISTURBED, Row, on_the_wire

PROTOCOL_ROWS = (
    Row(
        "turn/interrupt leaves the command running",
        "background terminals are cleaned after every turn",
        "",
        (f"{CLIENT}command_of_a_finished_turn_does_not_live_on",),
    ),
    Row(
        "interrupt before turn/started",
        "not asked; the process is replaced",
        "stalled",
        (on_the_wire("turn_that_did_not_start_is_not_interrupted"),),
    ),
    Row(
        "interrupt of an interrupted turn",
        "asked once, with a deadline, never after the end",
        "stalled",
        (
            on_the_wire("turn_is_interrupted_once_even_where_its_end_is_lost"),
            on_the_wire("turn_that_ended_is_not_interrupted"),
        ),
    ),
    Row(
        "turn/start while one is active",
        "one turn a thread at a time",
        "",
        (on_the_wire("turn_starts_only_after_previous_turn_of_thread_ended"),),
    ),
    Row(
        "lone surrogate in a prompt",
        "sent replaced",
        "",
        (f"{CLIENT}lone_surrogates_in_a_prompt_reach_codex_replaced",),
    ),
    Row(
        "prompt over 1,048,576 characters",
        "both ends are sent, the whole is a file to read; never sent whole",
        "",
        (
            "limits/test_texts.py::test_five_megabyte_answer_is_kept_and_passed_on_as_file",
            f"{CLIENT}prompt_over_the_limit_is_not_sent",
        ),
    ),
    Row(
        "200k deltas",
        "a bounded inbox; Codex waits, nothing is lost",
        "",
        (on_the_wire("full_inbox_waits_for_room_and_loses_no_deltas"),),
    ),
    Row(
        "a request that is never answered",
        "every one is answered; the unknown with an error",
        "",
        (
            f"{DISTURBED}what_codex_asks_that_we_do_not_know_is_refused",
            f"{DISTURBED}lost_approval_is_a_stall_and_next_turn_succeeds",
            "codex/test_protocol.py::test_every_request_of_installed_server_gets_a_reply",
        ),
    ),
    Row(
        "late or doubled turn/completed",
        "what another turn says is not this turn's",
        "",
        (
            f"{CLIENT}late_end_of_timed_out_turn_is_not_the_next_answer",
            f"{DISTURBED}each_turn_has_its_own_answer_all_the_same",
        ),
    ),
    Row(
        "garbage on stdout",
        "kept in the log, passed over",
        "",
        (
            "codex/test_transport.py::test_invalid_line_is_logged_and_has_no_other_effect",
            f"{DISTURBED}each_turn_has_its_own_answer_all_the_same",
        ),
    ),
    Row(
        "methods, words and items of a newer Codex",
        "passed over; an unknown end of a turn is a failure",
        "failed",
        (
            f"{DISTURBED}each_turn_has_its_own_answer_all_the_same",
            "codex/test_notifications.py::test_messages_of_any_shape_are_events_or_nothing",
            "codex/test_notifications.py::test_unknown_turn_status_is_reported_as_a_failure",
            "codex/test_protocol.py::test_every_error_class_of_installed_server_is_classified",
        ),
    ),
    Row(
        "answers of another shape",
        "a refused turn, a failed start",
        "refused",
        (
            "codex/test_transport.py::test_turn_of_a_shape_we_do_not_know_is_refused",
            "codex/test_transport.py::test_thread_of_a_shape_we_do_not_know_is_a_failed_start",
            "codex/test_transport.py::test_refusal_of_any_shape_is_a_refusal",
        ),
    ),
)
