"""The search provider ``http``: one request to an endpoint, and JMESPath expressions on its JSON."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote

import jmespath

from codex_multi_role.extensions.research.searching.addresses import is_web_address
from codex_multi_role.extensions.research.searching.document_text import page_text, shortened
from codex_multi_role.host.spelling import with_texts
from codex_multi_role.reading.sketches import sketch

LARGEST_ANSWER_BYTES = 2 * 1024 * 1024
MOST_ENTRIES = 100
KEYS = {"title": "title", "address": "url", "text": "snippet", "date": "date"}


class EndpointFailed(Exception):
    """The endpoint gave no usable answer; the message says why, and never names a secret."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuse redirects: secrets in the request are for the configured endpoint, not for where it leads."""

    def redirect_request(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - as urllib declares it
        return None


def search(
    provider: dict[str, Any], query: str, count: int, characters: int, language: str, seconds: float
) -> dict[str, Any]:
    """Query the endpoint that ``provider`` describes (see `search_settings.SearchProvider`).

    Returns ``{results: [{title, address, text, date, sketch, shortened}], notes}``. With a ``language``, all entries up
    to `MOST_ENTRIES` are results, because the languages of their texts decide which of them count. Raises
    EndpointFailed.
    """
    answer = _fetched(_request(provider, query, count), seconds)
    entries = jmespath.search(provider["results"], answer)
    if not isinstance(entries, list):
        raise EndpointFailed(f"its answer has no list at {provider['results']!r}")
    results, dropped = [], 0
    for entry in entries[: MOST_ENTRIES if language else count]:
        fields = {name: _text(jmespath.search(provider[key], entry)) for name, key in KEYS.items()}
        fields["text"] = page_text(fields["text"])
        text = fields["text"][:characters]
        if is_web_address(fields["address"]) and text:
            more = {"sketch": sketch(text), "shortened": shortened(text, len(fields["text"]))}
            results.append({**fields, "text": text, "title": fields["title"] or fields["address"], **more})
        else:
            dropped += 1
    notes = [f"{dropped} results without an address or a text were left out"] if dropped else []
    return {"results": results, "notes": notes}


def _request(provider: dict[str, Any], query: str, count: int) -> urllib.request.Request:
    """The request; ``secrets`` names variables of this process."""
    url = provider["endpoint"].replace("{query}", quote(query, safe="")).replace("{count}", str(count))
    headers = {"Accept": "application/json", "User-Agent": "codex-multi-role", **provider["headers"]}
    headers |= {name: _secret(value) for name, value in provider["secrets"].items()}
    data = None
    if provider["body"] is not None:
        data = json.dumps(_filled(provider["body"], query, count)).encode()
        headers["Content-Type"] = "application/json"
    return urllib.request.Request(url, data, headers)


def _secret(value: str) -> str:
    """``Bearer KEY`` or ``KEY``, with the value of that variable."""
    scheme, _, variable = value.rpartition(" ")
    return f"{scheme} {os.environ[variable]}".lstrip()


def _filled(value: Any, query: str, count: int) -> Any:  # noqa: ANN401 - JSON
    return with_texts(value, lambda text: count if text == "{count}" else text.replace("{query}", query))


def _fetched(request: urllib.request.Request, seconds: float) -> Any:  # noqa: ANN401 - JSON
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=seconds) as response:
            data = response.read(LARGEST_ANSWER_BYTES + 1)
    except HTTPError as error:
        error.close()
        raise EndpointFailed(f"HTTP status {error.code}") from error
    except URLError as error:
        raise EndpointFailed(f"cannot be reached: {error.reason}") from error
    except (OSError, ValueError) as error:
        raise EndpointFailed(f"cannot be reached: {error}") from error
    if len(data) > LARGEST_ANSWER_BYTES:
        raise EndpointFailed(f"its answer is larger than {LARGEST_ANSWER_BYTES} bytes")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise EndpointFailed(f"its answer is not valid JSON: {error}") from error


def _text(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(each for each in value if isinstance(each, str))
    return str(value) if isinstance(value, str | int | float) else ""


def main() -> None:
    """Run `search` with its arguments as JSON in the first argument."""
    try:
        print(json.dumps(search(**json.loads(sys.argv[1]))))  # noqa: T201 - what the parent reads
    except (EndpointFailed, jmespath.exceptions.JMESPathError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
