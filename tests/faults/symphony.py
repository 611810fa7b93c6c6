"""What openai/symphony's SPEC (§17.5) asks of a client of the app-server, in our words, and the tests that hold it."""

from __future__ import annotations

from collections.abc import Mapping

CLIENT = "codex/test_client.py::test_"
DISTURBED = "codex/test_disturbed.py::test_"
PROTOCOL = "codex/test_protocol.py::test_"
TRANSPORT = "codex/test_transport.py::test_"
PLAYED = "faults/test_played.py::test_fault_has_one_word_everywhere_and_next_command_works"

MATRIX: Mapping[str, tuple[str, ...]] = {
    "the program that is named is started, and works in the workspace": (
        "codex/test_locator.py::test_flag_beats_environment_beats_bundle",
        f"{CLIENT}resumed_thread_writes_only_in_the_given_folder",
    ),
    "the handshake: initialize, initialized, thread, turn": (f"{PROTOCOL}every_outgoing_message_fits_the_schema",),
    "who we are and what we can is told as the protocol wants it": (
        f"{PROTOCOL}every_outgoing_message_fits_the_schema",
    ),
    "sandbox and approval policy are those of the role": (
        f"{CLIENT}approvals_are_answered_as_the_policy_says",
        f"{CLIENT}on_request_runs_in_the_sandbox_without_asking",
    ),
    "the ids of threads and turns are read, told and used": (
        "engine/test_cycles.py::test_every_outgoing_role_has_its_own_thread_and_wire_log",
        f"{TRANSPORT}turn_of_a_shape_we_do_not_know_is_refused",
    ),
    "a request without an answer is given up": (
        f"{DISTURBED}turn_with_lost_answer_is_not_a_success_and_is_retried",
        f"{CLIENT}frozen_child_stalls_and_is_replaced",
    ),
    "a turn that takes too long is given up": (
        f"{CLIENT}turn_longer_than_its_deadline_is_timed_out",
        f"{PLAYED}[a turn without an end]",
    ),
    "a turn that says nothing is given up": (f"{PLAYED}[server accepts and sends nothing]",),
    "lines that come in pieces are put together": (
        f"{TRANSPORT}line_of_megabytes_in_pieces_is_one_message",
        f"{DISTURBED}each_turn_has_its_own_answer_all_the_same",
    ),
    "stderr is no part of the protocol, and is kept": ("faults/test_symphony.py::test_stderr_is_kept_apart",),
    "what is no JSON breaks nothing": (f"{TRANSPORT}invalid_line_is_logged_and_has_no_other_effect",),
    "commands and file changes are approved as the role says": (
        f"{CLIENT}approvals_are_answered_as_the_policy_says",
        "steps/test_containment.py::test_escalation_is_logged_whatever_was_decided",
    ),
    "a tool that there is not is refused, and the turn goes on": (
        "faults/test_symphony.py::test_unknown_tool_is_refused_and_turn_continues",
        "engine/test_tools.py::test_wrong_arguments_are_reported_to_model",
    ),
    "a question to a person is answered or skipped, never waited for without end": (
        "engine/test_review.py::test_question_within_turn_is_skipped_if_nobody_is_available",
        "engine/test_review.py::test_question_within_turn_is_answered_by_available_person",
    ),
    "tokens and limits of the rate are read": (
        f"{CLIENT}answer_deltas_and_tokens_of_each_turn",
        f"{DISTURBED}unreported_tokens_are_counted_with_the_next_turn",
        "engine/test_faults.py::test_usage_limit_parks_the_run_until_it_resets",
    ),
    "what a later version words otherwise is borne": (
        f"{DISTURBED}each_turn_has_its_own_answer_all_the_same",
        "codex/test_notifications.py::test_messages_of_any_shape_are_events_or_nothing",
        f"{DISTURBED}what_codex_asks_that_we_do_not_know_is_refused",
    ),
    "tools of ours are offered when the thread is started": (
        f"{PROTOCOL}every_outgoing_message_fits_the_schema",
        "engine/test_tools.py::test_resumed_role_still_has_its_tools",
    ),
    "a tool of ours that fails says so to the model": (
        "engine/test_tools.py::test_installed_tool_is_called_and_may_fail",
    ),
}
