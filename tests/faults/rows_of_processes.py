"""Faults of Codex's processes: as they start, work and end."""

from __future__ import annotations

from tests.faults.row import CLIENT, DISTURBED, FAULTS, RESUME, Row, on_the_wire, played, started

PROCESS_ROWS = (
    Row(
        "bad -c, unknown provider, CODEX_HOME missing",
        "the first Error line is shown",
        "start_failed",
        started("bad -c", "unknown provider", "CODEX_HOME missing"),
    ),
    Row("broken config.toml", "both answers are looked at", "start_failed", started("broken config.toml")),
    Row(
        "no login",
        "found out before there is a run, with the ways out",
        "",
        ("test_login.py::test_missing_login_spends_nothing_and_lists_solutions",),
    ),
    Row(
        "no app-server, a start that is lost",
        "three tries where no reason is given",
        "start_failed",
        (*started("no app-server"), f"{FAULTS}process_that_does_not_start_is_started_again"),
    ),
    Row(
        "CODEX_HOME read-only, disk full at the start",
        "both the home and the run's folder are written to before anything starts",
        "",
        (
            "faults/test_start.py::test_unwritable_home_is_found_before_anything_starts",
            "test_bad_surroundings.py::test_unwritable_codex_home_is_reported_by_run_and_doctor",
            "test_bad_surroundings.py::test_full_disk_at_start_hides_no_earlier_run",
        ),
    ),
    Row(
        "disk fills later",
        "the lost conversation is told; resume goes on with a new one",
        "",
        (
            on_the_wire("unsaved_conversation_is_reported_and_run_continues"),
            "test_bad_surroundings.py::test_disk_that_fills_in_the_middle_of_a_run_loses_nothing",
        ),
    ),
    Row(
        "8 starts on one CODEX_HOME",
        "a home a process; in the user's, one starts alone",
        "",
        ("test_login.py::test_roles_share_user_home_and_first_process_starts_alone",),
    ),
    Row(
        "kill -9 of the child mid-turn",
        "restart, thread/resume, three counted tries",
        "crashed",
        (
            *played("kill -9 of the child mid-turn"),
            f"{CLIENT}killed_child_is_a_crash_and_next_client_resumes",
            f"{DISTURBED}aborted_turn_is_a_crash_and_next_process_retries_it",
        ),
    ),
    Row(
        "SIGSTOP, hung child",
        "a deadline on every wait; killed and replaced",
        "stalled",
        (
            *played("SIGSTOP of the child mid-turn"),
            f"{CLIENT}frozen_child_stalls_and_is_replaced",
            f"{RESUME}processes_that_do_not_react_are_no_reason_to_stay",
        ),
    ),
    Row(
        "child stopped, pipe full (300 kB prompt)",
        "a deadline for the write; killed before stdin is closed; restart, thread/resume",
        "stalled",
        (
            *played("SIGSTOP of the child while its prompt is written"),
            "faults/test_played.py::test_process_stopped_during_prompt_write_is_replaced",
            f"{CLIENT}frozen_child_with_a_full_pipe_does_not_block_the_writer",
        ),
    ),
    Row("a turn without an end", "interrupted at its deadline, fails", "timed_out", played("a turn without an end")),
    Row(
        "Ctrl-C to the process group",
        "a session of its own; turns are interrupted, the state is written",
        "cancelled",
        (
            on_the_wire("each_process_is_out_of_reach_of_the_terminals_signals"),
            f"{RESUME}processes_that_do_not_react_are_no_reason_to_stay",
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
            "endurance/test_codex_proxy.py::test_end_of_its_input_ends_codex_and_it_has_codexs_exit_code",
            "endurance/test_codex_proxy.py::test_signal_reaches_codex_and_neither_stays",
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
)
