"""
Answers the requests of clients, whichever way they came.

    stdio.py, http.py -> McpService.answer -> GovernedTools, prompts, resources

What both eras have is answered in the same way; what only one has stands in a table of its own.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from handrail.conversation.logger import get_logger
from handrail.errors import HandrailError, JsonRpcError
from handrail.gateway.changes import Change, asked_changes, is_followed, is_wanted
from handrail.gateway.client import ClientLink, McpClient
from handrail.gateway.client_offers import ClientOffers, Method
from handrail.gateway.governed import GovernedTools
from handrail.gateway.links import RoundCaller, RoundLink, Rounds, SendMessage
from handrail.gateway.offering import McpServer
from handrail.gateway.protocol import (
    CAPABILITIES,
    LEVELS,
    LOG_LEVEL,
    MISSING_CAPABILITY,
    SERVER_INFO,
    SUBSCRIPTION,
    ClientRequest,
    agreed_version,
    check_meta,
)
from handrail.gateway.servers import ServersBehind
from handrail.gateway.state import ClientState
from handrail.mcp.dialect import MODERN
from handrail.mcp.messages import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, notification
from handrail.processes.trace_context import adopt_trace
from handrail.session.overlapping_calls import OverlappingCalls
from handrail.tools.context import Progress

log = get_logger(__name__)

TTL_MS = 60_000
CAPABLE: Mapping[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}


class McpService:
    """One server for all its clients."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.changes = server.changes
        self._tools: dict[str, GovernedTools] = {}
        self._rounds = Rounds()
        self._calls: dict[str, OverlappingCalls] = {}
        """The calls of clients without sessions: what one has read, it has read in all its requests."""
        self._offers = offers = ClientOffers(server)
        self._both: dict[str, Method] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            **offers.methods,
        }
        self._legacy: dict[str, Method] = {
            **self._both,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            **offers.legacy_methods,
        }

    # Clients

    def open(self, client: str) -> GovernedTools:
        """The tools of a client by its name, opened once; HandrailError if its settings cannot be used."""
        if client not in self._tools:
            tools = self.server.open_tools(client)
            tools.on_change = lambda kind, uri="": self.changes.tell(Change(kind, uri, client))
            self._tools[client] = tools
        return self._tools[client]

    async def tools_of(self, client: str) -> GovernedTools:
        """The same, with the servers behind them."""
        try:
            tools = self.open(client)
        except HandrailError as error:
            raise JsonRpcError(f"The settings of this server cannot be used: {error}", INTERNAL_ERROR) from error
        await tools.connect()
        return tools

    async def greet(self, client: str, request: ClientRequest) -> tuple[ClientState, dict[str, Any]]:
        """Begin with a client of the old era: what is known of it, and the answer to its `initialize`."""
        params = request.params
        capabilities = params.get("capabilities")
        tools = await self.tools_of(client)
        state = ClientState(
            client,
            tools,
            tools.new_calls(),
            agreed_version(params.get("protocolVersion")),
            capabilities if isinstance(capabilities, Mapping) else {},
            "warning",
        )
        answer = {
            "protocolVersion": state.version,
            "capabilities": CAPABLE,
            "serverInfo": self.server.info,
            **self._instructions(tools),
        }
        return state, answer

    def _instructions(self, tools: GovernedTools) -> dict[str, str]:
        """What a client is told about the use of the tools: by the program, and by the servers behind it."""
        parts = filter(None, (self.server.instructions, ServersBehind(tools).instructions()))
        text = "\n\n".join(parts)
        return {"instructions": text} if text else {}

    async def meet(self, client: str, request: ClientRequest) -> ClientState:
        """What a request of 2026-07-28 says of its client; JsonRpcError if it does not say enough."""
        check_meta(request)
        tools = await self.tools_of(client)
        level = request.meta.get(LOG_LEVEL)
        state = ClientState(
            client,
            tools,
            self._calls.get(client) or tools.new_calls(),
            MODERN,
            request.meta[CAPABILITIES],
            level if isinstance(level, str) and level in LEVELS else "",
        )
        self._calls[client] = state.calls
        return state

    def follow(self, state: ClientState, send: SendMessage) -> Callable[[], None]:
        """Tell a client of the old era what changes; the function that is returned ends that."""

        def hear(change: Change) -> None:
            if change.kind != "resource" or is_followed(change.uri, state.followed):
                send(change.message())

        return self.changes.listen(state.name, hear)

    # Requests

    async def answer(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        """The result for a client of the old era; JsonRpcError if the request is refused."""
        return await self._work(self._legacy, state, request, link)

    async def answer_modern(self, state: ClientState, request: ClientRequest, send: SendMessage) -> dict[str, Any]:
        """The result for a client of 2026-07-28, which may be what it has to say first."""
        method, params = request.method, request.params
        if method == "server/discover":
            result: dict[str, Any] = {"supportedVersions": [MODERN], "capabilities": CAPABLE}
            result |= self._instructions(state.tools)
        elif method == "subscriptions/listen":
            return await self._listen(state, request, send)
        elif method in ("tools/call", "prompts/get", "resources/read"):
            asked = {"method": method} | {key: params.get(key) for key in ("name", "arguments", "uri")}
            result = await self._rounds.answer(
                RoundCaller(state.name, state.capabilities, send),
                asked,
                params,
                lambda link: self._work(self._both, state, request, link),
            )
        else:
            result = await self._work(self._both, state, request, RoundLink(state.capabilities, send, {}))
        if method.endswith("/list") or method == "resources/read":
            result = {"ttlMs": TTL_MS if method != "resources/read" else 0, "cacheScope": "private", **result}
        meta = {**result.get("_meta", {}), SERVER_INFO: self.server.info}
        return {"resultType": "complete", **result, "_meta": meta}

    async def _work(
        self, methods: Mapping[str, Method], state: ClientState, request: ClientRequest, link: ClientLink
    ) -> dict[str, Any]:
        adopt_trace(request.meta.get("traceparent"))
        work = methods.get(request.method)
        if work is None:
            raise JsonRpcError(f"This server has no method {request.method[:100]!r}.", METHOD_NOT_FOUND)
        try:
            return await work(state, request, link)
        except JsonRpcError:
            raise
        except HandrailError as error:
            raise JsonRpcError(str(state.tools.redact(str(error))), INTERNAL_ERROR) from error
        except Exception as error:
            log.exception("%s failed", request.method)
            raise JsonRpcError(f"{request.method} failed: {type(error).__name__}.", INTERNAL_ERROR) from error

    async def _listen(self, state: ClientState, request: ClientRequest, send: SendMessage) -> dict[str, Any]:
        """Tell a client of changes until it ends the request."""
        wanted = request.params.get("notifications")
        honoured = asked_changes(wanted if isinstance(wanted, Mapping) else {})
        if "resourceSubscriptions" in honoured:
            honoured["resourceSubscriptions"] = await self._offers.follow(state, honoured["resourceSubscriptions"])
        meta = {SUBSCRIPTION: str(request.id)}
        acknowledged = {"notifications": honoured, "_meta": meta}
        send(notification("notifications/subscriptions/acknowledged", acknowledged))

        def hear(change: Change) -> None:
            if is_wanted(change, honoured):
                send(change.message(meta))

        end = self.changes.listen(state.name, hear)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            end()
            state.tools.drop_followers(honoured.get("resourceSubscriptions", ()))
        return {}

    # What both eras have

    async def _list_tools(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        await state.tools.settle()
        return {"tools": state.tools.definitions()}

    async def _call_tool(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        name, given = request.text("name"), request.object("arguments")
        client = state.client(link)
        token = request.meta.get("progressToken")
        progress = _Reporter(client, token).report if isinstance(token, int | str) else None
        result = await state.tools.answer_call(name, given, client, state.calls, progress)
        if client.lacks and state.is_modern:
            raise JsonRpcError(
                f"This call needs a client that offers {client.lacks!r}.",
                MISSING_CAPABILITY,
                {"requiredCapabilities": {client.lacks: {}}},
            )
        return result

    # What only the old era has

    async def _ping(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        return {}

    async def _set_level(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        level = request.text("level")
        if level not in LEVELS:
            raise JsonRpcError(f"level must be one of {', '.join(LEVELS)}.", INVALID_PARAMS)
        state.level = level
        return {}

    async def aclose(self) -> None:
        """End what runs for all clients."""
        await self._rounds.aclose()
        for tools in self._tools.values():
            await tools.aclose()


class _Reporter:
    """Reports the progress of one call. Its number only grows, as clients may rely on."""

    def __init__(self, client: McpClient, token: int | str) -> None:
        self._client = client
        self._token = token
        self._last = -1.0

    def report(self, progress: Progress) -> None:
        share = progress.fraction
        value = self._last + 1 if share is None else round(100 * share, 2)
        if value > self._last:
            self._last = value
            total = {} if share is None else {"total": 100}
            message = {"message": progress.message} if progress.message else {}
            params = {"progressToken": self._token, "progress": value, **total, **message}
            self._client.notify("notifications/progress", params)
