"""Faults of what is said between us and Codex."""

from __future__ import annotations

from tests.faults.row import CLIENT, DISTURBED, Row, on_the_wire

PROTOCOL_ROWS = (
    Row(
        "turn/interrupt leaves the command running",
        "background terminals are cleaned after every turn",
        "",
        (f"{CLIENT}a_command_of_a_finished_turn_does_not_live_on",),
    ),
    Row(
        "interrupt before turn/started",
        "not asked; the process is replaced",
        "stalled",
        (on_the_wire("a_turn_that_did_not_begin_is_not_interrupted_and_its_process_is_replaced"),),
    ),
    Row(
        "interrupt of an interrupted turn",
        "asked once, with a deadline, never after the end",
        "stalled",
        (
            on_the_wire("a_turn_is_interrupted_once_even_where_its_end_is_lost"),
            on_the_wire("a_turn_that_ended_is_not_interrupted"),
        ),
    ),
    Row(
        "turn/start while one is active",
        "one turn a thread at a time",
        "",
        (on_the_wire("no_turn_is_started_on_a_thread_before_the_last_one_has_ended"),),
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
            "limits/test_texts.py::test_an_answer_of_five_megabytes_is_kept_whole_and_handed_on_as_a_file",
            f"{CLIENT}a_prompt_over_the_limit_is_not_sent",
        ),
    ),
    Row(
        "200k deltas",
        "a bounded inbox; Codex waits, nothing is lost",
        "",
        (on_the_wire("more_deltas_than_there_is_room_for_are_waited_for_and_none_is_lost"),),
    ),
    Row(
        "a request that is never answered",
        "every one is answered; the unknown with an error",
        "",
        (
            f"{DISTURBED}what_codex_asks_that_we_do_not_know_is_refused",
            f"{DISTURBED}an_approval_that_is_lost_is_a_stall_and_the_thread_takes_the_next_turn",
            "codex/test_protocol.py::test_the_installed_server_asks_nothing_we_leave_without_an_answer",
        ),
    ),
    Row(
        "late or doubled turn/completed",
        "what another turn says is not this turn's",
        "",
        (
            f"{CLIENT}late_end_of_a_timed_out_turn_is_not_the_next_turns_answer",
            f"{DISTURBED}each_turn_has_its_own_answer_all_the_same",
        ),
    ),
    Row(
        "garbage on stdout",
        "kept in the log, passed over",
        "",
        (
            "codex/test_transport.py::test_a_line_that_is_no_message_is_logged_and_nothing_else",
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
            "codex/test_notifications.py::test_a_turn_that_a_newer_codex_ends_in_a_way_of_its_own_has_failed_and_says_so",
            "codex/test_protocol.py::test_every_class_of_error_of_the_installed_server_has_a_row_of_its_own",
        ),
    ),
    Row(
        "answers of another shape",
        "a refused turn, a failed start",
        "refused",
        (
            "codex/test_transport.py::test_a_turn_of_a_shape_we_do_not_know_is_refused",
            "codex/test_transport.py::test_a_thread_of_a_shape_we_do_not_know_is_a_failed_start",
            "codex/test_transport.py::test_a_refusal_of_any_shape_is_a_refusal",
        ),
    ),
)
