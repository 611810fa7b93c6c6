"""The job with AG2: conversable agents, whose conversations the caller continues."""

from __future__ import annotations

import asyncio
from typing import Any

from autogen import ConversableAgent, LLMConfig
from job import CYCLES, ITEMS, KEY, MODEL, ROLES, Answers, instructions, prompt, run_job


def agent(role: str, name: str, base_url: str) -> Any:
    model = LLMConfig({"api_type": "openai", "model": MODEL, "base_url": base_url, "api_key": KEY, "cache_seed": None})
    return ConversableAgent(name, system_message=instructions(role), llm_config=model, human_input_mode="NEVER")


def text(reply: Any) -> str:
    return str(reply["content"] if isinstance(reply, dict) else reply)


def turns(base_url: str) -> Answers:
    team = {role: agent(role, role, base_url) for role in ROLES}
    histories: dict[str, list[dict[str, str]]] = {role: [] for role in ROLES}
    answers: list[str] = []
    for _ in range(CYCLES):
        for role, member in team.items():
            histories[role].append({"role": "user", "content": prompt(answers)})
            answers.append(text(member.generate_reply(messages=histories[role])))
            histories[role].append({"role": "assistant", "content": answers[-1]})
    return answers


async def take_all(base_url: str) -> Answers:
    asked = [{"role": "user", "content": prompt(())}]
    workers = [agent("worker", f"worker_{number}", base_url) for number in range(ITEMS)]
    return [text(reply) for reply in await asyncio.gather(*(each.a_generate_reply(messages=asked) for each in workers))]


def fan(base_url: str) -> Answers:
    return asyncio.run(take_all(base_url))


if __name__ == "__main__":
    run_job(turns, fan)
