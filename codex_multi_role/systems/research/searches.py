"""The outcome of the search for a topic, and the results of a role's own web search."""

from __future__ import annotations

from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.sketches import sketch
from codex_multi_role.systems.research.search_providers import MOST_CHARACTERS
from codex_multi_role.systems.research.search_settings import CODEX_WEB
from codex_multi_role.systems.research.searching.addresses import is_web_address
from codex_multi_role.systems.research.searching.document_text import shortened

NOT_ASKED = ("disabled", "to be asked")
NOT_SEARCHED = "the role answered without searching the web: what it named does not count"


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
