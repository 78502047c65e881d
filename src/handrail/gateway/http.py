"""
MCP over HTTP at one path, both eras.

    POST    a message; the answer is JSON, or a stream of events if there is something to say before it
    GET     (until 2025-11-25) a stream of what the server says by itself
    DELETE  (until 2025-11-25) the end of a session

The guard in front of it has judged Host, Origin and token, and says who asks.
"""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from handrail.errors import HttpRefusalError, JsonRpcError
from handrail.gateway.exchange import Exchange, answer_json, answer_nothing, read_json
from handrail.gateway.http_session import HttpSession
from handrail.gateway.links import LiveLink, SendMessage
from handrail.gateway.protocol import (
    INVALID_REQUEST,
    ClientReply,
    ClientRequest,
    check_headers,
    id_of,
    parse_message,
    refusal,
)
from handrail.gateway.service import McpService
from handrail.gateway.state import ClientState
from handrail.mcp.dialect import LEGACY
from handrail.mcp.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Message
from handrail.mcp.parameter_headers import KEY, parameter_headers, values_for_headers
from handrail.processes.trace_context import adopt_trace, trace_parent
from handrail.serve.guard import IDENTITY, Receive, Send

PATH = "/mcp"
MAX_SESSIONS = 200
"""The most sessions of one client; the one that was idle longest goes first."""
IDLE_SECONDS = 3600.0
SESSION = "mcp-session-id"


class McpEndpoint:
    """The application behind the guard."""

    def __init__(self, service: McpService, path: str = PATH, now: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._path = path
        self._now = now
        self._sessions: OrderedDict[str, HttpSession] = OrderedDict()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        client = scope.get(IDENTITY, "")
        methods = {"POST": self._post, "GET": self._get, "DELETE": self._delete}
        try:
            if scope["path"] != self._path:
                raise HttpRefusalError(404, f"There is nothing at this address. MCP is at {self._path}.")
            work = methods.get(scope["method"])
            if work is None:
                raise HttpRefusalError(405, "Use POST, or GET and DELETE with a session.")
            await work(client, headers, receive, send)
        except HttpRefusalError as error:
            await answer_json(send, error.status, refusal(error.id, JsonRpcError(str(error), error.code)))

    # Messages

    async def _post(self, client: str, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        value = await read_json(headers, receive)
        trace_parent.set("")  # a connection may bring requests of several traces
        adopt_trace(headers.get("traceparent"))
        try:
            message = parse_message(value)
        except JsonRpcError as error:
            raise HttpRefusalError(400, str(error), error.code, id_of(value)) from error
        if isinstance(message, ClientReply):
            session = self._find(client, headers, message.id)
            session.pending.take(message)
            await answer_nothing(send)
        elif self._is_legacy(message, headers):
            await self._post_legacy(client, message, headers, receive, send)
        else:
            await self._post_modern(client, message, headers, receive, send)

    def _is_legacy(self, message: ClientRequest, headers: Mapping[str, str]) -> bool:
        return not message.is_modern and headers.get("mcp-protocol-version", LEGACY[0]) in LEGACY

    async def _post_legacy(
        self, client: str, message: ClientRequest, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        if message.method == "initialize" and SESSION not in headers:
            state, answer = await self._service.greet(client, message)
            session = self._open(client, state)
            if message.id is None:
                raise HttpRefusalError(400, "initialize is a request and needs an id.", INVALID_REQUEST)
            await answer_json(send, 200, {"jsonrpc": "2.0", "id": message.id, "result": answer}, {SESSION: session.id})
            return
        session = self._find(client, headers, message.id)
        if message.id is None:
            if message.method == "notifications/cancelled":
                session.requests.cancel(message.params)
            await answer_nothing(send)
            return

        exchange = Exchange(headers, receive, send, otherwise=session.say)

        async def work(tell: SendMessage) -> tuple[int, Message | None]:
            offered = session.state.capabilities if exchange.can_stream else {}  # else no question would arrive
            link = LiveLink(offered, tell, session.pending)
            result = self._service.answer(session.state, message, link)
            return 200, await session.requests.answer(message, result)

        await exchange.run(work, stop_when_left=False, keep=session.tasks)

    async def _post_modern(
        self, client: str, message: ClientRequest, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        if message.id is None:  # such a client has no notifications that matter over HTTP
            await answer_nothing(send)
            return
        try:
            check_headers(message, headers, {})
            state = await self._service.meet(client, message)
            check_headers(message, headers, await self._parameters(state, message))
        except JsonRpcError as error:
            await answer_json(send, 400, refusal(message.id, error))
            return

        async def work(tell: SendMessage) -> tuple[int, Message | None]:
            try:
                result = await self._service.answer_modern(state, message, tell)
                return 200, {"jsonrpc": "2.0", "id": message.id, "result": result}
            except JsonRpcError as error:
                return _status(error), refusal(message.id, error)

        await Exchange(headers, receive, send).run(work, stop_when_left=True)

    async def _parameters(self, state: ClientState, message: ClientRequest) -> Mapping[str, str]:
        """The headers that repeat parameters of a call, as the schema of its tool wants."""
        name, given = message.params.get("name"), message.params.get("arguments")
        if message.method != "tools/call" or not isinstance(name, str) or not isinstance(given, Mapping):
            return {}
        tool = await state.tools.find(name)
        if KEY.encode() not in tool.schema_json:
            return {}
        return values_for_headers(parameter_headers(json.loads(tool.schema_json)), given)

    # Sessions

    def _open(self, client: str, state: ClientState) -> HttpSession:
        session = HttpSession(client, state, self._now())
        session.unlisten = self._service.follow(state, session.say)
        self._sessions[session.id] = session
        self._drop_idle(client)
        return session

    def _drop_idle(self, client: str) -> None:
        own = [each for each in self._sessions.values() if each.client == client]
        oldest = own[: max(0, len(own) - MAX_SESSIONS)]
        for each in [*oldest, *(each for each in own if self._now() - each.used > IDLE_SECONDS and not each.is_busy)]:
            if self._sessions.pop(each.id, None) is not None:
                each.end()

    def _find(self, client: str, headers: Mapping[str, str], number: int | str | None = None) -> HttpSession:
        """The session of a request; one of another client is as unknown as one that never was."""
        name = headers.get(SESSION)
        if name is None:
            raise HttpRefusalError(400, f"Send initialize first, then the header {SESSION}.", INVALID_REQUEST, number)
        session = self._sessions.get(name)
        if session is None or session.client != client:
            raise HttpRefusalError(404, "There is no such session. Send initialize.", INVALID_REQUEST, number)
        session.used = self._now()
        self._sessions.move_to_end(name)
        return session

    async def _get(self, client: str, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        if SESSION not in headers:
            raise HttpRefusalError(405, "Use POST; GET is for sessions of older revisions.")
        session = self._find(client, headers)
        if "text/event-stream" not in headers.get("accept", ""):
            raise HttpRefusalError(406, "Accept text/event-stream.")
        await Exchange(headers, receive, send).run(session.stream, stop_when_left=True, at_once=True)

    async def _delete(self, client: str, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        session = self._find(client, headers)
        del self._sessions[session.id]
        await session.aclose()
        await answer_nothing(send, 204)

    async def aclose(self) -> None:
        """End all sessions."""
        sessions, self._sessions = list(self._sessions.values()), OrderedDict()
        await asyncio.gather(*(session.aclose() for session in sessions))


def _status(error: JsonRpcError) -> int:
    """The status of an answer that is an error."""
    if error.code == METHOD_NOT_FOUND:
        return 404
    return 400 if error.code <= INVALID_PARAMS or -32029 <= error.code <= -32020 else 200
