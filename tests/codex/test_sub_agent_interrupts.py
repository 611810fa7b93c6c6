"""A turn that is interrupted ends its sub-agents as well: by themselves they would continue (measured)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

import pytest

from codex_multi_role.codex.running_turn import Observed
from codex_multi_role.codex.usage import TokensUsed
from tests.support.codex import PATIENT, Harness, request, wire
from tests.support.models import INPUT_TOKENS, Body, Items, any_model, call, message
from tests.support.sub_agents import DONE, GOAL, is_sub_agents, spawning

SECONDS = 30.0


def endless(body: Body) -> Items:
    """The sub-agent runs one command after the other, and the role waits for it again and again."""
    return call("exec_command", f"c{len(json.dumps(body['input']))}", cmd="true") if is_sub_agents(body) else wait(body)


def answering(body: Body) -> Items:
    """The role starts a sub-agent, and answers while that one still runs its commands."""
    if not is_sub_agents(body) and "agent_id" in json.dumps(body["input"]):
        return message(DONE)
    return endless(body)


def wait(body: Body) -> Items:
    items = spawning(body)
    if items[0]["type"] == "function_call":
        return items
    waited = next(each for each in body["input"] if each.get("name") == "wait_agent")
    return [{**waited, "call_id": f"w{len(body['input'])}", "id": f"f{len(body['input'])}"}]


@pytest.mark.long
@pytest.mark.parametrize(("answer", "status"), [(endless, "interrupted"), (answering, "completed")])
def test_sub_agents_end_with_the_turn(harness: Harness, answer: Callable[[Body], Items], status: str) -> None:
    """Either the turn is interrupted, or it has ended and only waits for them."""
    stopping, used = threading.Event(), 0

    def stop(event: Observed) -> None:
        nonlocal used
        if isinstance(event, TokensUsed):
            used += event.usage.input
            if used > 8 * INPUT_TOKENS:
                stopping.set()
                client.wake()

    with any_model(answer) as served:
        settings = (*served.config, "agents.enabled=true")
        client = harness.client([], settings=settings, sandbox="danger-full-access", approval_policy="never")
        assert client.run_turn(request(prompt=GOAL), PATIENT, stop, stopping=(stopping,)).status == status
        end = time.monotonic() + SECONDS
        while len(ended(harness)) < 2 and time.monotonic() < end:
            time.sleep(0.02)
    assert sorted(ended(harness).values()) == sorted([status, "interrupted"])


def ended(harness: Harness) -> dict[str, str]:
    """How the turn of each thread ended."""
    ends = [message["params"] for message in wire(harness, "in") if message.get("method") == "turn/completed"]
    return {params["threadId"]: params["turn"]["status"] for params in ends}
