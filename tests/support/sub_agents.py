"""A model of a role that starts a sub-agent, waits for it, and then answers."""

from __future__ import annotations

import json

from tests.support.models import Body, Items, call, message

GOAL = "reach it"
DONE = json.dumps({"summary": "fine"})


def is_sub_agents(body: Body) -> bool:
    """Whether a sub-agent sent it: only the role's own thread knows the goal."""
    return GOAL not in json.dumps(body["input"])


def spawning(body: Body) -> Items:
    """The role starts a sub-agent and waits until it is done; whatever else is asked is answered at once."""
    said = json.dumps(body["input"])
    if is_sub_agents(body):
        return message("sub-task done")
    if "agent_id" not in said:
        return call("spawn_agent", "c1", "multi_agent_v1", message="sub-task")
    if "subagent_notification" not in said and "c2" not in said:
        agent = said.partition('"agent_id\\\\\\":\\\\\\"')[2].partition("\\")[0]
        return call("wait_agent", "c2", "multi_agent_v1", targets=[agent], timeout_ms=10_000)
    return message(DONE)
