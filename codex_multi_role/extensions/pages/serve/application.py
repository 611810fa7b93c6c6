"""The pages of one runs folder, as an ASGI application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from codex_multi_role.errors import CodexMultiRoleError, RunNotFound, StorageError
from codex_multi_role.extensions.pages.serve.access import Access
from codex_multi_role.extensions.pages.serve.comparison import Comparison
from codex_multi_role.extensions.pages.serve.followers import TOO_MANY, Followers, TooManyViewers
from codex_multi_role.extensions.pages.serve.forms import MOST_BYTES, Form, in_form_words, page, problem, with_form
from codex_multi_role.extensions.pages.serve.guard import RequestGuard
from codex_multi_role.extensions.pages.serve.listing import EVERY, SORTS, RunList, ServedRuns
from codex_multi_role.extensions.pages.serve.run_pages import RunPages
from codex_multi_role.extensions.pages.serve.starting import (
    FlowForm,
    RunStarter,
    as_sent,
    form_of,
    read_flows,
    worst_case_of,
)
from codex_multi_role.presentation.recorded import read_record

if TYPE_CHECKING:
    from codex_multi_role.extensions.machines.workers.shared_runs import SharedRuns

ASSETS: list[str | tuple[str, str]] = [
    (f"codex_multi_role.{room}", "assets") for room in ("extensions.pages.report", "extensions.pages.serve")
]
INTERNAL_ERROR = (500, "Internal error", "See the terminal of the server for details.")
NO_RUN = (404, "Run not found", "The start page lists all runs.")
NOT_STARTED_HERE = (
    "Runs are not started from these pages",
    "Workers execute the runs of this server. Submit goals with `codex-multi-role batch`.",
)


def create_application(
    runs_dir: Path,
    roles: Path | None,
    access: Access,
    is_ending: Callable[[], bool] = lambda: False,
    shared: SharedRuns | None = None,
) -> RequestGuard:
    """Build the application. ``roles``: as in `run`, for the forms. Streams and waits end once ``is_ending``.

    ``shared``: the runs that workers execute, which are shown as well.
    """
    starter = RunStarter(runs_dir, roles, is_ending)
    runs, worker_routes = _runs_of(runs_dir, starter, is_ending, shared)
    run_pages = RunPages(runs, Followers(access.form_secret, is_ending, runs.refresh), access.form_secret)
    first_pages = _FirstPages(runs, roles, access, starter)
    forms = {"/start": first_pages.start, **{f"/runs/{{run}}/{name}": act for name, act in run_pages.forms.items()}}
    application = Starlette(
        routes=[
            Route("/", first_pages.runs),
            Route("/start", first_pages.start_form),
            Route("/compare", first_pages.compare),
            *worker_routes,
            Route("/runs/{run}", run_pages.show),
            Route("/runs/{run}/decide", run_pages.decide),
            Route("/runs/{run}/panel", run_pages.panel),
            Route("/runs/{run}/tree", run_pages.tree),
            Route("/runs/{run}/search", run_pages.search),
            Route("/runs/{run}/changes", run_pages.changes),
            Route("/runs/{run}/events", run_pages.events),
            Route("/runs/{run}/report", run_pages.report),
            Route("/runs/{run}/files/{path:path}", run_pages.files),
            *(Route(path, with_form(access, act), methods=["POST"]) for path, act in forms.items()),
            Mount("/static", StaticFiles(packages=ASSETS)),
        ],
        middleware=[Middleware(RequestBodyLimitMiddleware, max_body_size=MOST_BYTES)],
        exception_handlers={HTTPException: _http_error, StorageError: _storage_error, 500: _problem(*INTERNAL_ERROR)}
        | {RunNotFound: _problem(*NO_RUN), TooManyViewers: _problem(503, *TOO_MANY)},
    )
    return RequestGuard(application, access)  # outermost, so that it also guards error responses


def _runs_of(
    runs_dir: Path, starter: RunStarter, is_ending: Callable[[], bool], shared: SharedRuns | None
) -> tuple[ServedRuns, list[Route]]:
    """The runs to show, and the page about workers."""
    if shared is None:
        return ServedRuns(runs_dir, starter, is_ending), []
    from codex_multi_role.extensions.pages.serve.runs_with_workers import (  # here: slow to import
        RunsWithWorkers,
        worker_page,
    )

    routes = [Route("/workers", partial(worker_page, shared.database))]
    return RunsWithWorkers(runs_dir, starter, is_ending, shared), routes


class _FirstPages:
    """The pages that are not about one run: the list, and the form that starts a run."""

    def __init__(self, runs: ServedRuns, roles: Path | None, access: Access, starter: RunStarter) -> None:
        self._list = RunList(runs.look)
        self._runs = runs
        self._roles = roles
        self._access = access
        self._starter = starter

    def runs(self, request: Request) -> Response:
        self._starter.reap()
        chosen = {name: request.query_params.get(name, "") for name in ("q", "show", "flow", "since", "sort")}
        number = 1
        with suppress(ValueError):  # not a number, or too long for one
            number = int(request.query_params.get("page", ""))
        rest = {name: text for name, text in chosen.items() if name not in ("q", "show")}
        show = chosen["show"] or EVERY
        listed = self._list.page(search=chosen["q"], show=show, number=number, **rest)

        def link(**changes: object) -> str:
            wanted = {name: each for name, each in {**chosen, **changes}.items() if each}
            return f"/?{urlencode(wanted)}"

        values: dict[str, Any] = {"runs_dir": str(self._runs.runs_dir), "has_workers": self._runs.has_workers}
        return page("runs.html", runs=listed, chosen={**chosen, "show": show}, link=link, sorts=SORTS, **values)

    def compare(self, request: Request) -> Response:
        """Two runs of one flow beside each other, visit by visit; one that is not comparable says so."""
        folders = [self._runs.folder(run_id) for run_id in request.query_params.getlist("run")][:2]
        found = [folder for folder in folders if folder is not None]
        if len(found) != 2:
            return problem(422, "Choose two runs to compare", "The first page has a box beside each run.")
        return page("compare.html", compared=Comparison.of(*found), has_workers=self._runs.has_workers)

    def start_form(self, request: Request) -> Response:
        """Show the flows or, once one is chosen, its form."""
        if self._runs.has_workers:
            return problem(404, *NOT_STARTED_HERE)
        folder = self._runs.folder(request.query_params.get("from", ""))
        record = read_record(folder) if folder is not None else {}
        flows = read_flows(self._roles)
        flow = flows.find(request.query_params.get("flow", "") or str(record.get("flow") or ""))
        if flow is None:
            return page("flows.html", flows=flows)
        return self._form_page(form_of(flow, self._roles, as_sent(record) if record else {}))

    async def start(self, request: Request, form: Form) -> Response:
        """Start the run that the form describes; on an error, show the form as it was sent, with the reason."""
        return await run_in_threadpool(self._start, form)

    def _start(self, sent: Form) -> Response:
        if self._runs.has_workers:
            return problem(404, *NOT_STARTED_HERE)
        flow = read_flows(self._roles).find(sent.get("flow", ""))
        if flow is None:
            return problem(404, "Flow not found", "Start a run lists all flows.")
        form = form_of(flow, self._roles, sent)
        if "estimate" in sent:
            return self._form_page(form)
        try:
            run_id = self._starter.start(form.run())
        except CodexMultiRoleError as error:
            return self._form_page(form, 422, in_form_words(str(error)), in_form_words(error.hint))
        return RedirectResponse(f"/runs/{run_id}?done=started", 303)

    def _form_page(self, form: FlowForm, status_code: int = 200, wrong: str = "", hint: str = "") -> Response:
        most = in_form_words(worst_case_of(form, self._roles))
        values = {"form": form, "most": most, "form_secret": self._access.form_secret}
        return page("start.html", status_code, **values, wrong=wrong, hint=hint)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, error.detail)


def _problem(status_code: int, title: str, advice: str) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        return problem(status_code, title, advice)

    return answer


async def _storage_error(request: Request, error: Exception) -> Response:
    return problem(503, "Not available now", f"{error}. {getattr(error, 'hint', '')}".strip())
