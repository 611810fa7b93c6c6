"""Record how the installed binary reports usage, with a model whose every request uses another number of tokens.

    python -m tests.codex.write_usage_logs [CASE …]

writes ``tests/codex/usage_logs/<case>.ndjson``; `tests.codex.test_usage_logs` counts them.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from codex_multi_role.codex.client import RoleClient
from codex_multi_role.codex.running_turn import Observed
from codex_multi_role.codex.turn_outcome import TurnOutcome
from codex_multi_role.codex.usage import TokensUsed, TokenUsage
from tests.support.codex import PATIENT, Harness, request, take
from tests.support.models import BREAKING, AnyModel, Body, Items, any_model, call, failing, message, with_compactions
from tests.support.sub_agents import GOAL, spawning
from tests.support.teams import read_lines
from tests.support.usage_logs import shortened

FOLDER = Path(__file__).parent / "usage_logs"
FULL = failing("context_length_exceeded")
COMMAND = call("exec_command", "c", cmd="true")
SAID = message("said")
SECONDS = 20.0
COMPACTS_ITSELF = {"model_providers.any.name": '"OpenAI"', "model_auto_compact_token_limit": 500}


def usage(number: int) -> Body:
    """Different for each request, so that no sum is right by accident."""
    tokens = {"input_tokens": 1000 + 10 * number**2, "output_tokens": 10 + number}
    parts = {"cached_tokens": 7 * number, "cache_write_tokens": 3 * number}
    return {**tokens, "input_tokens_details": parts, "total_tokens": sum(tokens.values())}


def as_usage(spent: Body) -> TokenUsage:
    """What `usage` says, as it is counted here."""
    parts = spent["input_tokens_details"]
    counts = (spent["input_tokens"], parts["cached_tokens"], spent["output_tokens"], parts["cache_write_tokens"])
    return TokenUsage(*counts)


@dataclass
class Recorder:
    """Runs clients with a model that gives ``answers`` in order; `SAID` afterwards.

    ``unreported``: the requests of which Codex does not say what they used, by index.
    """

    harness: Harness
    stack: ExitStack
    unreported: tuple[int, ...] = ()
    model: AnyModel = field(init=False)

    def client(self, *answers: Items, by: Callable[[Body], Items] | None = None, **options: Any) -> RoleClient:
        """A client of a new process; further ones share the first one's model."""
        left = iter(answers)
        if not hasattr(self, "model"):
            self.model = self.stack.enter_context(
                any_model(with_compactions(by or (lambda _: next(left, SAID))), usage)
            )
        settings = (*self.model.config, *(f"{key}={value}" for key, value in options.pop("settings", {}).items()))
        return self.harness.client(
            [], settings=settings, sandbox="danger-full-access", approval_policy="never", **options
        )


def one_turn(recorder: Recorder) -> None:
    """A turn of three requests, and one of a single request."""
    client = recorder.client(COMMAND, COMMAND, SAID)
    take(client)
    take(client)


def resumed_by_another_process(recorder: Recorder) -> None:
    """A thread that is resumed by another process reports its past first."""
    first = recorder.client(COMMAND)
    take(first)
    first.stop()
    second = recorder.client(thread_id=first.thread.id)
    take(second)
    take(second)


def resumed_by_the_same_process(recorder: Recorder) -> None:
    """A process works on another thread in between."""
    client = recorder.client()
    thread, folder = client.thread.id, str(recorder.harness.workspace)
    take(client)
    client.use_thread(None, folder)
    take(client)
    client.use_thread(thread, folder)
    take(client)


def forked(recorder: Recorder) -> None:
    """A fork starts with what its parent had used up to the turn it remembers."""
    first = recorder.client()
    remembered = take(first).turn_id
    take(first)
    first.stop()
    thread = first.thread.id
    take(recorder.client(thread_id=thread, inherited={thread: remembered}))


def compacted_between_turns(recorder: Recorder) -> None:
    """A compaction is a request of its own; the next turn counts it."""
    client = recorder.client()
    take(client)
    client._transport.request("thread/compact/start", {"threadId": client.thread.id}, SECONDS)
    end = time.monotonic() + SECONDS
    while recorder.harness.wire_log.read_text().count("turn/completed") < 2 and time.monotonic() < end:
        time.sleep(0.05)
    take(client)


def compacted_within_a_turn(recorder: Recorder) -> None:
    """Codex compacts a conversation that has become too long, in the middle of a turn."""
    take(recorder.client(COMMAND, settings={"model_auto_compact_token_limit": 500}))


def compacted_by_the_provider(recorder: Recorder) -> None:
    """A provider named OpenAI compacts a conversation itself. The thread's totals do not contain it."""
    take(recorder.client(COMMAND, settings=COMPACTS_ITSELF))


def compacted_by_the_provider_after_a_resumption(recorder: Recorder) -> tuple[TurnOutcome, ...]:
    """Codex does not report what the provider's compaction of a resumed thread used."""
    recorder.unreported = (1,)
    first = recorder.client(settings=COMPACTS_ITSELF)
    turn = take(first)
    first.stop()
    return turn, take(recorder.client(thread_id=first.thread.id, settings=COMPACTS_ITSELF))


def too_long_for_the_model(recorder: Recorder) -> None:
    """The totals restart after a request that was too long; then the thread is compacted, and continues."""
    client = recorder.client(SAID, FULL, settings={"model_context_window": 100_000})
    take(client)
    take(client)
    take(client)


def retried_by_codex(recorder: Recorder) -> None:
    """An answer that breaks off is requested again; only the whole one reports its usage."""
    take(recorder.client(COMMAND, BREAKING, SAID))


def with_a_sub_agent(recorder: Recorder) -> None:
    """A sub-agent's requests are reported on its own thread."""
    client = recorder.client(by=spawning, settings={"agents.enabled": "true"})
    client.run_turn(request(prompt=GOAL), PATIENT, lambda _: None)


def interrupted(recorder: Recorder) -> None:
    """A turn is interrupted after its first request; the second one gets no answer."""
    stopping, answers = threading.Event(), iter((COMMAND, BREAKING))

    def answer(_: Body) -> Items:
        items = next(answers, SAID)
        if items is BREAKING:
            stopping.wait(SECONDS)
        return items

    def stop(event: Observed) -> None:
        if isinstance(event, TokensUsed):
            stopping.set()
            client.wake()

    client = recorder.client(by=answer)
    client.run_turn(request(), PATIENT, stop, stopping=(stopping,))
    take(client)


CASES: tuple[Callable[[Recorder], object], ...] = (
    one_turn,
    resumed_by_another_process,
    resumed_by_the_same_process,
    forked,
    compacted_between_turns,
    compacted_within_a_turn,
    compacted_by_the_provider,
    compacted_by_the_provider_after_a_resumption,
    too_long_for_the_model,
    retried_by_codex,
    with_a_sub_agent,
    interrupted,
)


def recorded(case: Callable[[Recorder], object]) -> Iterator[str]:
    """The lines of the case's file."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        recorder = Recorder(Harness(Path(folder), stack), stack)
        case(recorder)
        lines = list(shortened(read_lines(recorder.harness.wire_log)))
        provider = [astuple(as_usage(spent)) for spent in recorder.model.spent]
        unreported = {"unreported": [provider[index] for index in recorder.unreported]} if recorder.unreported else {}
        yield json.dumps({"shows": case.__doc__, "provider": provider, **unreported})
        yield from map(json.dumps, lines)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in CASES:
        if each.__name__ in (sys.argv[1:] or [case.__name__ for case in CASES]):
            (FOLDER / f"{each.__name__}.ndjson").write_text("".join(f"{line}\n" for line in recorded(each)))
