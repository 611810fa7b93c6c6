"""The checks of every request (host, token, origin) and the headers of every response."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from codex_multi_role.extensions.pages.serve.access import Access
from codex_multi_role.extensions.pages.serve.forms import page

COOKIE = "codex_multi_role"
COOKIE_SECONDS = 30 * 24 * 3600
OPEN_PATHS = "/static/"
"""What the page that asks for the token needs; it contains nothing of a run."""
SAFE_METHODS = ("GET", "HEAD")
POLICY = "; ".join(
    [
        "default-src 'none'",
        *(f"{what}-src 'self'" for what in ("script", "style", "img", "connect")),
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # "no-referrer" would hide a form's origin from us as well
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Default headers of every response."""


class RequestGuard:
    """Refuses every request that comes neither from a page of this server nor from the address bar."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await (self._refusal(Request(scope)) or self.app)(scope, receive, send_guarded)

    def _refusal(self, request: Request) -> Response | None:
        """Return the response to a refused request; None if it may continue."""
        if {"content-length", "transfer-encoding"} <= {*request.headers}:  # a proxy in front may see its end elsewhere
            return PlainTextResponse("The length of the request is ambiguous.", 400, {"Connection": "close"})
        if not self._access.serves(request.headers.get("host", "")):
            return PlainTextResponse("Unknown host name.", 421)
        if self._is_cross_site(request):
            return PlainTextResponse("Requests from other sites are not accepted.", 403)
        if self._access.token is None or request.scope["path"].startswith(OPEN_PATHS):
            return None
        return self._check_token(request)

    def _check_token(self, request: Request) -> Response | None:
        cookie = f"{COOKIE}_{request.url.port or 0}"  # all ports of a host share its cookies
        given, safe = request.query_params.get("token"), request.method in SAFE_METHODS
        admitted = safe and given is not None and self._access.admits(given)
        if not admitted:
            if self._access.knows(request.cookies.get(cookie, "")):
                return None
            return page("token.html", 401, wrong=given is not None, again=safe)
        rest = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "token"])
        path = f"/{request.url.path.lstrip('/')}"  # "//host" would lead to another site
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        answer.set_cookie(
            cookie,
            self._access.cookie,
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="lax",
            secure=(self._access.public_url or "").startswith("https:"),
        )
        return answer

    def _is_cross_site(self, request: Request) -> bool:
        """Whether another site's page made the browser send this; following a link to a page is harmless."""
        site = request.headers.get("sec-fetch-site", "none")
        followed = request.method in SAFE_METHODS and request.headers.get("sec-fetch-dest") == "document"
        if site not in ("none", "same-origin") and not followed:
            return True
        origin = request.headers.get("origin")
        return origin is not None and not self._access.is_own_origin(origin, request.headers.get("host", ""))
