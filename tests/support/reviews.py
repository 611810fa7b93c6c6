"""Runs that ask a person, and the person."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import codex_multi_role
from codex_multi_role.run_folder import Answer, Question
from tests.support.teams import Record, TeamFolder, read, say, with_flow

ROUTES: list[Record] = [
    {"when": "steps.ok.approved and steps.ok.comment == 'good'", "end": "shipped"},
    {"when": "steps.ok.approved", "end": "approved"},
    {"end": "refused", "exit": 1},
]
REVIEW: Record = {
    "id": "ok",
    "review": {"question": "Ship {{ roles.one.summary }}?", "show": "{{ roles.one }}"},
    "next": ROUTES,
}
WHICH: Record = {
    "questions": [
        {"id": "db", "header": "Store", "question": "Which database?", "options": [
            {"label": "sqlite", "description": "one file"}, {"label": "postgres", "description": "a server"},
        ]},
        {"id": "name", "header": "Name", "question": "Which name?", "options": [
            {"label": "a", "description": "one"}, {"label": "b", "description": "two"},
        ]},
    ]
}  # fmt: skip
OFFERED = ("features.default_mode_request_user_input=true",)
NOTICED_SECONDS = 20
ASKED_TWICE: Record = {
    "steps": [{"id": "first", "ask": "one"}, {"id": "ok", "review": "Go on?"}, {"id": "second", "ask": "one"}]
}


def reviewed(folder: Path, summary: str = "it", **more: object) -> TeamFolder:
    """An ask, then a review of what it said."""
    team = TeamFolder(folder, {"one": {}}, {"one": [say(summary)]})
    return with_flow(team, {"steps": [{"ask": "one"}, {**REVIEW, "review": {**REVIEW["review"], **more}}]})


def answer(team: TeamFolder, approved: bool, comment: str = "", question: str | None = None) -> Question:
    """Answer the latest run's ``question``, by default the open one. Raises `UsageError` as the public API does."""
    return codex_multi_role.answer("latest", runs_dir=team.runs, approved=approved, comment=comment, question=question)


def asked(team: TeamFolder, key: str = "ok.1") -> Record:
    """The record of the latest run's question ``key``."""
    found: Record = read(team.runs / f"latest/reviews/{key}.json")
    return found


def outcome(team: TeamFolder) -> tuple[str, int]:
    """The latest run's outcome and exit code."""
    record = read(team.runs / "latest/run.json")
    return record["outcome"], record["exit_code"]


def until_over(_question: Question, is_over: Callable[[], bool]) -> Answer | None:
    """A person who says nothing."""
    for _ in range(600):
        if is_over():
            return None
        time.sleep(0.05)
    raise AssertionError("nothing ended the wait")


def asking(folder: Path) -> TeamFolder:
    """A role that asks two questions within its turn and hands over whether it got its answer."""
    answered = {"choose": [{"when": "'use sqlite' in tool_outputs | string", **say("knows")}, say("does not know")]}
    steps = {"steps": [{"call": "request_user_input", "arguments": WHICH}, answered]}
    return TeamFolder(folder, {"one": {}}, {"one": [steps]})


def summary(team: TeamFolder) -> str:
    """The summary in the latest handoff of the role ``one``."""
    return str(read(team.runs / "latest/controller_state.json")["latest_json_by_role"]["one"]["summary"])
