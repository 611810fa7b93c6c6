"""The job with LangGraph: a ring of four nodes, and a fan-out with ``Send``."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, Any, TypedDict

from job import CYCLES, ITEMS, KEY, MODEL, ROLES, Answers, instructions, prompt, run_job
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send


class Team(TypedDict):
    conversations: Annotated[dict[str, list[Any]], operator.or_]
    answers: Annotated[list[str], operator.add]


def agent(role: str, model: Any) -> Callable[[Team], Any]:
    async def take_turn(state: Team) -> dict[str, Any]:
        past = state["conversations"].get(role) or [SystemMessage(instructions(role))]
        asked = [*past, HumanMessage(prompt(state["answers"]))]
        answer = await model.ainvoke(asked)
        return {"conversations": {role: [*asked, answer]}, "answers": [str(answer.content)]}

    return take_turn


def chat_model(base_url: str) -> Any:
    return ChatOpenAI(model=MODEL, base_url=base_url, api_key=KEY, max_retries=0)


def run(graph: Any) -> Answers:
    answers: Answers = asyncio.run(graph.compile().ainvoke({"conversations": {}, "answers": []}))["answers"]
    return answers


def turns(base_url: str) -> Answers:
    model, graph = chat_model(base_url), StateGraph(Team)
    for role in ROLES:
        graph.add_node(role, agent(role, model))
    graph.add_edge(START, ROLES[0])
    for role, following in pairwise(ROLES):
        graph.add_edge(role, following)
    graph.add_conditional_edges(
        ROLES[-1], lambda state: END if len(state["answers"]) >= CYCLES * len(ROLES) else ROLES[0], [ROLES[0], END]
    )
    return run(graph)


def fan(base_url: str) -> Answers:
    graph = StateGraph(Team)
    graph.add_node("worker", agent("worker", chat_model(base_url)))
    graph.add_conditional_edges(START, lambda state: [Send("worker", state) for _ in range(ITEMS)], ["worker"])
    graph.add_edge("worker", END)
    return run(graph)


if __name__ == "__main__":
    run_job(turns, fan)
