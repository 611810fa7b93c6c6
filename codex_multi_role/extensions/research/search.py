"""The checks ``search`` and ``search_ready``: query the providers of ``search.yaml``, and test their readiness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, ResultPart, Settings, declare_check
from codex_multi_role.errors import CheckFailed, UsageError, how_to_add
from codex_multi_role.extensions.research.search_providers import Searched, SearchQuery, ask_all, missing
from codex_multi_role.extensions.research.search_settings import (
    CODEX_WEB,
    FILES,
    LONGEST_SECONDS,
    SEARCH_FILE,
    SearchFile,
    SearchProvider,
)
from codex_multi_role.extensions.research.searching.addresses import place
from codex_multi_role.extensions.research.searching.document_text import language_of
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.sketches import nearly_same

MOST_RESULTS = 20
SPARE = 2
"""Each provider returns this many times the wanted results: some are copies, or in another language."""


class _Searched(CheckOptions):
    folder: str = Field(default="", description="a folder of documents")
    language: str = Field(default="", pattern=r"^([a-z]{2,3})?$", description="a language's code, such as en")


class ReadyOptions(_Searched):
    """Like the options of the check ``search``. ``web_role``: the role that searches for a provider ``codex-web``."""

    web_role: str = Field(default="web_searcher", min_length=1, description="the name of a role")


class SearchOptions(_Searched):
    """``folder`` is what a provider ``files`` searches; ``language`` is the ISO 639-1 code to keep, or empty."""

    query: str = Field(min_length=1, max_length=2_000, description="the search query")
    results: int = Field(default=5, ge=1, le=MOST_RESULTS, description="the maximum number of results, from 1 to 20")


_SETTINGS = Settings(SEARCH_FILE, SearchFile)


def _longest(options: Mapping[str, object], deadline_seconds: float) -> float:
    return LONGEST_SECONDS


class OtherLanguage(ResultPart):
    address: str
    language: str


class SearchResult(CheckResult):
    """``results``: ``{title, address, text, date, sketch, shortened, provider, language, duplicates: [address]}``.

    Those of the providers alternate, best first; those with the same address or nearly the same text are one.
    ``shortened``: how much of its text a result has, if not all. ``left_out`` counts those beyond the option
    ``results``. ``providers``: ``{name, kind, status, reason, seconds, found}`` and what a provider reports itself.
    ``ask_web``: a role's own web search is a provider that must still be asked; the status says so if no other
    answered.
    """

    bad = ()

    status: Literal["found", "nothing", "to be asked"]
    query: str
    results: list[Json]
    providers: list[Json]
    other_languages: list[OtherLanguage]
    left_out: int
    ask_web: bool


class UnreadDocument(ResultPart):
    address: str
    reason: str


class SearchReadyResult(CheckResult):
    """``providers``: their names; ``documents`` counts those that were read."""

    status: Literal["ready"]
    providers: list[str]
    documents: int
    unread: list[UnreadDocument]
    notes: list[str]


@declare_check(options=SearchOptions, result=SearchResult, max_seconds=_longest, read_only=True, settings=_SETTINGS)
def search(context: CheckContext) -> SearchResult:
    """Query every enabled provider; combine the results.

    Raises CheckFailed with all reasons if no provider answered, UsageError if none is enabled.
    """
    options = context.read_options(SearchOptions, "search")
    settings: SearchFile = context.settings()
    count = MOST_RESULTS if options.language else min(MOST_RESULTS, options.results * SPARE)
    question = SearchQuery(options.query, count, options.folder, options.language)
    searched = ask_all(context, settings.providers, question)
    ask_web = any(each.status == "to be asked" for each in searched)
    answered = any(each.status == "ok" for each in searched)
    if not ask_web and not answered:
        raise _no_answer(searched)
    found, others = _in_language(_interleaved(searched), options.language)
    results = combined(found)
    return SearchResult(
        status="found" if results else "nothing" if answered else "to be asked",
        query=options.query,
        results=results[: options.results],
        providers=[each.as_json() for each in searched],
        other_languages=others,
        left_out=max(0, len(results) - options.results),
        ask_web=ask_web,
    )


@declare_check(options=ReadyOptions, result=SearchReadyResult, max_seconds=_longest, read_only=True, settings=_SETTINGS)
def search_ready(context: CheckContext) -> SearchReadyResult:
    """Test, before a model is asked, that there is something to search; read the folder, so that no search waits.

    Raises UsageError if no provider is enabled, one lacks what it needs, or a folder without documents is all there is
    to search.
    """
    options = context.read_options(ReadyOptions, "search_ready")
    providers = [each for each in context.settings().enabled if each.kind != FILES or options.folder or each.folder]
    if not providers:
        message = "nothing to search: no folder of sources, and no other provider is enabled"
        raise UsageError(message, f"Give --input sources=DIR, or enable a provider in roles/{SEARCH_FILE}.")
    for provider in providers:
        if problem := _obstacle(context, provider, options):
            hint = _hint(provider, options.web_role)
            raise UsageError(f"the search provider {provider.name} cannot be used: {problem}", hint)
    if options.language:
        _language_of("A text that is long enough to tell which language it is in.")
    patience = {"timeout_seconds": LONGEST_SECONDS}  # the first read of a folder may take long
    folders = [each.model_copy(update=patience) for each in providers if each.kind == FILES]
    read = [each.as_json() for each in ask_all(context, folders, SearchQuery("", 1, options.folder))]
    documents = sum(each.get("documents", 0) for each in read)
    if len(read) == len(providers) and not documents:
        raise UsageError(_without_documents(read), "Documents are .md, .txt, .html and .pdf.")
    return SearchReadyResult(
        status="ready",
        providers=[provider.name for provider in providers],
        documents=documents,
        unread=[each for answer in read for each in answer.get("unread", [])],
        notes=[note for answer in read for note in (*answer.get("notes", []), answer["reason"]) if note],
    )


def combined(found: Sequence[Json]) -> list[Json]:
    """``found`` without duplicates by address or text; the first one stays and lists its ``duplicates``."""
    kept: list[Json] = []
    for result in found:
        first = same_source(result, kept)
        if first is None:
            kept.append({**result, "duplicates": []})
        elif place(first) != place(result) and result["address"] not in first["duplicates"]:
            first["duplicates"].append(result["address"])
    return kept


def same_source(result: Json, known: Sequence[Json]) -> Json | None:
    """The first of ``known`` with the address or nearly the text of ``result``, or None."""
    same = (each for each in known if place(each) == place(result) or nearly_same(each["sketch"], result["sketch"]))
    return next(same, None)


def _interleaved(searched: Sequence[Searched]) -> Iterator[Json]:
    named = ([{**result, "provider": each.provider.name} for result in each.results] for each in searched)
    for row in zip_longest(*named):
        yield from (result for result in row if result is not None)


def _in_language(found: Iterator[Json], language: str) -> tuple[list[Json], list[OtherLanguage]]:
    """The results to keep, each with its ``language`` if one is wanted, and those in other languages."""
    kept, others = [], []
    for result in found:
        detected = _language_of(result["text"]) if language else ""
        if detected in ("", language):
            kept.append({**result, "language": detected})
        else:
            others.append(OtherLanguage(address=result["address"], language=detected))
    return kept, others


def _no_answer(searched: Sequence[Searched]) -> CheckFailed | UsageError:
    asked = [each for each in searched if each.status != "disabled"]
    if not asked:
        return UsageError("no search provider is enabled", f"Enable one in roles/{SEARCH_FILE}.")
    reasons = "; ".join(f"{each.provider.name}: {each.reason}" for each in asked)
    return CheckFailed(f"no search provider answered: {reasons}", "`codex-multi-role resume RUN` searches again.")


def _without_documents(read: Sequence[Json]) -> str:
    unread = [f"{each['address']}: {each['reason']}" for answer in read for each in answer.get("unread", [])]
    failed = [answer["reason"] for answer in read if answer["reason"]]
    return "; ".join(["there are no documents to search", *failed, *unread[:5]])


def _obstacle(context: CheckContext, provider: SearchProvider, options: ReadyOptions) -> str:
    if provider.kind == CODEX_WEB and not context.run().searches_web(options.web_role):
        return f"the role {options.web_role} has no web search"
    return missing(context, provider, options.folder)


def _hint(provider: SearchProvider, web_role: str) -> str:
    if provider.kind == CODEX_WEB:
        where = f"codex_config: {{web_search: live}} in roles/{web_role}.yaml"
        return f"Write {where}, or run with -c 'web_search=\"live\"'."
    return "Give --input sources=DIR." if provider.kind == FILES else f"Set it, or fix roles/{SEARCH_FILE}."


def _language_of(text: str) -> str:
    """`language_of`. Raises UsageError without its library."""
    try:
        return language_of(text)
    except ImportError as error:
        hint = f"{how_to_add('research')}, or leave the language out."
        raise UsageError("a filter by language needs py3langid, which is not installed", hint) from error
