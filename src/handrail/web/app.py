"""
The requests of the page. Who may send them is decided before (`serve.guard`).

    GET  /, /*.js ...          the page itself
    POST /api/enter            the token for a cookie
    GET  /api/sessions         all sessions
    GET  /api/stats            sums over the sessions of some days
    GET  /api/run/ID           one run; /call/N and /entry/N whole, /diffs, /raw
    POST /api/run/ID/undo      files back to before a change
    GET  /api/events           what happens, as server-sent events that can be resumed by their id
    POST /api/answer           an answer to a question of a running session
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from handrail.conversation.json_bytes import json_bytes
from handrail.errors import HandrailError, HttpRefusalError, SessionError
from handrail.records import record
from handrail.serve.guard import IDENTITY, token_digest
from handrail.serve.requests import read_object
from handrail.web.assets import INDEX, assets
from handrail.web.feed import Feeds
from handrail.web.library import SessionLibrary

SECURITY = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
KEEP_ALIVE = 15.0
LIST_SECONDS = 2.0
PAGE = 500


class LiveSessions(Protocol):
    """The running sessions that can be asked and answered."""

    @property
    def names(self) -> frozenset[str]:
        """The ids of the sessions that are connected."""
        ...

    def questions(self) -> list[dict[str, Any]]:
        """The questions that wait for an answer."""
        ...

    @property
    def version(self) -> int:
        """A number that changes with the questions and the sessions."""
        ...

    async def wait_for_change(self, version: int) -> int:
        """Return the version as soon as it is another one."""
        ...

    def writing(self, session: str) -> Mapping[str, str]:
        """The texts that the agents of a session write now."""
        ...

    async def wait_for_text(self) -> None:
        """Return when an agent of a session has written more."""
        ...

    async def answer(self, person: str, answer: Mapping[str, Any]) -> str:
        """Give an answer; returns why it does not count, empty if it does."""
        ...


@record
class PageParts:
    """What the page shows. `tokens` name the people who may see it, by the digest of their token."""

    library: SessionLibrary
    tokens: Mapping[str, str]
    cookie: str
    live: LiveSessions | None = None
    secure: bool = False


PUBLIC = frozenset({"/", "/api/enter", *(f"/{name}" for name in assets() if name != INDEX)})
"""What is answered without a token: the page's own files, and the exchange of the token."""


def make_app(page: PageParts) -> Starlette:
    """The application behind the guard."""
    feeds = Feeds(page.library.files_of)
    run = "/api/run/{session}"
    routes = [
        Route("/api/enter", partial(_enter, page), methods=["POST"]),
        Route("/api/sessions", partial(_sessions, page)),
        Route("/api/stats", partial(_stats, page)),
        Route(run, partial(_run, feeds)),
        Route(f"{run}/{{kind:str}}/{{place:int}}", partial(_whole, page)),
        Route(f"{run}/diffs", partial(_diffs, page)),
        Route(f"{run}/raw", partial(_raw, page)),
        Route(f"{run}/undo", partial(_undo, page), methods=["POST"]),
        Route("/api/events", partial(_events, page, feeds)),
        Route("/api/answer", partial(_answer, page), methods=["POST"]),
        Route("/{name:path}", _asset),
    ]
    return Starlette(routes=routes, exception_handlers={HandrailError: _problem, HTTPException: _http_problem})


def _reply(value: Any, status: int = 200) -> Response:
    return Response(json_bytes(value), status, SECURITY, "application/json")


async def _problem(_request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, HttpRefusalError) else 404 if isinstance(error, SessionError) else 409
    return Response(f"{error}\n", status, SECURITY, "text/plain")


async def _http_problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Response(f"{error.detail}\n", error.status_code, SECURITY, "text/plain")


async def _asset(request: Request) -> Response:
    found = assets().get(request.path_params["name"] or INDEX)
    if found is None:
        raise HTTPException(404, "There is no such page.")
    return Response(found[0], 200, SECURITY, found[1])


async def _enter(page: PageParts, request: Request) -> Response:
    token = (await read_object(request)).get("token")
    if not isinstance(token, str) or token_digest(token) not in page.tokens:
        raise HTTPException(401, "This is not the token of this page.")
    answer = _reply({"person": page.tokens[token_digest(token)]})
    answer.set_cookie(page.cookie, token, httponly=True, samesite="strict", secure=page.secure, path="/")
    return answer


# Sessions


def _live_names(page: PageParts) -> frozenset[str]:
    return page.live.names if page.live else frozenset()


async def _sessions(page: PageParts, _request: Request) -> Response:
    return _reply({"sessions": await asyncio.to_thread(page.library.sessions, _live_names(page))})


async def _stats(page: PageParts, request: Request) -> Response:
    days = request.query_params.get("days", "30")
    if not days.isdecimal() or len(days) > 5:
        raise HTTPException(400, "days is a whole number; 0 means all that is kept.")
    return _reply(await asyncio.to_thread(page.library.stats, int(days)))


async def _run(feeds: Feeds, request: Request) -> Response:
    feed = await feeds.get(request.path_params["session"])
    return _reply(await feed.record())


async def _whole(page: PageParts, request: Request) -> Response:
    kind = {"call": "calls", "entry": "entries"}.get(request.path_params["kind"])
    found = await asyncio.to_thread(page.library.whole, request.path_params["session"])
    parts = getattr(found, kind) if kind else []
    place = request.path_params["place"]
    if place >= len(parts):
        raise HTTPException(404, "The run has no such part.")
    return _reply(parts[place])


async def _diffs(page: PageParts, request: Request) -> Response:
    diffs, changes = await asyncio.to_thread(page.library.diffs, request.path_params["session"])
    return _reply({"diffs": diffs, "changes": changes})


async def _raw(page: PageParts, request: Request) -> Response:
    first, count = (request.query_params.get(name, "0") for name in ("from", "count"))
    if not (first.isdecimal() and count.isdecimal()):
        raise HTTPException(400, "from and count are whole numbers.")
    session = request.path_params["session"]
    lines, total = await asyncio.to_thread(page.library.raw_lines, session, int(first), min(int(count), PAGE))
    return _reply({"lines": lines, "total": total})


async def _undo(page: PageParts, request: Request) -> Response:
    wanted = await read_object(request)
    number = wanted.get("number")
    if not isinstance(number, int) or number < 1:
        raise HTTPException(400, "number says before which change to go back.")
    session = request.path_params["session"]
    done = await asyncio.to_thread(page.library.undo, session, number, force=wanted.get("force") is True)
    return _reply({"to": done.to, "restored": done.restored, "removed": done.removed})


# What happens


async def _answer(page: PageParts, request: Request) -> Response:
    if page.live is None:
        raise HTTPException(409, "This page does not answer questions. Start it with: handrail view --live")
    problem = await page.live.answer(request.scope[IDENTITY], await read_object(request))
    if problem:
        raise HTTPException(409, problem)
    return _reply({"answered": True})


async def _events(page: PageParts, feeds: Feeds, request: Request) -> Response:
    session = request.query_params.get("run", "")
    after = request.headers.get("last-event-id") or request.query_params.get("after", "")
    if session:
        await feeds.get(session)  # an unknown one is refused before the answer begins
    headers = {**SECURITY, "x-accel-buffering": "no"}
    return StreamingResponse(_stream(page, feeds, session, after), 200, headers, "text/event-stream")


async def _stream(page: PageParts, feeds: Feeds, session: str, after: str) -> AsyncIterator[bytes]:
    """All events of a page: one task for each source, so that none waits for another."""
    queue: asyncio.Queue[bytes] = asyncio.Queue(maxsize=100)
    sources = [_run_events(feeds, session, after, queue)] if session else [_list_events(page, queue)]
    if page.live is not None:
        sources.append(_question_events(page.live, queue))
        sources += [_text_events(page.live, session, queue)] if session else []
    tasks = [asyncio.create_task(source) for source in sources]
    try:
        yield b"retry: 1000\n\n"
        while True:
            try:
                async with asyncio.timeout(KEEP_ALIVE):
                    event = await queue.get()
            except TimeoutError:
                event = b": still here\n\n"
            yield event
    finally:
        for task in tasks:
            task.cancel()


def _event(name: str, value: Any, number: str = "") -> bytes:
    head = f"id: {number}\n" if number else ""
    return f"{head}event: {name}\ndata: ".encode() + json_bytes(value) + b"\n\n"


async def _run_events(feeds: Feeds, session: str, after: str, queue: "asyncio.Queue[bytes]") -> None:
    feed = await feeds.get(session)
    async for version, change in feed.changes(after):
        if not change:
            await queue.put(_event("reset", {}))
            return
        await queue.put(_event("change", {**change, "version": version}, version))


async def _list_events(page: PageParts, queue: "asyncio.Queue[bytes]") -> None:
    before: list[dict[str, Any]] | None = None
    while True:
        found = await asyncio.to_thread(page.library.sessions, _live_names(page))
        if before is not None and found != before:
            await queue.put(_event("sessions", {"sessions": found}))
        before = found
        await asyncio.sleep(LIST_SECONDS)


async def _question_events(live: LiveSessions, queue: "asyncio.Queue[bytes]") -> None:
    version = live.version
    while True:
        await queue.put(_event("questions", {"questions": live.questions()}))
        version = await live.wait_for_change(version)


async def _text_events(live: LiveSessions, session: str, queue: "asyncio.Queue[bytes]") -> None:
    """What is new in the texts that agents write; all of it when it is another text."""
    sent: Mapping[str, str] = {}
    while True:
        texts = live.writing(session)
        for agent in sent.keys() | texts.keys():
            before, text = sent.get(agent, ""), texts.get(agent, "")
            if text != before:
                goes_on = bool(before) and text.startswith(before)
                news = {"agent": agent, "more": goes_on, "text": text.removeprefix(before) if goes_on else text}
                await queue.put(_event("writing", news))
        sent = texts
        if texts == live.writing(session):  # nothing has come while that was sent
            await live.wait_for_text()
