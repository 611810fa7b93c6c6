"""Asking the search providers: each in a process of its own, with its own time limit, all at the same time."""

from __future__ import annotations

import contextvars
import json
import os
import sys
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.checks.data_file import parse_json
from codex_multi_role.checks.search_settings import CODEX_WEB, FILES, HTTP, SearchProvider
from codex_multi_role.errors import RunInterrupted, UsageError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.redaction import without_secrets
from codex_multi_role.workspace import CommandResult, run_command

INDEX = "search.2.sqlite"
"""The number changes with its tables: a run that an earlier version began reads the folder again."""
MOST_CHARACTERS = 8_000
"""Of one result."""
OUTPUT_BYTES = 8 * 1024 * 1024
LONGEST_REASON = 300
_PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from searching.{0}_search import main; main()"


@dataclass(frozen=True)
class SearchQuery:
    """What is searched for: ``count`` results of each provider. ``folder``: that of the check, or empty.

    ``language``: of the results to count, or empty; others come on top.
    """

    query: str
    count: int
    folder: str
    language: str = ""


@dataclass(frozen=True)
class Searched:
    """What came of one provider. ``status``: ``ok``, ``timed out``, ``failed``, ``disabled``, or ``to be asked``."""

    provider: SearchProvider
    status: str
    reason: str = ""
    seconds: float = 0.0
    answer: Json | None = None

    @property
    def results(self) -> list[Json]:
        return [] if self.answer is None else self.answer["results"]

    def told(self) -> Json:
        """For the record."""
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
    """What came of each, in their order. Raises RunInterrupted."""
    with ThreadPoolExecutor(max(1, len(providers)), thread_name_prefix="search") as pool:
        begun = [pool.submit(contextvars.copy_context().run, ask, context, each, question) for each in providers]
        return [each.result() for each in begun]


def ask(context: CheckContext, provider: SearchProvider, question: SearchQuery) -> Searched:
    """What came of ``provider``; no failure of it is raised, only RunInterrupted."""
    if not provider.enabled:
        return Searched(provider, "disabled")
    if provider.kind == CODEX_WEB:
        return Searched(provider, "to be asked")
    if problem := missing(context, provider, question.folder):
        return Searched(provider, "failed", problem)
    try:
        ran = run_command(
            [sys.executable, "-I", "-c", _PROGRAM.format(provider.kind), str(Path(__file__).parent),
             json.dumps(_arguments(context, provider, question))],
            context.workspace.root,
            _environment(context, provider),
            provider.timeout_seconds,
            output_limit_bytes=OUTPUT_BYTES,
            stopping=context.stopping,
            separate_errors=True,
        )  # fmt: skip
    except RunInterrupted:
        raise
    except UsageError as error:
        return Searched(provider, "failed", str(error))
    return _judged(provider, ran)


def missing(context: CheckContext, provider: SearchProvider, folder: str) -> str:
    """What ``provider`` lacks to be asked at all, or an empty text."""
    if provider.kind == FILES:
        place = folder_of(context, provider, folder)
        if place is None:
            return "no folder is named"
        return "" if place.is_dir() else f"there is no folder {place}"
    unset = [name for name in provider.variables if not context.environment.get(name)]
    return f"the environment has no {unset[0]}" if unset else ""


def folder_of(context: CheckContext, provider: SearchProvider, folder: str) -> Path | None:
    """The folder to search, relative to the workspace unless it is absolute; the check's own comes first."""
    named = folder or provider.folder
    return context.workspace.root / Path(named).expanduser() if named else None


def _arguments(context: CheckContext, provider: SearchProvider, question: SearchQuery) -> Json:
    given: Json = {
        "query": question.query,
        "count": question.count,
        "characters": MOST_CHARACTERS,
        "language": question.language,
    }
    if provider.kind == HTTP:
        return {**given, "provider": provider.model_dump(mode="json"), "seconds": provider.timeout_seconds}
    folder = str(folder_of(context, provider, question.folder))
    name = f"{provider.name}.{zlib.crc32(os.fsencode(folder)):08x}.{INDEX}"  # an index is of one folder
    return {**given, "folder": folder, "index": str(context.run().folder / name)}


def _environment(context: CheckContext, provider: SearchProvider) -> dict[str, str]:
    """Without any secret but those that the provider names."""
    named = {name: context.environment[name] for name in provider.variables}
    return {**without_secrets(context.environment), **named}


def _judged(provider: SearchProvider, ran: CommandResult) -> Searched:
    if ran.timed_out:
        return Searched(provider, "timed out", f"no answer within {provider.timeout_seconds:g} s", ran.seconds)
    if ran.returncode:
        lines = ran.errors.strip().splitlines() or [f"its process ended with {ran.returncode}"]
        return Searched(provider, "failed", lines[-1][:LONGEST_REASON], ran.seconds)
    try:
        answer: Any = parse_json(ran.output)
    except ValueError as error:
        return Searched(provider, "failed", f"its process gave no JSON: {error}", ran.seconds)
    return Searched(provider, "ok", "", ran.seconds, answer)
