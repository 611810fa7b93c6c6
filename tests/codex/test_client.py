"""A role's turns on the real binary: answers, deadlines, approvals, crashes.

Costs: a Codex process for each kind of fault.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.client import RoleClient, _start_failures
from codex_multi_role.codex.codex_settings import without_user_servers
from codex_multi_role.codex.failures import Remedy
from codex_multi_role.codex.home import copy_threads
from codex_multi_role.codex.incoming import Message
from codex_multi_role.codex.notifications import ItemCompleted, ItemStarted
from codex_multi_role.codex.running_turn import ApprovalAnswered, Observed, TurnDeadlines
from codex_multi_role.codex.transport import Cancelled
from codex_multi_role.codex.turn_outcome import ITEMS_TEXT_LIMIT, LONGEST_PROMPT, TurnOutcome, TurnRecorder
from codex_multi_role.codex.usage import TokensUsed
from codex_multi_role.errors import TOO_MANY_FILES, CodexCrashed, CodexNotLoggedIn, CodexStartFailed
from tests.support.codex import ANSWER, PATCH, PATIENT, ROLE, Harness, request, take, wire
from tests.support.teams import Record, read_lines
from tests.support.workspaces import write_program

pytestmark = pytest.mark.real

FAULTS: Sequence[tuple[dict[str, Any], str, Remedy]] = (
    ({"status": 429}, "rate_limited", Remedy.RETRY),
    ({"status": 429, "code": "usage_limit_reached"}, "quota", Remedy.PARK),
    ({"status": 500}, "provider_error", Remedy.RETRY),
    ({"status": 503, "code": "server_is_overloaded"}, "overloaded", Remedy.RETRY),
    ({"status": 401}, "unauthorized", Remedy.FAIL),
    ({"status": 400}, "bad_request", Remedy.FAIL),
    ({"drop": True}, "provider_error", Remedy.RETRY),
    ({"drop": True, "after_events": 0}, "provider_error", Remedy.RETRY),
    ({"garbage": "<html>"}, "provider_error", Remedy.RETRY),
    ({"garbage": 'data: {"type"\n\n'}, "provider_error", Remedy.RETRY),
    ({"code": "context_length_exceeded"}, "context_full", Remedy.FRESH_THREAD),
    ({"code": "insufficient_quota"}, "quota", Remedy.PARK),
    ({"code": "server_is_overloaded"}, "overloaded", Remedy.RETRY),
    ({"stall_seconds": 600}, "provider_error", Remedy.RETRY),
)
SHORT_STALLS = "model_providers.playbook.stream_idle_timeout_ms=700"
FULL = {"input_tokens": 1_000_000, "output_tokens": 5}
RUNS: Record = {"call": "exec_command", "arguments": {"cmd": "echo"}}
LONG_TEXT = "All in all. " * 5_000
ANSWERS: Mapping[str, Record] = {
    "one": {"json": {"summary": "one"}, "usage": {"input_tokens": 100, "output_tokens": 7}},
    "two": {"json": {"summary": "two"}, "usage": {"input_tokens": 100, "output_tokens": 7}},
    "long": {"text": LONG_TEXT, "deltas": 5_000},
    "empty": {"fault": {"empty": True}},
    "prompt": {"text": "{{ prompt }}"},
    "unfinished": RUNS,
    "crowded": {"steps": [{**RUNS, "usage": FULL}] * 2 + [{"text": "{{ prompt }} {{ tool_outputs | length }}"}]},
    **{str(fault): {"fault": fault} for fault, *_ in FAULTS},
}


@pytest.fixture(scope="module")
def one_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Harness, RoleClient]]:
    """A process for all turns of a role without rights, in any order: it answers what `asked` names."""
    with ExitStack() as stack:
        harness = Harness(tmp_path_factory.mktemp("role"), stack)
        yield harness, harness.client([*ANSWERS.values()], settings=(SHORT_STALLS,))


def asked(client: RoleClient, answer: str, **of_turn: Any) -> TurnOutcome:
    visit = [*ANSWERS].index(answer) + 1
    return client.run_turn(request(visit, **of_turn), PATIENT, lambda _: None)


def test_answer_deltas_and_tokens_of_each_turn(one_for_all: tuple[Harness, RoleClient]) -> None:
    for word in ("one", "two"):
        outcome = asked(one_for_all[1], word)
        assert (outcome.status, json.loads(outcome.text)) == ("completed", {"summary": word})
        assert outcome.delta_text == outcome.text
        assert (outcome.usage.input, outcome.usage.output) == (100, 7)
        assert word in outcome.items_text


def test_answer_in_many_deltas_is_whole_in_few_log_lines(one_for_all: tuple[Harness, RoleClient]) -> None:
    harness, client = one_for_all
    outcome = asked(client, "long")
    assert (outcome.status, outcome.text) == ("completed", LONG_TEXT)
    assert outcome.delta_text == outcome.text
    told = [message["params"] for message in wire(harness, "in") if message.get("method") == "item/agentMessage/delta"]
    said = [params["delta"] for params in told if params["turnId"] == outcome.turn_id]
    assert "".join(said) == outcome.text
    assert len(said) < 1_000


def test_empty_answer_is_a_completed_turn_without_text(one_for_all: tuple[Harness, RoleClient]) -> None:
    outcome = asked(one_for_all[1], "empty")
    assert (outcome.status, outcome.text) == ("completed", "")


def test_prompt_over_the_limit_is_not_sent(one_for_all: tuple[Harness, RoleClient]) -> None:
    harness, client = one_for_all
    before = wire(harness, "out")
    outcome = asked(client, "one", prompt="x" * (LONGEST_PROMPT + 1))
    assert (outcome.status, outcome.reason) == ("failed", "refused")
    assert "turn/start" not in [message.get("method") for message in wire(harness, "out")[len(before) :]]


def test_lone_surrogates_in_a_prompt_reach_codex_replaced(one_for_all: tuple[Harness, RoleClient]) -> None:
    outcome = asked(one_for_all[1], "prompt", prompt="a\ud800b")
    assert (outcome.status, outcome.text) == ("completed", "a?b")


@pytest.mark.parametrize(("fault", "reason", "remedy"), FAULTS)
def test_provider_faults_have_reasons(
    one_for_all: tuple[Harness, RoleClient], fault: dict[str, Any], reason: str, remedy: Remedy
) -> None:
    """And the process can do the next turn."""
    outcome = asked(one_for_all[1], str(fault))
    assert (outcome.status, outcome.reason, outcome.remedy) == ("failed", reason, remedy), outcome
    assert asked(one_for_all[1], "two").status == "completed"


def test_what_the_playbook_lacks_is_a_failure_not_worth_a_retry(one_for_all: tuple[Harness, RoleClient]) -> None:
    outcome = asked(one_for_all[1], "unfinished")
    assert (outcome.reason, outcome.remedy) == ("bad_request", Remedy.FAIL)
    assert "playbook test has no step 2 (the turn has 1)" in outcome.message


def test_compaction_in_the_middle_of_a_turn_loses_no_step(one_for_all: tuple[Harness, RoleClient]) -> None:
    outcome = asked(one_for_all[1], "crowded", prompt="the prompt")
    assert (outcome.compacted, outcome.text) == (True, "the prompt 2")


def test_patches_are_reported_once_each(harness: Harness) -> None:
    """A later patch does not repeat the earlier ones."""
    patches = [{"patch": f"*** Begin Patch\n*** Add File: {n}.txt\n+line\n*** End Patch"} for n in range(3)]
    client = harness.client([{"steps": [*patches, ANSWER]}], sandbox="workspace-write", approval_policy="never")
    assert take(client).status == "completed"
    told = [message.get("method") for message in wire(harness, "in") if "line" in json.dumps(message.get("params"))]
    assert set(told) == {"item/completed", "item/started"}


def test_account_of_items_has_a_bound() -> None:
    recorder = TurnRecorder()
    for number in range(1_000):
        recorder.add(ItemCompleted({"type": "agentMessage", "id": f"{number}", "text": "x" * 50_000}))
    account = recorder.outcome("completed", "", "").items_text
    assert ITEMS_TEXT_LIMIT < len(account) < ITEMS_TEXT_LIMIT + 50_000
    assert account.endswith("## Later items are only in events.jsonl\n")


def test_thread_keeps_its_effort_which_is_sent_only_to_change_it(harness: Harness) -> None:
    efforts = ["high", "high", "low"]
    first = harness.fleet([{"text": "ok"}])
    thread = first.client(ROLE).thread.id
    for visit, effort in enumerate(efforts, 1):
        first.client(ROLE).run_turn(request(visit, effort=effort), PATIENT, lambda _: None)
    first.stop()
    second = harness.client([{"text": "ok"}], thread_id=thread)
    second.run_turn(request(4, effort="low"), PATIENT, lambda _: None)
    sent = [message["params"] for message in wire(harness, "out") if message.get("method") == "turn/start"]
    assert [params.get("effort") for params in sent] == ["high", None, "low", "low"]  # resuming with a model drops it
    [rollout] = (harness.folder / "home/sessions").rglob(f"*{thread}.jsonl")
    used = [line["payload"]["effort"] for line in read_lines(rollout) if line["type"] == "turn_context"]
    assert used == [*efforts, "low"]


def test_forked_thread_remembers_and_counts_only_new_tokens(harness: Harness) -> None:
    """It remembers the original thread up to the given turn."""
    usage = {"input_tokens": 100, "output_tokens": 7}
    entries = [{"text": f"answer {number}", "usage": usage} for number in (1, 2, 3)]
    first = harness.fleet(entries)
    thread = first.client(ROLE).thread.id
    turns = [take(first.client(ROLE), visit).turn_id for visit in (1, 2)]
    first.stop()
    second = harness.client(entries, thread_id=thread, inherited={thread: turns[0]})
    assert (second.thread.resumed, second.thread.forgot) == (True, False)
    forked = second.thread.id
    second.use_thread(thread, str(harness.workspace))
    assert thread != forked == second.thread.id
    assert take(second, 3).usage.input == 100
    rollout = next((harness.folder / "home/sessions").rglob(f"*{forked}.jsonl")).read_text()
    assert "answer 3" in rollout
    assert thread in rollout


@pytest.mark.parametrize("last_turn", [pytest.param("", marks=pytest.mark.long), "no such turn"])
def test_unforkable_thread_starts_fresh_and_reports_the_loss(harness: Harness, last_turn: str) -> None:
    """`thread.forgot` is true until a turn is completed."""
    first = harness.fleet([ANSWER])
    thread = first.client(ROLE).thread.id
    take(first.client(ROLE))
    first.stop()
    second = harness.client([ANSWER], thread_id=thread, inherited={thread: last_turn})
    assert (second.thread.resumed, second.thread.forgot) == (False, True)
    take(second)
    assert not second.thread.forgot


def test_threads_copied_to_another_home_can_be_forked(harness: Harness, tmp_path: Path) -> None:
    """This also works while a live process writes to the original, so that the copy ends in half a line."""
    entries = [{"text": f"answer {number}"} for number in (1, 2)]
    first = harness.client(entries)
    turn = take(first).turn_id
    rollout = next((harness.folder / "home/sessions").rglob(f"*{first.thread.id}.jsonl"))
    home = tmp_path / "other"
    copy_threads(harness.folder / "home", home)
    with (home / rollout.relative_to(harness.folder / "home")).open("a") as copy:
        copy.write('{"timestamp": "2026-01-31T10:1')  # as a copy finds it that is made while Codex writes
    second = harness.client(entries, thread_id=first.thread.id, inherited={first.thread.id: turn}, home=home)
    assert second.thread.resumed
    assert take(second, 2).text == "answer 2"


def test_thread_in_shared_home_forks_while_its_process_runs(harness: Harness) -> None:
    """The original process continues on its own thread."""
    entries = [{"text": f"answer {number}"} for number in (1, 2)]
    first = harness.client(entries)
    thread, turn = first.thread.id, take(first).turn_id
    second = harness.client(entries, thread_id=thread, inherited={thread: turn})
    assert second.thread.resumed
    assert [take(each, 2).text for each in (first, second)] == ["answer 2"] * 2
    assert (first.thread.id, second.thread.id != thread) == (thread, True)


def test_resumed_thread_writes_only_in_the_given_folder(harness: Harness) -> None:
    """Regression (found by endurance tests): a repair turn of a resumed run, asked in a copy of the workspace, wrote to
    the workspace.
    """
    copy, workspace = harness.folder / "copy", harness.workspace
    copy.mkdir()
    command = {"call": "exec_command", "arguments": {"cmd": f"touch here.txt; touch {workspace}/there.txt"}}
    entries = [{"steps": [command, ANSWER]}]
    closed = ("sandbox_workspace_write={exclude_slash_tmp=true, exclude_tmpdir_env_var=true}",)
    first = harness.fleet(entries, settings=closed)
    thread = first.client(ROLE).thread.id
    take(first.client(ROLE))
    first.stop()
    options = {"sandbox": "workspace-write", "approval_policy": "on-request", "settings": closed}
    client = harness.client(entries, thread_id=thread, **options)
    client.use_thread(thread, str(copy))
    take(client)
    assert [path.name for path in (*copy.iterdir(), *workspace.iterdir())] == ["here.txt"]
    client.use_thread(thread, str(workspace))
    take(client)
    assert sorted(path.name for path in workspace.iterdir()) == ["here.txt", "there.txt"]


def test_lost_thread_is_started_afresh_and_says_so(harness: Harness) -> None:
    client = harness.client([ANSWER], thread_id="01a1fb7f-a246-7ff1-8e7a-a9797084f448")
    assert client.thread.forgot
    take(client)
    assert not client.thread.forgot


def test_unresponsive_provider_is_a_stall_and_next_turn_runs(harness: Harness) -> None:
    """The next turn uses the same thread."""
    client = harness.client([{"fault": {"stall_seconds": 300}}, ANSWER])
    outcome = take(client, 1, TurnDeadlines(idle=0.8, turn=8))
    assert (outcome.status, outcome.reason, outcome.remedy) == ("stalled", "stalled", Remedy.RETRY)
    assert take(client, 2).status == "completed"
    assert not client.broken


def test_turn_longer_than_its_deadline_is_timed_out(harness: Harness) -> None:
    steps = [{"call": "exec_command", "arguments": {"cmd": "sleep 0.2"}, "delay_seconds": 0.3}] * 20
    client = harness.client([{"steps": [*steps, ANSWER]}, ANSWER])
    outcome = take(client, 1, TurnDeadlines(idle=30, turn=1))
    assert (outcome.status, outcome.remedy) == ("timed_out", Remedy.FAIL)
    assert take(client, 2).status == "completed"


def at_the_end(client: RoleClient, monkeypatch: pytest.MonkeyPatch, deed: Callable[[], None]) -> None:
    """Have ``deed`` done between the arrival of a turn's end and anybody's look at it."""
    receive = client._transport.next_message

    def next_message(timeout_seconds: float) -> Message | Cancelled | None:
        message = receive(timeout_seconds)
        if isinstance(message, dict) and message.get("method") == "turn/completed":
            deed()
        return message

    monkeypatch.setattr(client._transport, "next_message", next_message)


def test_turn_that_ended_at_its_deadline_counts(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is paid for, and its answer is whole."""
    client = harness.client([ANSWER])
    shift = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + shift[0])
    monkeypatch.setattr("codex_multi_role.codex.running_turn.time", clock)
    at_the_end(client, monkeypatch, lambda: shift.append(shift.pop() + 3600))
    outcome = take(client)
    assert (outcome.status, json.loads(outcome.text)) == ("completed", {"summary": "fine"})
    assert client.broken == ""


def test_turn_that_ended_as_it_was_cancelled_counts(harness: Harness) -> None:
    client = harness.client([{**ANSWER, "usage": {"input_tokens": 100, "output_tokens": 7}}])

    def cancel(event: Observed) -> None:
        if isinstance(event, TokensUsed):
            end = time.monotonic() + 30
            while "turn/completed" not in str(client._transport._inbox.queue) and time.monotonic() < end:
                time.sleep(0.01)
            client.cancel()

    outcome = client.run_turn(request(), PATIENT, cancel)
    assert (outcome.status, json.loads(outcome.text)) == ("completed", {"summary": "fine"})


def test_late_end_of_timed_out_turn_is_not_the_next_answer(harness: Harness) -> None:
    """In the original program, the late ``turn/completed`` ended the next turn with the wrong text."""
    client = harness.client([{"json": {"summary": "late"}, "delay_seconds": 1.4}, {"json": {"summary": "mine"}}])
    assert take(client, 1, TurnDeadlines(idle=0.8, turn=60)).status == "stalled"
    assert json.loads(take(client, 2).text) == {"summary": "mine"}


def test_killed_child_is_a_crash_and_next_client_resumes(harness: Harness) -> None:
    """The next client resumes the same thread."""
    fleet = harness.fleet([ANSWER])
    client = fleet.client(ROLE)
    take(client)
    os.kill(client.pid, signal.SIGKILL)
    outcome = take(client, 2)
    assert (outcome.status, outcome.remedy) == ("crashed", Remedy.RETRY)
    again = fleet.client(ROLE)
    assert again.thread.resumed
    assert take(again, 2).status == "completed"
    assert len(harness.restarts) == 1


def test_frozen_child_stalls_and_is_replaced(harness: Harness) -> None:
    fleet = harness.fleet([ANSWER])
    client = fleet.client(ROLE)
    take(client)
    os.kill(client.pid, signal.SIGSTOP)
    assert take(client, 2, TurnDeadlines(idle=0.5, turn=60)).status == "stalled"
    assert take(fleet.client(ROLE), 2).status == "completed"
    assert not psutil.pid_exists(client.pid)


def test_frozen_child_with_a_full_pipe_does_not_block_the_writer(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codex_multi_role.codex.child.WRITE_SECONDS", 0.3)
    client = harness.client([ANSWER])
    os.kill(client.pid, signal.SIGSTOP)
    os.waitpid(client.pid, os.WUNTRACED)  # a signal stops its threads one by one; until then they read on
    outcome = client.run_turn(request(prompt="x" * 300_000), PATIENT, lambda _: None)
    assert outcome.status == "stalled"
    assert "accepted no input" in client.broken


def test_cancel_interrupts_the_turn_and_every_later_one(harness: Harness) -> None:
    client = harness.client([{"json": {"summary": "slow"}, "delay_seconds": 60}])
    threading.Timer(0.3, client.cancel).start()
    assert (outcome := take(client)).reason == "cancelled", outcome
    assert take(client, 2).message == "the run was stopped before this turn"


def approvals_seen(client: RoleClient, visit: int = 1) -> tuple[TurnOutcome, list[ApprovalAnswered]]:
    seen: list[Observed] = []
    outcome = client.run_turn(request(visit), PATIENT, seen.append)
    return outcome, [event for event in seen if isinstance(event, ApprovalAnswered)]


COMMAND = {"steps": [{"call": "exec_command", "arguments": {"cmd": "echo ran > out.txt"}}, ANSWER]}


@pytest.mark.parametrize("allowed", ["commands", "file_changes"])
def test_approvals_are_answered_as_the_policy_says(harness: Harness, allowed: str) -> None:
    """What is not allowed is declined, and its record names the command or the changed paths."""
    policy = ApprovalPolicy(**{allowed: True})
    client = harness.client([COMMAND, PATCH], sandbox="workspace-write", approvals=policy)
    for visit, kind, named in ((1, "commands", "echo ran"), (2, "file_changes", "new.txt")):
        outcome, seen = approvals_seen(client, visit)
        decision = "accept" if kind == allowed else "decline"
        assert (outcome.status, [each.decision for each in seen]) == ("completed", [decision])
        assert named in seen[0].detail
        asked = [message for message in wire(harness, "in") if "id" in message and "method" in message][-1]
        replies = [message for message in wire(harness, "out") if message.get("id") == asked["id"]]
        assert replies[-1]["result"] == {"decision": decision}
    made = {path.name: path.read_text() for path in harness.workspace.iterdir()}
    assert made == ({"out.txt": "ran\n"} if allowed == "commands" else {"new.txt": "hello\n"})


def test_on_request_runs_in_the_sandbox_without_asking(harness: Harness) -> None:
    _, seen = approvals_seen(harness.client([COMMAND], sandbox="workspace-write", approval_policy="on-request"))
    assert seen == []
    assert (harness.workspace / "out.txt").exists()


@pytest.mark.parametrize("settings", [(), ('shell_environment_policy={set={OTHER="1"}}',)])
def test_tool_commands_see_no_secret_of_our_environment(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, settings: tuple[str, ...]
) -> None:
    """Nor the value of a variable whose name tells nothing."""
    monkeypatch.setenv("MY_SERVICE_API_KEY", "very-secret-value")
    monkeypatch.setenv("MY_SERVICE", "very-secret-value")
    command = {"steps": [{"call": "exec_command", "arguments": {"cmd": "env"}}, ANSWER]}
    options = {"sandbox": "workspace-write", "approval_policy": "on-request", "settings": settings}
    outcome = take(harness.client([command], **options))
    assert "PATH=" in outcome.items_text
    assert "very-secret-value" not in outcome.items_text


def below(client: RoleClient, argument: str) -> list[psutil.Process]:
    """The live processes below the client's, with this argument on their command line."""
    found = []
    for process in psutil.Process(client.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if argument in " ".join(process.cmdline()):
                found.append(process)
    return found


def test_command_of_a_finished_turn_does_not_live_on(harness: Harness) -> None:
    command = {"call": "exec_command", "arguments": {"cmd": "sleep 300", "yield_time_ms": 250}}
    client = harness.client([{"steps": [command, ANSWER]}], sandbox="workspace-write", approval_policy="on-request")
    started: list[Observed] = []
    client.run_turn(request(), PATIENT, started.append)
    assert any(isinstance(event, ItemStarted) for event in started)
    sleepers = below(client, "300")
    psutil.wait_procs(sleepers, timeout=5)
    assert not below(client, "300")


def test_nothing_is_left_after_stop_even_with_a_command_running(harness: Harness) -> None:
    command = {"call": "exec_command", "arguments": {"cmd": "sleep 301", "yield_time_ms": 60_000}}
    fleet = harness.fleet([{"steps": [command, ANSWER]}], sandbox="danger-full-access", approval_policy="never")
    client = fleet.client(ROLE)
    turn = threading.Thread(target=take, args=(client,))
    turn.start()
    for _ in range(100):
        if found := below(client, "301"):
            break
        threading.Event().wait(0.1)
    assert found
    fleet.stop()
    turn.join(20)
    assert not [each for each in found if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def test_child_that_cannot_start_says_why(harness: Harness) -> None:
    with pytest.raises(CodexStartFailed, match=r"no_such_provider"):
        harness.client([ANSWER], settings=('model_provider="no_such_provider"',))


def test_binary_that_is_not_an_app_server_fails_to_start(harness: Harness) -> None:
    with pytest.raises(CodexStartFailed, match="ended with exit code"):
        harness.client([ANSWER], codex=Path("/bin/false"))


def test_binary_that_closes_stdin_reports_its_last_error(harness: Harness) -> None:
    """The error shows the exit code and what the binary wrote to standard error before it ended."""
    text = "#!/bin/sh\nexec <&-\nsleep 0.2\necho 'Error: no ears' >&2\nexit 7\n"
    program = write_program(harness.folder / "deaf", text)
    with pytest.raises(CodexStartFailed, match=r"ended with exit code 7.*Error: no ears"):
        harness.client([ANSWER], codex=program)


def test_no_login_is_found_out_before_any_turn(harness: Harness) -> None:
    with pytest.raises(CodexNotLoggedIn) as caught:
        harness.client([ANSWER], settings=('model_provider="openai"',))
    assert all(way in caught.value.hint for way in ("codex login", "API key", "model_provider", "--playbook"))


def test_servers_and_hooks_of_user_config_are_not_started(harness: Harness) -> None:
    home, marks = harness.folder / "home", harness.folder / "marks"
    home.mkdir()
    marks.mkdir()
    (home / "config.toml").write_text(
        f'notify = ["touch", "{marks}/notified"]\n'
        f'[mcp_servers.my-server]\ncommand = "sh"\nargs = ["-c", "touch {marks}/served; sleep 60"]\n'
    )
    assert take(harness.client([ANSWER], settings=without_user_servers(home))).status == "completed"
    harness.stop()
    assert list(marks.iterdir()) == []


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("ended with exit code 1: Error: No file descriptors available (os error 24)", TOO_MANY_FILES),
        (
            "ended with exit code 1: Error: failed to initialize sqlite state runtime under /home/me/.codex",
            "`ulimit -n`",
        ),
        ("ended with exit code 1: Error: invalid type: sequence", "config.toml or CODEX_HOME."),
    ],
)
def test_hint_of_failed_start_names_what_may_be_wrong(message: str, hint: str) -> None:
    with pytest.raises(CodexStartFailed) as caught, _start_failures():
        raise CodexCrashed(message, error_line="Error")
    assert hint in caught.value.hint
