"""Forms: a few texts, accepted only from pages of this server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from codex_multi_role.web.access import Access
from codex_multi_role.web.templating import page

Form = dict[str, str]
FORM_TYPE = "application/x-www-form-urlencoded"
MOST_BYTES = 1024 * 1024
MOST_FIELDS = 200
READ_SECONDS = 10.0
SECRET = "form_secret"
STALE = (
    "This form has expired",
    "The server may have been restarted. Go back, reload the page, and submit the form again.",
)


def with_form(
    access: Access, act: Callable[[Request, Form], Awaitable[Response]]
) -> Callable[..., Awaitable[Response]]:
    """Create an endpoint that checks that the form comes from a page of ours and passes it to ``act``."""

    async def endpoint(request: Request) -> Response:
        form = await _read(request)
        if form is None:
            return problem(400, "This form cannot be read", "It is too large, malformed, or took too long to arrive.")
        if not access.is_own_form(form.pop(SECRET, "")):
            return problem(403, *STALE)
        return await act(request, form)

    return endpoint


def problem(status_code: int, title: str, advice: str = "") -> Response:
    """Render a page that says what is wrong and what to do."""
    return page("problem.html", status_code, title=title, advice=advice)


async def _read(request: Request) -> Form | None:
    if request.headers.get("content-type", "").partition(";")[0].strip() != FORM_TYPE:
        return None
    try:
        async with asyncio.timeout(READ_SECONDS):
            body = await request.body()
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"))
    except (TimeoutError, ValueError, ClientDisconnect):
        return None
