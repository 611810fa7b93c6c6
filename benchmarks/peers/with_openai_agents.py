"""The job with the OpenAI Agents SDK: its runner, with the Responses API as it has it by default."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, Runner, set_default_openai_client
from job import CYCLES, ITEMS, KEY, MODEL, ROLES, Answers, instructions, prompt, run_job
from openai import AsyncOpenAI


def agent(role: str) -> Any:
    return Agent(name=role, instructions=instructions(role), model=MODEL)


async def take_turns() -> Answers:
    team = {role: agent(role) for role in ROLES}
    histories: dict[str, list[Any]] = {role: [] for role in ROLES}
    answers: list[str] = []
    for _ in range(CYCLES):
        for role, member in team.items():
            asked = {"role": "user", "content": prompt(answers)}
            result = await Runner.run(member, [*histories[role], asked])
            histories[role] = result.to_input_list()
            answers.append(str(result.final_output))
    return answers


async def take_all() -> Answers:
    worker = agent("worker")
    results = await asyncio.gather(*(Runner.run(worker, prompt(())) for _ in range(ITEMS)))
    return [str(result.final_output) for result in results]


def turns(base_url: str) -> Answers:
    set_default_openai_client(AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0))
    return asyncio.run(take_turns())


def fan(base_url: str) -> Answers:
    set_default_openai_client(AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0))
    return asyncio.run(take_all())


if __name__ == "__main__":
    run_job(turns, fan)
