"""One run: its page, its stream of events, its files, and what a person can do about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from codex_multi_role.errors import CodexMultiRoleError, RunNotFound, UsageError
from codex_multi_role.extensions.pages.report.changes import ON_PAGE, changes_part
from codex_multi_role.extensions.pages.report.entries import ReportEntry
from codex_multi_role.extensions.pages.report.page_parts import page_parts
from codex_multi_role.extensions.pages.report.rendering import template
from codex_multi_role.extensions.pages.report.run_tree import RunTree
from codex_multi_role.extensions.pages.serve.deciding import (
    ADD,
    OF_LINES,
    OF_VALUES,
    decision_of,
    field_name,
    values_of,
    with_box,
)
from codex_multi_role.extensions.pages.serve.followed_run import Facts
from codex_multi_role.extensions.pages.serve.followers import TOO_MANY, Followers
from codex_multi_role.extensions.pages.serve.forms import TEMPLATES, Form, in_form_words, page, problem
from codex_multi_role.extensions.pages.serve.listing import ServedRuns
from codex_multi_role.extensions.pages.serve.log_lines import LogFilter
from codex_multi_role.extensions.pages.serve.run_files import list_folder, real_path, sent_file
from codex_multi_role.extensions.pages.serve.starting import RunNotStarted
from codex_multi_role.presentation.outcome import RAISED
from codex_multi_role.presentation.recorded import changes_of, open_questions, read_record
from codex_multi_role.run_folder import Questions, RunFolder
from codex_multi_role.run_folder.folder import SHARED
from codex_multi_role.run_folder.owner import is_alive
from codex_multi_role.run_folder.past import START, beginnings, decision_before, events_with_inherited
from codex_multi_role.run_folder.typed_answers import OPTION

PING_SECONDS = 15
REPORT_POLICY = "; ".join(
    [
        "sandbox allow-scripts allow-modals",  # without allow-same-origin it cannot reach our pages
        "default-src 'none'",
        *(f"{what}-src 'unsafe-inline'" for what in ("script", "style")),
        *(f"{what}-src data:" for what in ("img", "font")),
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
DONE = {
    "approved": "Approved.",
    "rejected": "Rejected.",
    "answered": "Your answer is recorded.",
    "stopped": "The run is stopped. It can be resumed.",
    "paused": "The run parks once the turns at work have ended. It can be resumed.",
    "cancelled": "The task is cancelled: its turn ends, and tasks that depend on it are skipped.",
    "resumed": "The run continues.",
    "started": "The run has started.",
}
"""Confirmations by their name in the URL, so that a link cannot make the page show any other text."""

APPROVE = "approve"
MOST_POINTS = 100
LONGEST_SEARCH = 200
VERDICTS = (APPROVE, "reject")

Act = Callable[[RunFolder, Form], str]


class RunPages:
    """The pages below ``/runs/<id>``."""

    def __init__(self, runs: ServedRuns, followers: Followers, form_secret: str) -> None:
        self._runs = runs
        self._form_secret = form_secret
        self._followers = followers

    async def show(self, request: Request) -> Response:
        """Show the page of a run. ``latest`` and the beginning of an id redirect to it."""
        folder = await run_in_threadpool(self._runs.folder, request.path_params["run"])
        if folder is None:
            run_id = await run_in_threadpool(self._runs.run_id_of, request.path_params["run"])
            return RedirectResponse(f"/runs/{run_id}", 303)
        return await self._page(
            folder, chosen=request.query_params, done=DONE.get(request.query_params.get("done", ""), "")
        )

    async def panel(self, request: Request) -> Response:
        """What the entry ``?at=`` shows, as the part of the page that it fills."""
        folder = await run_in_threadpool(self._folder, request)
        entry, tree = await self._selected(folder, request.query_params)
        within = tree.path_to(entry.id) if entry else []
        return page("panel.html", 404 if entry is None else 200, entry=entry, within=within, run_id=folder.run_id)

    async def tree(self, request: Request) -> Response:
        """What is in the branch ``?of=`` of the tree."""
        folder = await run_in_threadpool(self._folder, request)
        wanted = request.query_params.get("of", "")
        branch = await self._followers.ask(folder, lambda run: run.tree().branch(wanted))
        return problem(404, "Branch not found") if branch is None else page("tree.html", branch=branch)

    async def search(self, request: Request) -> Response:
        """The entries of the kind ``?kind=`` that have the text ``?text=``, from the place ``?after=`` on, as JSON."""
        folder = await run_in_threadpool(self._folder, request)
        wanted, kind = (request.query_params.get(name, "")[:LONGEST_SEARCH] for name in ("text", "kind"))
        after = _number(request.query_params.get("after"))
        found, place, whole = await self._followers.ask(folder, lambda run: run.search(wanted, kind, after))
        html = template("tree.html", TEMPLATES).render(found=found)
        return JSONResponse({"html": html, "found": len(found), "next": place, "whole": whole})

    async def _selected(self, folder: RunFolder, chosen: Mapping[str, str]) -> tuple[ReportEntry | None, RunTree]:
        at, opened = (chosen.get(name, "") for name in ("at", "open"))
        return await self._followers.ask(folder, lambda run: (run.entry(at), run.tree(at, opened)))

    async def decide(self, request: Request) -> Response:
        """Show a question of the run with what the decision needs: the one that ``?question=`` names, or the first."""
        folder = await run_in_threadpool(self._folder, request)
        asked = request.query_params.get("question", "")
        return await run_in_threadpool(self._decision, folder, {"question": asked})

    def _decision(self, folder: RunFolder, sent: Form, *, wrong: str = "", hint: str = "") -> Response:
        self._runs.refresh(folder)
        pending = open_questions(folder, folder.record())
        key = sent.get("question", "")
        question = next((each for each in pending if each.key == key or not key), None)
        if question is None:
            if wrong:
                return problem(409, wrong, hint)
            return RedirectResponse(f"/runs/{folder.run_id}", 303)  # it was answered, or the run is over
        if ADD in sent:
            sent = with_box(sent)
        decision = decision_of(folder, question, pending, sent)
        values = {"run_id": folder.run_id, "record": folder.record(), "decision": decision, "name_of": field_name}
        values |= {"form_secret": self._form_secret, "has_workers": self._runs.has_workers}
        values["diff"] = folder.command("diff", "--since", decision.situation.since or START)
        wrong, hint = wrong.removeprefix(f"{question.key}: "), "" if decision.fields else hint
        values |= {"goes_on": is_alive(folder) or SHARED in folder.record(), "of_values": OF_VALUES, "on": OF_LINES}
        return page("decision.html", 409 if wrong else 200, **values, wrong=wrong, hint=hint)

    def changes(self, request: Request) -> Response:
        """Show what changed since ``?since=``, a point of the run, line by line, and what extensions say of it."""
        folder = self._folder(request)
        since = request.query_params.get("since", START)
        try:
            changes = changes_of(folder, since)
        except UsageError as error:
            return problem(404, "These changes are not recorded", str(error))
        parts = page_parts(folder, [each.path for each in changes.files])
        values: dict[str, Any] = {"since": since, "decided": decision_before(folder, ""), "parts": parts}
        values |= {"shown": changes_part(folder, changes, since, ON_PAGE), "has_workers": self._runs.has_workers}
        goal = read_record(folder).get("goal") or folder.run_id
        return page("changes.html", run_id=folder.run_id, goal=goal, **values)

    async def events(self, request: Request) -> Response:
        """Stream what is new after ``Last-Event-ID`` or ``?after=`` as server-sent events."""
        folder = await run_in_threadpool(self._folder, request)
        if self._followers.full:
            return PlainTextResponse(TOO_MANY[0], 503, {"Retry-After": "30"})
        after = _number(request.headers.get("last-event-id") or request.query_params.get("after"))
        known = frozenset(request.query_params.get("known", "").split(","))
        stream = self._followers.stream(folder, after, known)
        return EventSourceResponse(stream, ping=PING_SECONDS)

    def files(self, request: Request) -> Response:
        """Send a file of the run as a download, or list one of its folders."""
        folder, wanted = self._runs.folder(request.path_params["run"]), request.path_params["path"]
        path = real_path(folder.path, wanted) if folder is not None else None
        if folder is None or path is None:
            return problem(404, "File not found")
        if (folder.path / path).is_dir():
            listed: dict[str, Any] = {"path": path.as_posix(), "entries": list_folder(folder.path, path)}
            return page("files.html", run_id=folder.run_id, has_workers=self._runs.has_workers, **listed)
        name = quote(path.name, safe="")
        kind = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
        return self._send(folder, path, "text/plain; charset=utf-8", kind)

    def report(self, request: Request) -> Response:
        """Send the run's report as a page that cannot reach anything of ours."""
        folder = self._folder(request)
        self._runs.complete_report(folder)
        path = real_path(folder.path, folder.report_path.name)
        if path is None:
            return problem(404, "This run has no report", f"`{folder.command('report')}` writes one.")
        return self._send(folder, path, "text/html; charset=utf-8", {"Content-Security-Policy": REPORT_POLICY})

    @property
    def forms(self) -> dict[str, Callable[[Request, Form], Awaitable[Response]]]:
        """What a person can do about a run, by the path below its page."""
        acts = {
            "answer": self._answer,
            "stop": self._stop,
            "pause": self._pause,
            "cancel-task": self._cancel_task,
            "resume": self._resume,
            "fork": self._fork,
        }
        return {name: partial(self._act, act) for name, act in acts.items()}

    async def _act(self, act: Act, request: Request, form: Form) -> Response:
        """Call ``act``, then redirect to the run's page; on an error, show the page with the reason."""
        folder = await run_in_threadpool(self._folder, request)
        try:
            if ADD in form:
                return await run_in_threadpool(self._decision, folder, form)
            done = await run_in_threadpool(act, folder, form)
        except CodexMultiRoleError as error:
            wrong, hint = in_form_words(str(error)), in_form_words(error.hint)
            if act == self._answer and not isinstance(error, RunNotStarted):
                form.pop(ADD, None)
                return await run_in_threadpool(partial(self._decision, folder, form, wrong=wrong, hint=hint))
            return await self._page(folder, 409, wrong=wrong, hint=hint)
        run_id, _, done = done.rpartition("?")
        return RedirectResponse(f"/runs/{run_id or folder.run_id}?done={done}", 303)

    async def _page(
        self,
        folder: RunFolder,
        status_code: int = 200,
        *,
        chosen: Mapping[str, str] = MappingProxyType({}),
        done: str = "",
        wrong: str = "",
        hint: str = "",
    ) -> Response:
        """``chosen``: what the address selects, an entry, a branch and lines of the log."""
        snapshot = await self._followers.snapshot(folder)
        entry, tree = await self._selected(folder, chosen)
        if snapshot.facts is None:
            raise RunNotFound(folder.run_id)
        parts = snapshot.named
        if chosen.get("at") or chosen.get("open"):
            parts["tree"] = replace(parts["tree"], html=template("tree.html", TEMPLATES).render(tree=tree))
        values: dict[str, Any] = {"run_id": folder.run_id, "snapshot": snapshot, "facts": snapshot.facts}
        values |= {"parts": parts, "within": []}
        values |= {"has_workers": self._runs.has_workers, "form_secret": self._form_secret}
        values |= {"entry": entry, "wanted": LogFilter(*(chosen.get(name, "") for name in ("role", "level", "text")))}
        values["points"] = await run_in_threadpool(_points, folder, snapshot.facts)
        return page("run.html", status_code, **values, done=done, wrong=wrong, hint=hint)

    def _folder(self, request: Request) -> RunFolder:
        """Raises `RunNotFound`."""
        if folder := self._runs.folder(request.path_params["run"]):
            return folder
        raise RunNotFound(request.path_params["run"])

    def _send(self, folder: RunFolder, path: Path, media_type: str, headers: dict[str, str]) -> Response:
        return sent_file(folder.path, path, media_type, headers) or problem(404, "File not found")

    def _answer(self, folder: RunFolder, form: Form) -> str:
        chosen = f"{OF_VALUES}{OPTION}" in form  # its button
        if not chosen and form.get("verdict") not in VERDICTS:
            raise UsageError("No answer was chosen", "Approve or reject.")
        approved, comment = chosen or form["verdict"] == APPROVE, form.get("comment", "").strip()
        question = form.get("question", "")
        if not approved and not comment:
            raise UsageError("A rejection needs a comment", "Give the reason; the roles may read it.")
        asked = Questions(folder.path).find(question)
        values = values_of(asked, form) if asked is not None else {}
        answered = self._runs.answer(folder, approved=approved, comment=comment, question=question, values=values)
        if form.get("go_on"):
            try:
                self._runs.go_on(folder)
            except CodexMultiRoleError as error:
                message = f"Your answer is recorded, but the run does not resume:\n{error}"
                raise RunNotStarted(message, error.hint) from error
        return "answered" if answered.words and approved else "approved" if approved else "rejected"

    def _stop(self, folder: RunFolder, form: Form) -> str:
        self._runs.stop(folder)
        return "stopped"

    def _pause(self, folder: RunFolder, form: Form) -> str:
        self._runs.pause(folder)
        return "paused"

    def _cancel_task(self, folder: RunFolder, form: Form) -> str:
        self._runs.cancel_task(folder, form.get("task", ""), form.get("comment", "").strip())
        return "cancelled"

    def _fork(self, folder: RunFolder, form: Form) -> str:
        return f"{self._runs.fork(folder, form.get('point', ''))}?started"

    def _resume(self, folder: RunFolder, form: Form) -> str:
        self._runs.resume(folder, {name: form[name].strip() for name in RAISED if form.get(name, "").strip()})
        return "resumed"


def _number(text: str | None) -> int:
    """A place in an address; 0 for anything else."""
    with suppress(ValueError):  # not a number, or too long for one
        return max(0, int(text or 0))
    return 0


def _points(folder: RunFolder, facts: Facts) -> list[str]:
    """Where a fork may begin: the latest visits of steps of a run that has ended in this folder."""
    if facts.alive or facts.is_shared or "options" not in facts.record:
        return []
    return [f"{each.step}:{each.visit}" for each in beginnings(events_with_inherited(folder))][-MOST_POINTS:]
