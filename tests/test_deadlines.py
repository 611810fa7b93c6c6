"""No wait without a deadline: every call of the package that may block names one, or is listed with what bounds it.

What blocks is recognized by its name, because types are missing. `PLACES` therefore also lists calls that only look
like a wait.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import codex_multi_role

PACKAGE = Path(codex_multi_role.__file__).parent

CHILD = "a reader of its own thread: it ends with the pipe, and the pipe with the child, which has deadlines"
STEPS = "waits for turns, repairs and checks, each of which has its deadlines"
BASELINE = "the probe of the sandbox and one test run, which have PROBE_SECONDS and --test-seconds; stopping wakes it"
DONE = "of a future that is done"
PROVIDERS = "processes, each with its provider's time limit"
INSPECTED = "a program, given ANSWER_SECONDS (checks/interpreter.py)"
QUESTION = "a person; ends when the question is over"
WARM_SUITE = "extensions/test_generation/warm_suite.py"
WARM = "extensions/test_generation/plugins/codex_multi_role_warm.py"
ONE_FILE = "finds the mutants of one file: computation, in proportion to its length"
READS_FILE = "no future: it reads turn.json"
PLACES = {
    ("checks/plugins/codex_multi_role_outcomes.py", "made.get_result()"): "pytest's own, which is there",
    (
        "extensions/test_generation/kill_matrix.py",
        "pool.shutdown(cancel_futures=True)",
    ): "tests on mutants, each run with its deadline",
    ("extensions/test_generation/mutation.py", "with ThreadPoolExecutor(1, thread_name_prefix='mutants')"): ONE_FILE,
    ("extensions/test_generation/mutation.py", "read().result()"): ONE_FILE,
    (
        WARM_SUITE,
        "pool.shutdown(cancel_futures=True)",
    ): "processes, each with the deadline of all",
    (WARM, "select.poll()"): "asked with the seconds of a job",
    (WARM, "jobs.readline()"): "a file: what is there at once",
    (
        WARM,
        "fcntl.lockf(claimed, fcntl.LOCK_EX)",
    ): "while another process reads one line; both have the deadline of all",
    (
        WARM,
        "os.waitpid(child, 0)",
    ): "of a child that was killed",
    (
        WARM,
        "os.waitpid(-1, os.WNOHANG)",
    ): "asked without waiting",
    (
        "extensions/research/search_providers.py",
        "with ThreadPoolExecutor(max(1, len(providers)), thread_name_prefix='search')",
    ): PROVIDERS,
    ("extensions/research/search_providers.py", "each.result()"): PROVIDERS,
    (
        "cli/terminal_questions.py",
        "while not self._lock.acquire(timeout=LOOK_SECONDS)",
    ): QUESTION,
    ("cli/terminal_questions.py", "while not is_over()"): QUESTION,
    (
        "cli/terminal_questions.py",
        "os.read(self._descriptor, LONGEST_LINE)",
    ): "only after select said that there is a line",
    ("host/unpacking.py", "printed.readline()"): "bytes in memory",
    ("extensions/machines/batches/batch_folder.py", "owner.acquire()"): "takes the lock at once or raises RunBusy",
    ("extensions/machines/batches/batch_runs.py", "while True"): "ends when no goal waits or runs, or a person ends it",
    (
        "extensions/machines/batches/goal_file.py",
        "stream.readline(MAX_LINE_BYTES + 1)",
    ): "a file, or what a person pipes in",
    (
        "extensions/machines/workers/own_process.py",
        "os.read(self.fileno(), CHUNK_BYTES)",
    ): "does not block: set so when it is started",
    ("lifecycle/stopping.py", "os.read(descriptor, CHUNK_BYTES)"): "a daemon's: ends with the process that started it",
    ("lifecycle/live_roles.py", "while not self._ended.wait(LOOK_SECONDS)"): "ends with the run",
    ("cli/team.py", "while True"): "a person, who ends it with Ctrl-C",
    ("cli/team.py", "while not watched.have_changed()"): "a person, who saves a file or ends it with Ctrl-C",
    ("cli/live.py", "while not stopped.wait(pause)"): "a pause between two drawings",
    ("cli/watch.py", "while True"): "a person; ends when no run is worked on",
    ("presentation/event_tail.py", "while alive"): "ends with the process that works on the run",
    ("cli/gc.py", "owner.acquire()"): "takes the lock at once or raises RunBusy",
    (
        "cli/resume.py",
        "while (left := (end - datetime.now(UTC)).total_seconds()) > 0",
    ): "ends at the time it was given",
    ("codex/fleet.py", "retired.exception()"): "a start, whose requests have deadlines",
    ("codex/fleet.py", "retired.result()"): DONE,
    ("codex/fleet.py", "self._pool.shutdown(wait=True)"): "starts, whose requests have deadlines; their processes end",
    ("codex/slots.py", "place.result()"): "the turns before it, each of which has its deadline; `close` wakes it",
    ("cli/output.py", "select.poll()"): "asked with PATIENCE_SECONDS",
    ("codex/incoming.py", "os.read(self._descriptor, _CHUNK_BYTES)"): CHILD,
    ("codex/incoming.py", "select.poll()"): "asked with HELD_SECONDS",
    ("codex/incoming.py", "while True"): CHILD,
    ("codex/child.py", "select.poll()"): "asked with what is left of WRITE_SECONDS",
    ("codex/child.py", "stream.readline(LONGEST_LINE)"): CHILD,
    (
        "codex/transport.py",
        "while True",
    ): "ends when the consumer reads on, which has deadlines, or the child is stopped",
    (
        "host/processes.py",
        "while not (found := process.environ()) and _is_starting(process)",
    ): "STARTING_SECONDS from the start of the process",
    ("host/processes.py", "mine.result()"): DONE,
    ("steps/baseline.py", "woken.wait()"): BASELINE,
    ("steps/baseline.py", "self.tests.result()"): DONE,
    ("steps/baseline.py", "self.tests.exception()"): "programs that are being ended: `stopping` is set",
    ("steps/test_runs.py", "with ThreadPoolExecutor(1, thread_name_prefix='baseline')"): "as self.tests.exception",
    ("run_folder/event_log.py", "mine.published.result()"): DONE,
    ("run_folder/states.py", "turn.result()"): "one small file",
    ("host/processes.py", "os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)"): "returns at once",
    ("lifecycle/definitions.py", "(started or start()).result()"): INSPECTED,
    ("lifecycle/definitions.py", "with ThreadPoolExecutor(1, thread_name_prefix='python')"): INSPECTED,
    (
        "engine/scheduler.py",
        "with ThreadPoolExecutor(min(self.concurrency, len(works)), thread_name_prefix=self.name)",
    ): STEPS,
    ("engine/scheduler.py", "wait(running, return_when=FIRST_COMPLETED)"): STEPS,
    ("engine/scheduler.py", "while order.is_active()"): STEPS,
    ("engine/scheduler.py", "future.exception()"): DONE,
    ("engine/scheduler.py", "futures[index].exception()"): DONE,
    ("engine/scheduler.py", "futures[index].result()"): DONE,
    ("engine/scheduler.py", "future.result()"): DONE,
    ("lifecycle/forking/prepare.py", "owner.acquire()"): "takes the lock at once or raises RunBusy",
    ("playbook/loopback.py", "self.rfile.read(int(size))"): "the connection's QUIET_CONNECTION_SECONDS",
    ("playbook/loopback.py", "self.handle_request()"): "a daemon's: `end` wakes it with a connection",
    ("playbook/loopback.py", "sys.exception()"): "no future: the error that is being handled",
    ("lifecycle/sandbox_probe.py", "with ThreadPoolExecutor(1, thread_name_prefix='sandbox')"): "as tried.result",
    ("lifecycle/sandbox_probe.py", "tried.result()"): "one run_command, which has PROBE_SECONDS",
    ("lifecycle/session.py", "owner.acquire()"): "takes the lock at once or raises RunBusy",
    ("lifecycle/session.py", "while True"): "once more for each question that was answered meanwhile",
    ("lifecycle/session.py", "while not stop.asked"): "the workflow, every step of which has deadlines",
    (
        "extensions/machines/store/store.py",
        "with ThreadPoolExecutor(min(REQUESTS, len(items)), thread_name_prefix='store')",
    ): "files, and requests with REQUEST_SECONDS (store/remote_objects.py)",
    ("extensions/web/followers.py", "self._changed.wait()"): "WAKE_SECONDS",
    (
        "extensions/web/followers.py",
        "while looks_left and (not is_ending())",
    ): "ends with the server, or a while after the last viewer",
    (
        "cli/watch.py",
        "while (record := found.folder().record())['status'] == RunStatus.QUEUED",
    ): "ends when a worker takes the run, or a person ends it",
    (
        "extensions/machines/journal/run_queue.py",
        "Event().wait()",
    ): "the process ends itself (workers/attempt_process.py)",
    (
        "extensions/machines/journal/run_queue.py",
        "self._parts.result()",
    ): "until the parts are assembled; if that fails, the process ends",
    (
        "extensions/machines/workers/database.py",
        "fcntl.flock(file, fcntl.LOCK_EX)",
    ): "while another process creates the tables",
    (
        "extensions/machines/workers/run_attempt.py",
        "while not over.wait(LOOK_SECONDS)",
    ): "as long as the run is worked on",
    (
        "extensions/machines/workers/shared_runs.py",
        "while True",
    ): "PATIENCE_SECONDS, or as long as the watched run is worked on",
    ("extensions/machines/workers/worker.py", "self._membership.join()"): "one transaction",
    (
        "extensions/machines/workers/worker.py",
        "while not self.draining.is_set()",
    ): "a worker works until it is asked to leave",
    ("presentation/event_tail.py", "file.readline(LONGEST_LINE)"): "a file: what is there at once",
    ("workspace/commands.py", "os.read(descriptor, _CHUNK_BYTES)"): "does not block: set so before it is registered",
    **{
        (module, f"{receiver}.result()"): READS_FILE
        for module, receiver in (
            ("presentation/recorded.py", "turn"),
            ("presentation/entries.py", "folder"),
            ("lifecycle/members.py", "turn"),
            ("extensions/replays/run_outcome.py", "turn"),
            ("run_folder/past.py", "turn"),
            ("extensions/replays/reuse/earlier_turns.py", "folder"),
            ("extensions/replays/reuse/observer.py", "turn"),
            ("run_folder/turn_folder.py", "self"),
            ("run_folder/turn_folder.py", "turn"),
            ("steps/known_instructions.py", "latest"),
            ("steps/protection.py", "first_try"),
            ("steps/recovery.py", "first_try"),
            ("steps/recovery.py", "latest"),
            ("steps/recovery.py", "left"),
        )
    },
}
"""By module and code: what bounds the wait."""

QUICK = "memory only"
LOCKS = {
    ("codex/fleet.py", "self._lock"): "starts no process under it, and writes no file but a new home's",
    ("codex/slots.py", "self._lock"): QUICK,
    ("codex/transport.py", "self._spawn_lock"): "one start of a program",
    ("codex/transport.py", "self._stop_lock"): "the end of a child: GRACE_SECONDS a step",
    ("codex/transport.py", "self._write_lock"): "WRITE_SECONDS",
    ("codex/wire_log.py", "self._lock"): "one line to a file",
    ("engine/askers.py", "self._lock"): QUICK,
    (
        "lifecycle/subscribers.py",
        "self._lock",
    ): "what subscribers do with an event, one search for entry points, small files",
    ("engine/flow_walk.py", "self._announce_lock"): "calls of git, GIT_SECONDS each",
    ("engine/journal_file.py", "self._lock"): "one statement; other processes only read the file",
    ("playbook/loopback.py", "self._changed"): "memory only, or a wait for it that has STOP_SECONDS",
    ("extensions/replays/recorder.py", "self._lock"): QUICK,
    ("host/processes.py", "self._asking_lock"): "one attribute",
    ("host/processes.py", "self._looking_lock"): "one look at all processes, STARTING_SECONDS for one that starts",
    ("extensions/replays/recording.py", "self._lock"): "one line to a file",
    ("extensions/replays/replay_server.py", "self._lock"): QUICK,
    ("extensions/replays/comparison.py", "self._lock"): "one small file",
    ("reading/registry.py", "_scan_lock"): "one scan of the installed packages",
    ("reading/python_source.py", "_parse_lock"): "one parse of a source of bounded size",
    ("run_folder/event_log.py", "self._lock"): "a few lines to a file, and to whoever draws them",
    ("run_folder/event_log.py", "self._waiting_lock"): "one attribute",
    ("run_folder/questions.py", "self._locked()"): "LOCK_SECONDS",
    ("steps/ask.py", "run.progress.workspace_lock"): "one call of git, or one set of files",
    ("steps/budget.py", "self._lock"): QUICK,
    ("steps/work_clock.py", "self._lock"): QUICK,
    ("extensions/replays/reuse/observer.py", "self._lock"): QUICK,
    (
        "extensions/replays/reuse/taking.py",
        "run.progress.workspace_lock",
    ): "calls of git, GIT_SECONDS each, and a copy of its objects",
    ("steps/resources.py", "self._lock"): QUICK,
    ("steps/unit.py", "run.progress.workspace_lock"): "calls of git, GIT_SECONDS each",
    ("steps/check.py", "run.progress.workspace_lock"): "calls of git, GIT_SECONDS each",
    ("steps/protection.py", "run.progress.workspace_lock"): "calls of git, and the check's deadline",
    ("steps/resources.py", "self.progress.workspace_lock"): "calls of git, GIT_SECONDS each",
    ("extensions/web/starting.py", "self._lock"): QUICK,
    ("workspace/manifest.py", "self._lock"): "one small file",
    ("workspace/snapshots.py", "self._lock"): "calls of git, GIT_SECONDS each",
    ("workspace/worktrees.py", "self._lock"): "calls of git, GIT_SECONDS each",
}
"""A lock is waited for as long as another holds it: what that one waits for meanwhile."""

Blocks = Callable[[ast.Call], bool]


def given(call: ast.Call, place: int, name: str) -> bool:
    """Whether the argument is there, by its place or by name, and not None."""
    values = [*call.args[place : place + 1], *(each.value for each in call.keywords if each.arg in (name, None))]
    return any(not (isinstance(value, ast.Constant) and value.value is None) for value in values)


def lacks(place: int, name: str = "timeout") -> Blocks:
    return lambda call: not given(call, place, name)


def lacks_all(call: ast.Call) -> bool:
    """``get()``, ``join()``: of a dictionary or of a text they have arguments."""
    return not call.args and not given(call, 9, "timeout")


def always(_: ast.Call) -> bool:
    return True


def source(node: ast.AST) -> str:
    return ast.unparse(node)


def waits_for_lock(call: ast.Call) -> bool:
    return "LOCK_NB" not in source(call)


def waits_for_readiness(call: ast.Call) -> bool:
    return not (given(call, 3, "timeout") if source(call.func) == "select.select" else given(call, 0, "timeout"))


def closes_a_pool(call: ast.Call) -> bool:
    return not call.args and "wait=False" not in source(call)


BLOCKING: dict[str, Blocks] = {
    **dict.fromkeys(["wait", "result", "exception"], lacks(0)),
    **dict.fromkeys(["get", "join"], lacks_all),
    **dict.fromkeys(["readline", "waitpid", "accept", "recv", "handle_request", "serve_forever", "lockf"], always),
    **dict.fromkeys(["epoll", "getchar", "confirm", "get_result", "get_event", "urlopen"], lacks(9)),
    "acquire": lambda call: (
        not (given(call, 1, "timeout") or "blocking=False" in source(call) or "False" in map(source, call.args))
    ),
    "wait_for": lacks(1),
    "communicate": lacks(1),
    "select": waits_for_readiness,
    "flock": waits_for_lock,
    "shutdown": closes_a_pool,
    "create_connection": lacks(1),
}
BY_FULL_NAME: dict[str, Blocks] = {
    **dict.fromkeys([f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output")], lacks(99)),
    **dict.fromkeys(["os.system", "os.wait", "os.wait3", "os.wait4", "os.waitid", "os.read", "select.poll"], always),
    **dict.fromkeys(["input", "subprocess.getoutput", "sys.stdin.read", "self.rfile.read", "socket.socket"], always),
    "wait": lacks(1),
    "self._inbox.put": lacks(2),
}
PAUSES = ("sleep", "wait", "acquire", "select", "next_message")
ENDS_BY_CLOCK = ("monotonic()", "deadline")


def waits(tree: ast.AST) -> Iterator[ast.AST]:
    """What may wait without an end: calls, ``with`` of what waits when it is left, and loops of bounded waits."""
    for node in ast.walk(tree):
        match node:
            case ast.Call() if blocks(node):
                yield node
            case ast.With(items=items):
                yield from (item for item in items if waits_at_its_end(item.context_expr))
            case ast.While() if pauses(node) and not any(word in source(node) for word in ENDS_BY_CLOCK):
                yield node


def blocks(call: ast.Call) -> bool:
    name = source(call.func)
    known = BY_FULL_NAME.get(name)
    if known is None and isinstance(call.func, ast.Attribute):
        known = BLOCKING.get(call.func.attr)
    return known is not None and known(call)


def waits_at_its_end(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Call) and source(expression.func).endswith(("Popen", "PoolExecutor"))


def pauses(loop: ast.While) -> bool:
    calls = [node for node in ast.walk(loop) if isinstance(node, ast.Call)]
    return any(
        source(call.func).endswith(PAUSES) or "timeout=" in source(call) or "_SECONDS" in source(call) for call in calls
    )


def code_of(node: ast.AST) -> str:
    match node:
        case ast.While(test=test):
            return f"while {source(test)}"
        case ast.withitem(context_expr=expression):
            return f"with {source(expression)}"
        case _:
            return source(node)


def modules(word: str = "") -> Iterator[tuple[str, ast.Module]]:
    """Each that the regular expression ``word`` is found in, parsed."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if re.search(word, text := path.read_text(encoding="utf-8")):
            yield path.relative_to(PACKAGE).as_posix(), ast.parse(text)


@pytest.mark.extensions
def test_every_wait_of_the_package_has_a_deadline_or_a_reason() -> None:
    found = {(module, code_of(node)) for module, tree in modules() for node in waits(tree)}
    assert found - PLACES.keys() == set(), "give them a deadline, or say in PLACES what bounds them"
    assert PLACES.keys() - found == set(), "these are gone: take them out of PLACES"


@pytest.mark.extensions
def test_what_is_done_under_every_lock_is_bounded() -> None:
    found = {
        (module, source(item.context_expr))
        for module, tree in modules(r"_lock\b|_changed\b|_locked\(\)")
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        for item in node.items
        if source(item.context_expr).endswith(("_lock", "_changed", "_locked()"))
    }
    assert found == LOCKS.keys()


@pytest.mark.parametrize(
    "code",
    [
        "child.wait()",
        "child.wait(timeout=None)",
        "thread.join()",
        "inbox.get()",
        "lock.acquire()",
        "future.result()",
        "wait(futures)",
        "changed.wait_for(over)",
        "select.select([pipe], [], [])",
        "selector.select()",
        "subprocess.run(['git'], check=True)",
        "child.communicate(data)",
        "os.waitpid(pid, 0)",
        "connection.recv(10)",
        "socket.create_connection(address)",
        "fcntl.flock(file, fcntl.LOCK_EX)",
        "stream.readline()",
        "pool.shutdown()",
        "handle.get_result()",
        "with subprocess.Popen(['git']) as child: pass",
        "while not over: time.sleep(1)",
        "while True: event.wait(0.1)",
    ],
)
def test_wait_without_a_deadline_is_found(code: str) -> None:
    assert list(waits(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "child.wait(3)",
        "thread.join(timeout=STOP_SECONDS)",
        "', '.join(names)",
        "settings.get('name')",
        "lock.acquire(timeout=1)",
        "wait(futures, 5, FIRST_COMPLETED)",
        "select.select([pipe], [], [], 1)",
        "subprocess.run(['git'], timeout=5, check=True)",
        "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "while time.monotonic() < end: time.sleep(1)",
    ],
)
def test_wait_with_a_deadline_is_left_alone(code: str) -> None:
    assert not list(waits(ast.parse(code)))
