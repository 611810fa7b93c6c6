"""The job with Pydantic AI: agents, and their message histories from turn to turn."""

from __future__ import annotations

import asyncio
from typing import Any

from job import CYCLES, ITEMS, KEY, MODEL, ROLES, Answers, instructions, prompt, run_job
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def agent(role: str, base_url: str) -> Any:
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=base_url, api_key=KEY))
    return Agent(model, instructions=instructions(role))


async def take_turns(base_url: str) -> Answers:
    team = {role: agent(role, base_url) for role in ROLES}
    histories: dict[str, Any] = {}
    answers: list[str] = []
    for _ in range(CYCLES):
        for role, member in team.items():
            result = await member.run(prompt(answers), message_history=histories.get(role))
            histories[role] = result.all_messages()
            answers.append(result.output)
    return answers


async def take_all(base_url: str) -> Answers:
    worker = agent("worker", base_url)
    return [result.output for result in await asyncio.gather(*(worker.run(prompt(())) for _ in range(ITEMS)))]


def turns(base_url: str) -> Answers:
    return asyncio.run(take_turns(base_url))


def fan(base_url: str) -> Answers:
    return asyncio.run(take_all(base_url))


if __name__ == "__main__":
    run_job(turns, fan)
