"""The job with AutoGen AgentChat: assistant agents, which keep their own context."""

from __future__ import annotations

import asyncio
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from job import CYCLES, ITEMS, KEY, MODEL, ROLES, Answers, instructions, prompt, run_job

ABILITIES = {
    "vision": False,
    "function_calling": True,
    "json_output": True,
    "structured_output": True,
    "family": "unknown",
}


def chat_model(base_url: str) -> Any:
    return OpenAIChatCompletionClient(model=MODEL, base_url=base_url, api_key=KEY, model_info=ABILITIES, max_retries=0)


def agent(role: str, name: str, model: Any) -> Any:
    return AssistantAgent(name, model_client=model, system_message=instructions(role))


async def ask(asked: Any, text: str) -> str:
    return str((await asked.run(task=text)).messages[-1].content)


async def take_turns(base_url: str) -> Answers:
    model = chat_model(base_url)
    team = [agent(role, role, model) for role in ROLES]
    answers: list[str] = []
    for _ in range(CYCLES):
        for member in team:
            answers.append(await ask(member, prompt(answers)))
    return answers


async def take_all(base_url: str) -> Answers:
    model = chat_model(base_url)
    return await asyncio.gather(*(ask(agent("worker", f"worker_{n}", model), prompt(())) for n in range(ITEMS)))


def turns(base_url: str) -> Answers:
    return asyncio.run(take_turns(base_url))


def fan(base_url: str) -> Answers:
    return asyncio.run(take_all(base_url))


if __name__ == "__main__":
    run_job(turns, fan)
