"""The job with AG2: agents, whose replies continue their conversations."""

from __future__ import annotations

import asyncio
from typing import Any

from ag2 import Agent
from ag2.config import OpenAIConfig
from job import CYCLES, ITEMS, KEY, MODEL, ROLES, Answers, instructions, prompt, run_job


def agent(role: str, name: str, base_url: str) -> Any:
    model = OpenAIConfig(MODEL, api_key=KEY, base_url=base_url, max_retries=0)
    return Agent(name, instructions(role), config=model)


async def take_turns(base_url: str) -> Answers:
    latest: dict[str, Any] = {role: agent(role, role, base_url) for role in ROLES}
    answers: list[str] = []
    for _ in range(CYCLES):
        for role in ROLES:
            latest[role] = await latest[role].ask(prompt(answers))
            answers.append(latest[role].body)
    return answers


async def take_all(base_url: str) -> Answers:
    workers = [agent("worker", f"worker_{number}", base_url) for number in range(ITEMS)]
    return [reply.body for reply in await asyncio.gather(*(each.ask(prompt(())) for each in workers))]


def turns(base_url: str) -> Answers:
    return asyncio.run(take_turns(base_url))


def fan(base_url: str) -> Answers:
    return asyncio.run(take_all(base_url))


if __name__ == "__main__":
    run_job(turns, fan)
