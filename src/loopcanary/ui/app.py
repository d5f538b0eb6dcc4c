"""Addresses to pages. Pages are made on threads: a store may be slow."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from loopcanary.document import markdown
from loopcanary.document.layout import Sheet, lines, painted
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue
from loopcanary.model.search import IssueGroup, IssueQuery, Remark
from loopcanary.protocols.stores import IssueStore
from loopcanary.report import as_json
from loopcanary.report.documents import document_of
from loopcanary.report.model import of_issue
from loopcanary.ui.live import Now, Watch, events
from loopcanary.ui.pages.bug import bug_page
from loopcanary.ui.pages.changes import changes_page
from loopcanary.ui.pages.doctor import doctor_page
from loopcanary.ui.pages.frames import frames_page
from loopcanary.ui.pages.groups import groups_page
from loopcanary.ui.pages.issue import issue_page
from loopcanary.ui.pages.methods import methods_page
from loopcanary.ui.pages.overview import overview_page
from loopcanary.ui.pages.sessions import session_page, sessions_page
from loopcanary.ui.pages.stalls import stalls_page
from loopcanary.ui.pages.startups import startup_page
from loopcanary.ui.query_params import before_of, filters_of, page_of, part_of
from loopcanary.ui.rendering import STATIC, Renderer, url
from loopcanary.ui.sources import OneStore
from loopcanary.ui.tools import Tools

_NOTE_MAX = 10_000
_FORM_BYTES_MAX = 200_000
_HERE = {
    "overview.html": "overview",
    "changes.html": "changes",
    "stalls.html": "groups",
    "sessions.html": "sessions",
    "session.html": "sessions",
    "frames.html": "frames",
    "startup.html": "startup",
    "methods.html": "methods",
    "doctor.html": "doctor",
}
"""The place of each template in the navigation; bugs and issues have that of their kind."""
_IN_PARTS = frozenset({"doctor.html"})
"""Pages that are sent while they are made, because that takes seconds."""
_HERE_OF = {"": "groups", "stall": "groups", "startup": "startup", "slow-method": "methods"}
Page = tuple[str, dict[str, Any]] | None
"""A template and its values; None: the page shows something that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    watch: Watch
    tools: Tools
    renderer: Renderer
    errors: tuple[type[Exception], ...]
    """The errors of a store, whose words are for people."""
    is_over: Callable[[], bool]
    """Whether the server is about to end, so that streams must, too."""


def application(site: Site) -> Starlette:
    """The pages, without the guard."""
    pages = _Pages(site)
    return Starlette(
        routes=[
            Route("/", pages.made(pages.overview)),
            Route("/groups", pages.made(pages.groups)),
            Route("/group", pages.made(pages.group)),
            Route("/group/delete", pages.made(pages.ask_delete)),
            Route("/group/delete", pages.delete, methods=["POST"]),
            Route("/group/remark", pages.remark, methods=["POST"]),
            Route("/issue", pages.made(pages.issue)),
            Route("/stalls", pages.made(pages.stalls)),
            Route("/stall/export", pages.export),
            Route("/sessions", pages.made(pages.sessions)),
            Route("/session", pages.made(pages.session)),
            Route("/changes", pages.made(pages.changes)),
            Route("/frames", pages.made(pages.frames)),
            Route("/startup", pages.made(pages.startup)),
            Route("/methods", pages.made(pages.methods)),
            Route("/doctor", pages.made(pages.doctor)),
            Route("/live", pages.live),
            *(Route(path, _moved_to(there)) for path, there in _MOVED.items()),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers={404: pages.not_found},
    )


class _Pages:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._source = site.watch.source
        self._tools = site.tools
        self._are_several = len(site.watch.stores) > 1

    def made(self, page: Callable[[Request], Page]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(self._answer, request, page)

        return endpoint

    def _answer(self, request: Request, page: Callable[[Request], Page]) -> Response:
        request.state.now = now = self._site.watch.now()
        try:
            found = page(request)
        except self._site.errors as error:
            now = self._site.watch.after(now)
            # Mostly the last look found the same, and the page shows it above.
            words = "" if any(str(error) in line for line in now.trouble) else str(error)
            title = f"The {'stores' if self._are_several else 'store'} cannot be read"
            return self._render(503, "trouble.html", now, title=title, words=words)
        now = self._site.watch.after(now)
        if found is None:
            return self._missing(now)
        template, values = found
        return self._render(200, template, now, **values)

    def _render(self, status: int, template: str, now: Now, **values: Any) -> Response:
        folders = [str(store.folder) for store in self._site.watch.stores]
        values = {"now": now, "folders": folders, "now_wall_ns": time.time_ns(), **values}
        values.setdefault("here", _HERE.get(template, ""))
        if template in _IN_PARTS:
            parts = map(_encoded, self._site.renderer.parts(template, **values))
            return StreamingResponse(parts, status, media_type="text/html")
        return HTMLResponse(_encoded(self._site.renderer.page(template, **values)), status)

    def _missing(self, now: Now) -> Response:
        words = "It may have been deleted, or removed to keep the store within its limits."
        return self._render(404, "trouble.html", now, title="There is nothing here", words=words)

    async def not_found(self, _request: Request, _error: Exception) -> Response:
        return await run_in_threadpool(lambda: self._missing(self._site.watch.now()))

    # ---- pages -----------------------------------------------------------------------------

    def overview(self, request: Request) -> Page:
        page = overview_page(self._source, self._tools, request.state.now.ongoing, time.time_ns())
        return "overview.html", {"page": page}

    def groups(self, request: Request) -> Page:
        filters = filters_of(request.query_params, time.time_ns())
        values = {"asked": request.query_params, "here": _HERE_OF.get(filters.kind, "issues")}
        return "groups.html", {"page": groups_page(self._source, filters), **values}

    def group(self, request: Request) -> Page:
        fingerprint, now_wall_ns = request.query_params.get("f", ""), time.time_ns()
        page = bug_page(self._source, fingerprint, self._tools, now_wall_ns)
        return None if page is None else ("bug.html", {"page": page, "here": _here_of(page.group)})

    def ask_delete(self, request: Request) -> Page:
        found = self._source.groups(IssueQuery(fingerprint=request.query_params.get("f", "")), 1)
        return ("delete.html", {"group": found[0], "here": _here_of(found[0])}) if found else None

    def issue(self, request: Request) -> Page:
        page = issue_page(self._source, request.query_params.get("id", ""), self._tools)
        return None if page is None else ("issue.html", {"page": page, "here": _here_of(page.issue)})

    def stalls(self, request: Request) -> Page:
        return "stalls.html", {"page": stalls_page(self._source, part_of(request.query_params))}

    def sessions(self, request: Request) -> Page:
        program = request.query_params.get("program") or None
        return "sessions.html", {"page": sessions_page(self._source, program, time.time_ns())}

    def session(self, request: Request) -> Page:
        page = session_page(self._source, request.query_params.get("id", ""), self._tools, time.time_ns())
        return None if page is None else ("session.html", {"page": page})

    def changes(self, request: Request) -> Page:
        program = request.query_params.get("program")
        return "changes.html", {"page": changes_page(self._source, program, time.time_ns())}

    def frames(self, _: Request) -> Page:
        return "frames.html", {"page": frames_page(self._source)}

    def startup(self, request: Request) -> Page:
        return "startup.html", {"page": startup_page(self._source, before_of(request.query_params))}

    def methods(self, request: Request) -> Page:
        return "methods.html", {"page": methods_page(self._source, page_of(request.query_params))}

    def doctor(self, _: Request) -> Page:
        page = doctor_page(self._site.watch.stores, self._tools, self._site.errors)
        return "doctor.html", {"page": page}

    # ---- what is no page ---------------------------------------------------------------------

    async def delete(self, request: Request) -> Response:
        """Deletes a bug's stalls, which the page before has asked about."""
        form = await _form(request)
        fingerprint = form.get("f", "")
        if not fingerprint or form.get("sure") != "yes":
            return RedirectResponse(url("/group/delete", f=fingerprint), 303)
        query = IssueQuery(fingerprint=fingerprint)
        return await self._changing(lambda store: store.maintenance.delete(query), "/groups")

    async def remark(self, request: Request) -> Response:
        form = await _form(request)
        fingerprint = form.get("f", "")
        note = form.get("note", "")[:_NOTE_MAX].strip()
        remark = Remark(ignored=form.get("ignored") == "1", note=note)
        back = url("/group", f=fingerprint)
        return await self._changing(lambda store: store.remark(fingerprint, remark), back)

    async def _changing(self, change: Callable[[OneStore], object], back: str) -> Response:
        try:
            await run_in_threadpool(self._site.watch.change, change)
        except self._site.errors as error:
            title = "One of the stores was not changed" if self._are_several else "Nothing was changed"
            return self._render(503, "trouble.html", Now(), title=title, words=str(error))
        return RedirectResponse(back, 303)

    async def export(self, request: Request) -> Response:
        asked = request.query_params
        issue_id, form = asked.get("id", ""), asked.get("form", "")
        try:
            found = await run_in_threadpool(
                exported, self._source, self._tools, issue_id, form, time.time_ns()
            )
        except self._site.errors as error:
            return Response(str(error), 503, media_type="text/plain")
        if found is None:
            return Response("There is no such issue or form.\n", 404, media_type="text/plain")
        media_type, text = found
        return Response(_encoded(text), media_type=media_type)

    async def live(self, request: Request) -> Response:
        stream = events(self._site.watch.now, self._site.is_over, request.is_disconnected)
        return StreamingResponse(stream, media_type="text/event-stream")


_MOVED = {"/issues": "/groups", "/stall": "/issue", "/start": "/issue", "/method": "/issue"}
"""Addresses that pages had before."""


def _encoded(text: str) -> bytes:
    """UTF-8, which has no lone surrogates as undecodable names have."""
    return text.encode("utf-8", "backslashreplace")


def _here_of(one: Issue | IssueGroup) -> str:
    return _HERE_OF.get(one.kind.value, "issues")


def _moved_to(path: str) -> Callable[[Request], Response]:
    def moved(request: Request) -> Response:
        asked = dict(request.query_params)
        if path == "/groups":
            asked.setdefault("kind", "other")
        return RedirectResponse(url(path, **asked), 301)

    return moved


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, with the last value of each name; empty if it is too long."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _FORM_BYTES_MAX:
            return {}
    return dict(parse_qsl(body.decode("latin-1"), keep_blank_values=True))


_WIDTH = 110


def exported(
    source: IssueStore, tools: Tools, issue_id: str, form: str, now_wall_ns: int
) -> tuple[str, str] | None:
    """(media type, text) of an issue; None: there is no such issue or form."""
    issue = source.issue(issue_id)
    if issue is None or form not in ("text", "markdown", "json"):
        return None
    report = of_issue(source, issue, now_wall_ns=now_wall_ns, explain=tools.why_grouped)
    if form == "json":
        return "application/json", as_json.render(report)
    document = document_of(report)
    if form == "markdown":
        return "text/plain; charset=utf-8", markdown.render(document)
    return "text/plain; charset=utf-8", painted(lines(document, Sheet(width=_WIDTH)))
