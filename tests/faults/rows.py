"""Every known fault of Codex and its surroundings: what we do about it, what it is called, and the tests that hold it.

The list is whole here; `test_rows` sees to it that every test it names is there, and no fault that is played missing.
``outcome`` is empty where the fault ends no turn.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    fault: str
    handling: str
    outcome: str
    tests: tuple[str, ...]


def played(*names: str) -> tuple[str, ...]:
    return tuple(f"faults/test_played.py::{PLAYED_TEST}[{name}]" for name in names)


def started(*names: str) -> tuple[str, ...]:
    return tuple(f"faults/test_start.py::{START_TEST}[{name}]" for name in names)


def on_the_wire(name: str) -> str:
    return f"faults/test_protocol.py::test_{name}"


PLAYED_TEST = "test_a_fault_has_one_word_everywhere_and_the_command_on_the_screen_goes_on"
START_TEST = "test_a_start_that_fails_says_why_and_costs_nothing"
CLIENT = "codex/test_client.py::test_"
DISTURBED = "codex/test_disturbed.py::test_"
FAULTS = "engine/test_faults.py::test_"
RESUME = "engine/test_resume.py::test_"

ROWS = (
    # The model provider.
    Row(
        "connection refused, DNS", "no endless retry of Codex; three tries", "unreachable", played("connection refused")
    ),
    Row(
        "accepts and sends nothing",
        "our own silence deadline, interrupt, three tries",
        "stalled",
        (
            *played("server accepts and sends nothing"),
            f"{CLIENT}unanswered_provider_is_a_stall_and_the_thread_takes_the_next_turn",
        ),
    ),
    Row("SSE stalls", "the same deadline, pings or not", "stalled", played("SSE stalls")),
    Row(
        "429",
        "our own pause, the provider's within a cap",
        "rate_limited",
        (
            *played("429"),
            "steps/test_remedies.py::test_a_provider_is_given_the_pause_it_asks_for_within_bounds",
            "steps/test_remedies.py::test_pauses_grow_and_differ",
        ),
    ),
    Row(
        "usage limit, insufficient quota",
        "the run parks, no retry is spent",
        "quota",
        (
            *played("usage limit", "insufficient quota"),
            f"{FAULTS}a_usage_limit_parks_the_run_until_it_begins_anew",
            f"{FAULTS}resume_can_wait_for_that",
            f"{FAULTS}waiting_for_nobody_knows_what_is_refused",
        ),
    ),
    Row(
        "500",
        "no retries of Codex, three counted tries",
        "provider_error",
        (
            *played("500"),
            "codex/test_settings.py::test_trying_again_is_left_to_us_where_the_provider_is_the_users_own",
        ),
    ),
    Row("503 overloaded", "three counted tries", "overloaded", played("503 overloaded")),
    Row("401", "fails at once, with the way to log in", "unauthorized", played("401")),
    Row("other 4xx", "fails at once", "bad_request", played("400", "404")),
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
            f"{FAULTS}a_full_conversation_goes_on_in_a_new_one_that_is_told_what_was_handed_over",
        ),
    ),
    Row(
        "empty answer",
        "no success: repair turns",
        "empty_answer",
        (*played("empty answer"), f"{CLIENT}an_empty_answer_is_a_completed_turn_without_text"),
    ),
    Row("prose, JSON of another shape", "repair turns", "invalid_reply", played("prose instead of JSON")),
    # The process.
    Row(
        "kill -9 of the child mid-turn",
        "restart, thread/resume, three counted tries",
        "crashed",
        (
            *played("kill -9 of the child mid-turn"),
            f"{CLIENT}a_killed_child_is_a_crash_and_the_next_client_has_its_thread",
            f"{DISTURBED}a_turn_that_breaks_off_is_a_crash_and_the_next_process_takes_it",
        ),
    ),
    Row(
        "SIGSTOP, hung child",
        "a deadline on every wait; killed and replaced",
        "stalled",
        (
            *played("SIGSTOP of the child mid-turn"),
            f"{CLIENT}a_frozen_child_stalls_and_is_replaced",
            f"{RESUME}processes_that_do_not_react_are_no_reason_to_stay",
        ),
    ),
    Row(
        "child stopped, pipe full (300 kB prompt)",
        "a deadline for the write; killed before stdin is closed",
        "stalled",
        (f"{CLIENT}a_frozen_child_with_a_full_pipe_does_not_block_the_writer",),
    ),
    Row("a turn without an end", "interrupted at its deadline, fails", "timed_out", played("a turn without an end")),
    # The start.
    Row(
        "bad -c, unknown provider, CODEX_HOME missing or a file",
        "the first Error line is shown",
        "start_failed",
        started("bad -c", "unknown provider", "CODEX_HOME missing", "CODEX_HOME a file"),
    ),
    Row("broken config.toml", "both answers are looked at", "start_failed", started("broken config.toml")),
    Row("no login", "found out before any turn, with the ways out", "not_logged_in", started("no login")),
    Row(
        "no app-server, a start that is lost",
        "three tries where no reason is given",
        "start_failed",
        (*started("no app-server"), f"{FAULTS}a_process_that_does_not_start_is_started_again"),
    ),
    Row(
        "CODEX_HOME read-only, disk full at the start",
        "the first Error line; a run's own folder is tried first",
        "start_failed",
        (
            *started("CODEX_HOME read-only"),
            "test_bad_surroundings.py::test_a_full_disk_at_the_start_costs_nothing_and_hides_no_earlier_run",
        ),
    ),
    Row(
        "disk fills later",
        "the lost conversation is told; resume goes on with a new one",
        "",
        (
            on_the_wire("a_conversation_that_codex_cannot_save_is_told_and_the_run_goes_on_without_it"),
            "test_bad_surroundings.py::test_a_disk_that_fills_in_the_middle_of_a_run_loses_nothing",
        ),
    ),
    Row(
        "8 starts on one CODEX_HOME",
        "a home a process; in the user's, one starts alone",
        "",
        ("test_login.py::test_roles_share_the_users_home_and_the_first_process_starts_alone",),
    ),
    # The end.
    Row(
        "Ctrl-C to the process group",
        "a session of its own; turns are interrupted, the state is written",
        "cancelled",
        (
            on_the_wire("each_process_is_out_of_reach_of_the_terminals_signals"),
            f"{RESUME}after_a_stop_signal",
            f"{CLIENT}cancel_interrupts_the_turn_and_every_later_one",
        ),
    ),
    Row(
        "parent killed",
        "the children leave at EOF; resume reaps the rest",
        "killed",
        (
            f"{RESUME}after_kill_nine_in_the_middle_of_a_turn",
            "engine/test_left_over.py::test_what_a_killed_run_left_ends_when_it_is_resumed",
        ),
    ),
    Row(
        "stdin EOF, SIGTERM",
        "the first steps of the way down",
        "",
        (
            "chaos/test_proxy.py::test_the_end_of_its_input_ends_codex_and_it_has_codexs_exit_code",
            "chaos/test_proxy.py::test_a_signal_reaches_codex_and_neither_stays",
        ),
    ),
    Row(
        "kill -9 with a tool running",
        "what is below a process is known before it is ended",
        "",
        (
            f"{CLIENT}nothing_is_left_after_stop_even_with_a_command_running",
            "engine/test_left_over.py::test_what_a_roles_command_left_running_ends_with_the_run",
        ),
    ),
    # The protocol.
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
        "not sent",
        "prompt_too_long",
        (*played("prompt over the limit"), f"{CLIENT}a_prompt_over_the_limit_is_not_sent"),
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
            "codex/test_events.py::test_messages_of_any_shape_are_events_or_nothing",
            "codex/test_events.py::test_a_turn_that_a_newer_codex_ends_in_a_way_of_its_own_has_failed_and_says_so",
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
