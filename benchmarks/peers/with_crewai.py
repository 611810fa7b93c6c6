"""The job with CrewAI: a sequential crew, where a task gets the one before as its context; a crew for each item."""

from __future__ import annotations

import asyncio
from typing import Any

from crewai import LLM, Agent, Crew, Process, Task
from job import CYCLES, ITEMS, KEY, MODEL, ROLES, Answers, instructions, prompt, run_job

EXPECTED = "One JSON object."


def agent(role: str, base_url: str) -> Any:
    model = LLM(model=f"openai/{MODEL}", base_url=base_url, api_key=KEY)
    return Agent(role=role, goal="measure the floor", backstory=instructions(role), llm=model)


def turns(base_url: str) -> Answers:
    team = [agent(role, base_url) for role in ROLES]
    tasks: list[Any] = []
    for member in team * CYCLES:
        tasks.append(Task(description=prompt(()), expected_output=EXPECTED, agent=member, context=tasks[-1:]))
    done = Crew(agents=team, tasks=tasks, process=Process.sequential).kickoff()
    return [task.raw for task in done.tasks_output]


def fan(base_url: str) -> Answers:
    worker = agent("worker", base_url)
    task = Task(description="Item {item}. " + prompt(()), expected_output=EXPECTED, agent=worker)
    crew = Crew(agents=[worker], tasks=[task])
    inputs = [{"item": str(number)} for number in range(ITEMS)]
    return [done.raw for done in asyncio.run(crew.kickoff_for_each_async(inputs=inputs))]


if __name__ == "__main__":
    run_job(turns, fan)
