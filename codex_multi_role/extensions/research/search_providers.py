"""Query the search providers in parallel, each in a process and with a time limit of its own, and log the answers."""

from __future__ import annotations

import contextvars
import json
import os
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_multi_role.checks import CheckContext
from codex_multi_role.checks.data_file import parse_json
from codex_multi_role.errors import RunInterrupted, UsageError
from codex_multi_role.extensions.research import searching
from codex_multi_role.extensions.research.search_settings import CODEX_WEB, FILES, HTTP, SearchProvider
from codex_multi_role.extensions.research.searching.addresses import is_web_address
from codex_multi_role.extensions.research.searching.document_text import shortened
from codex_multi_role.host.own_python import own_environment, own_module
from codex_multi_role.host.redaction import without_secrets
from codex_multi_role.host.user_cache import expanded
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.sketches import sketch
from codex_multi_role.workspace import CommandResult, run_command

INDEX = "search.2.sqlite"
"""The number changes with the tables: a run started by an earlier version reads the folder again."""
MOST_CHARACTERS = 8_000
"""Limit for one result."""
OUTPUT_BYTES = 8 * 1024 * 1024
LONGEST_REASON = 300
NOT_ASKED = ("disabled", "to be asked")
NOT_SEARCHED = "the role answered without searching the web; its results do not count"


@dataclass(frozen=True)
class SearchQuery:
    """A query for ``count`` results of each provider. ``folder``: the check's, or empty.

    ``language``: of the results that count, or empty; results in others are added.
    """

    query: str
    count: int
    folder: str
    language: str = ""


@dataclass(frozen=True)
class Searched:
    """The outcome of one provider. ``status``: ``ok``, ``timed out``, ``failed``, ``disabled``, or ``to be asked``."""

    provider: SearchProvider
    status: str
    reason: str = ""
    seconds: float = 0.0
    answer: Json | None = None

    @property
    def results(self) -> list[Json]:
        return [] if self.answer is None else self.answer["results"]

    def as_json(self) -> Json:
        """The fields to record."""
        more = {key: value for key, value in (self.answer or {}).items() if key != "results" and value}
        return {
            "name": self.provider.name,
            "kind": self.provider.kind,
            "status": self.status,
            "reason": self.reason,
            "seconds": self.seconds,
            "found": len(self.results),
            **more,
        }


def ask_all(context: CheckContext, providers: Sequence[SearchProvider], question: SearchQuery) -> list[Searched]:
    """The outcome of each provider, in their order. Raises RunInterrupted."""
    # waits: for providers, ended by their time limits
    with ThreadPoolExecutor(max(1, len(providers)), thread_name_prefix="search") as pool:
        futures = [pool.submit(contextvars.copy_context().run, ask, context, each, question) for each in providers]
        return [each.result() for each in futures]  # waits: for providers, ended by their time limits


def ask(context: CheckContext, provider: SearchProvider, question: SearchQuery) -> Searched:
    """The outcome of ``provider``, including any failure; only RunInterrupted is raised."""
    if not provider.enabled:
        return Searched(provider, "disabled")
    if provider.kind == CODEX_WEB:
        return Searched(provider, "to be asked")
    if problem := missing(context, provider, question.folder):
        return Searched(provider, "failed", problem)
    arguments = json.dumps(_arguments(context, provider, question))
    try:
        ran = run_command(
            own_module(f"{searching.__name__}.{provider.kind}_search", arguments),
            context.workspace.root,
            _environment(context, provider),
            provider.timeout_seconds,
            output_limit_bytes=OUTPUT_BYTES,
            stopping=context.stopping,
            separate_errors=True,
        )
    except RunInterrupted:
        raise
    except UsageError as error:
        return Searched(provider, "failed", str(error))
    return _outcome(provider, ran)


def missing(context: CheckContext, provider: SearchProvider, folder: str) -> str:
    """What ``provider`` lacks to be queried at all, or an empty text."""
    if provider.kind == FILES:
        place = folder_of(context, provider, folder)
        if place is None:
            return "folder is missing"
        return "" if place.is_dir() else f"folder not found: {place}"
    unset = [name for name in provider.variables if not context.environment.get(name)]
    return f"missing environment variable {unset[0]}" if unset else ""


def folder_of(context: CheckContext, provider: SearchProvider, folder: str) -> Path | None:
    """The folder to search, relative to the workspace unless absolute; the check's own takes precedence."""
    named = folder or provider.folder
    return context.workspace.root / expanded(named) if named else None


def _arguments(context: CheckContext, provider: SearchProvider, question: SearchQuery) -> Json:
    asked = {"query": question.query, "count": question.count, "language": question.language}
    given: Json = {**asked, "characters": MOST_CHARACTERS}
    if provider.kind == HTTP:
        return {**given, "provider": provider.model_dump(mode="json"), "seconds": provider.timeout_seconds}
    folder = str(folder_of(context, provider, question.folder))
    name = f"{provider.name}.{zlib.crc32(os.fsencode(folder)):08x}.{INDEX}"  # one index per folder
    return {**given, "folder": folder, "index": str(context.run().folder / name)}


def _environment(context: CheckContext, provider: SearchProvider) -> dict[str, str]:
    """The environment without secrets, except those that the provider names."""
    named = {name: context.environment[name] for name in provider.variables}
    return own_environment({**without_secrets(context.environment), **named})


def _outcome(provider: SearchProvider, ran: CommandResult) -> Searched:
    if ran.timed_out:
        return Searched(provider, "timed out", f"no answer within {provider.timeout_seconds:g} s", ran.seconds)
    if ran.returncode:
        lines = ran.errors.strip().splitlines() or [f"its process ended with {ran.returncode}"]
        return Searched(provider, "failed", lines[-1][:LONGEST_REASON], ran.seconds)
    try:
        answer: Any = parse_json(ran.output)
    except ValueError as error:
        return Searched(provider, "failed", f"its process did not print JSON: {error}", ran.seconds)
    return Searched(provider, "ok", "", ran.seconds, answer)


def searched(topic: Json, found: Json, web: Json) -> Json:
    """A log entry; ``answered``: whether any provider did. ``web``: a role's own search, empty without one."""
    providers = [each for each in found.get("providers", []) if each["status"] not in NOT_ASKED]
    if web:
        reason = web.get("error", "") if web.get("status") == "failed" else "" if _has_searched(web) else NOT_SEARCHED
        fields = {"name": "web", "kind": CODEX_WEB, "status": "failed" if reason else "ok", "reason": reason}
        providers.append({**fields, "found": len(results_of_web(web))})
    number = sum(each["found"] for each in providers)
    return {
        "topic": topic["text"],
        "question": topic["question"],
        "depth": topic["depth"],
        "event": "searched" if number else "no_search_results",
        "found": number,
        "answered": any(each["status"] == "ok" for each in providers),
        "reason": "; ".join(f"{each['name']}: {each['reason']}" for each in providers if each["reason"]),
        "providers": providers,
        "other_languages": found.get("other_languages", []),
    }


def _has_searched(web: Json) -> bool:
    return int(web.get("web_searches", 0)) > 0


def results_of_web(web: Json) -> list[Json]:
    """Results of a role's own search in the form of other providers' results: only web pages with a text.

    Results that a role names without searching are made up.
    """
    given = web.get("results", []) if _has_searched(web) else []
    named = [each for each in given if each["snippet"].strip() and is_web_address(each["url"])]
    return [
        {
            "title": each["title"] or each["url"],
            "address": each["url"],
            "text": each["snippet"][:MOST_CHARACTERS],
            "shortened": shortened(each["snippet"][:MOST_CHARACTERS], len(each["snippet"])),
            "date": each["date"],
            "sketch": sketch(each["snippet"]),
            "provider": "web",
            "language": "",
            "duplicates": [],
        }
        for each in named
    ]
