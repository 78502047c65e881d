"""A server that was greeted: its lists, calls, resources, prompts, and the questions in between."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from handrail.conversation.blocks import ResultBlock
from handrail.errors import McpError
from handrail.mcp.config import CALL_TIME, CONNECT_TIME
from handrail.mcp.content import SaveFile, content_block, no_files, output_of, resource_block
from handrail.mcp.handshake import Welcome
from handrail.mcp.host import ClientHost
from handrail.mcp.known_places import NOWHERE, ServerPlace
from handrail.mcp.offers import (
    INSTRUCTIONS,
    RemotePrompt,
    RemoteTool,
    instructions_of,
    parse_prompt,
    parse_resource,
    parse_tool,
)
from handrail.mcp.parameter_headers import parameter_headers, values_for_headers
from handrail.mcp.peer import NO_LIMIT, OnProgress, Peer
from handrail.processes.trace_context import trace_headers
from handrail.records import record
from handrail.tools.context import McpResource
from handrail.tools.output import Output

MAX_PAGES = 100
MAX_LISTED = 10_000
MAX_LIST_CHARS = 32 * 1024 * 1024
MAX_TTL_MS = 86_400_000
MAX_ROUNDS = 10
"""How often one call may ask for input before it is given up."""
FIRST_PAUSE, LAST_PAUSE = 0.05, 0.25
"""Seconds before a call is repeated that wants nothing but to be repeated."""
PARSERS: Mapping[str, Callable[[object], Any]] = {
    "tools": parse_tool,
    "prompts": parse_prompt,
    "resources": parse_resource,
    "templates": parse_resource,
}
LISTS = {"templates": ("resources", "resources/templates/list", "resourceTemplates")}
"""The capability, the method and the field of a list, where these are not called as the list."""


@record
class TimeLimits:
    """How long a server may take, in seconds."""

    connect: float = CONNECT_TIME
    call: float = CALL_TIME
    idle: float = NO_LIMIT
    """For a call without progress."""


@record
class Listing:
    """One list of a server, and until when it holds by the server's own word (monotonic time)."""

    items: tuple[Any, ...] = ()
    fresh_until: float = 0.0

    @property
    def is_fresh(self) -> bool:
        """Whether there is no reason to ask for it again."""
        return time.monotonic() < self.fresh_until


@record
class PartialArgument:
    """An argument that is being typed: what is begun of it, and the others that are there already."""

    name: str
    begun: str
    others: Mapping[str, str] = field(default_factory=dict)


class Server:
    """One greeted server."""

    def __init__(
        self,
        peer: Peer,
        welcome: Welcome,
        limits: TimeLimits = TimeLimits(),  # noqa: B008  # frozen
        host: ClientHost = ClientHost(),  # noqa: B008  # frozen
        save: SaveFile = no_files,
        *,
        place: ServerPlace = NOWHERE,
    ) -> None:
        self.name = peer.name
        self.place = place
        self.peer = peer
        self.welcome = welcome
        self.lists: dict[str, Listing] = {}
        self._limits = limits
        self._host = host
        self._save = save

    @property
    def tools(self) -> tuple[RemoteTool, ...]:
        """The tools that it offers."""
        return self._items_of("tools")

    @property
    def described(self) -> tuple[RemoteTool, ...]:
        """All of its words about its tools that a model gets: the tools, and what it says about their use."""
        tools = tuple(tool for tool in self.tools if tool.name != INSTRUCTIONS)
        return (*tools, instructions_of(self.welcome.instructions)) if self.welcome.instructions.strip() else tools

    @property
    def prompts(self) -> tuple[RemotePrompt, ...]:
        """The prompts that it offers."""
        return self._items_of("prompts")

    @property
    def resources(self) -> tuple[McpResource, ...]:
        """The resources that it offers, and the templates of such."""
        return (*self._items_of("resources"), *self._items_of("templates"))

    def _items_of(self, kind: str) -> tuple[Any, ...]:
        return self.lists.get(kind, Listing()).items

    async def load(self, kinds: Sequence[str] = tuple(PARSERS)) -> None:
        """Ask for the lists that it has and that are not fresh. Tools must come; the others may fail."""
        for kind in kinds:
            if not self.welcome.offers(LISTS.get(kind, (kind,))[0]) or self.lists.get(kind, Listing()).is_fresh:
                continue
            try:
                self.lists[kind] = await self._list(kind)
            except McpError:
                if kind == "tools":
                    raise

    async def _list(self, kind: str) -> Listing:
        _, method, field = LISTS.get(kind, (kind, f"{kind}/list", kind))
        found: list[Any] = []
        cursor: object = None
        size = 0
        fresh_until = time.monotonic() + 1e9
        loop = asyncio.get_running_loop()
        due = loop.time() + self._limits.connect
        for _ in range(MAX_PAGES):
            params = {} if cursor is None else {"cursor": cursor}
            left = due - loop.time()
            if left <= 0:
                raise McpError(f"The list of {kind} took more than {self._limits.connect:g} s.")
            page = await self.peer.request(method, params, time_limit=left)
            listed = page.get(field)
            size += len(repr(listed))
            if size > MAX_LIST_CHARS:
                raise McpError(f"The list of {kind} has more than {MAX_LIST_CHARS:,} characters.")
            parsed = map(PARSERS[kind], listed if isinstance(listed, list) else ())
            found += [each for each in parsed if each is not None]
            lasts = page.get("ttlMs")
            seconds = min(max(lasts, 0), MAX_TTL_MS) / 1000 if isinstance(lasts, int) else 0.0
            fresh_until = min(fresh_until, time.monotonic() + seconds)
            cursor = page.get("nextCursor")
            if not cursor or len(found) > MAX_LISTED:
                return Listing(tuple(found[:MAX_LISTED]), fresh_until)
        raise McpError(f"The list of {kind} has more than {MAX_PAGES} pages.")

    async def call(self, tool: str, given: Mapping[str, Any], call_id: str, on_progress: OnProgress) -> Output:
        """Call a tool of the server; raises McpError if it does not answer, or answers with an error."""
        meta = {"handrail/toolUseId": call_id, **trace_headers()}
        params = {"name": tool, "arguments": dict(given), "_meta": meta}
        answer = await self._ask("tools/call", params, on_progress, self._parameter_headers(tool, given))
        return output_of(answer, self.name, self._save)

    def _parameter_headers(self, tool: str, given: Mapping[str, Any]) -> dict[str, str]:
        schema = next((each.schema for each in self.tools if each.name == tool), None)
        if schema is None or not self.peer.dialect.cancels_by_closing:  # only new servers over HTTP have them
            return {}
        return values_for_headers(parameter_headers(schema), given)

    async def read(self, uri: str) -> tuple[ResultBlock, ...]:
        """The contents of a resource."""
        answer = await self._ask("resources/read", {"uri": uri})
        contents = answer.get("contents")
        listed = contents if isinstance(contents, list) else []
        return tuple(
            resource_block(each if isinstance(each, Mapping) else {}, self.name, self._save) for each in listed
        )

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> tuple[tuple[str, ResultBlock], ...]:
        """The messages that a prompt gives: who speaks, and what."""
        answer = await self._ask("prompts/get", {"name": name, "arguments": dict(arguments)})
        messages = answer.get("messages")
        found: list[tuple[str, ResultBlock]] = []
        for each in messages if isinstance(messages, list) else ():
            match each:
                case {"role": str(role), "content": content}:
                    parts = content if isinstance(content, list) else [content]
                    found += [(role, content_block(part, self.name, self._save)) for part in parts]
        return tuple(found)

    async def complete(self, reference: Mapping[str, str], argument: PartialArgument) -> tuple[str, ...]:
        """Values for an argument of a prompt, or a part of an address, that begin so; none if it does not know."""
        if not self.welcome.offers("completions"):
            return ()
        begun = {"name": argument.name, "value": argument.begun}
        params: dict[str, Any] = {"ref": dict(reference), "argument": begun}
        if argument.others:
            params["context"] = {"arguments": dict(argument.others)}
        answer = await self.peer.request("completion/complete", params, time_limit=self._limits.connect)
        match answer:
            case {"completion": {"values": list(values)}}:
                return tuple(value for value in values[:100] if isinstance(value, str))
            case _:
                return ()

    async def subscribe(self, uri: str) -> None:
        """Be told when a resource changes, at a server before 2026-07-28 that can tell."""
        if self.welcome.era == "legacy" and self.welcome.offers("resources", "subscribe"):
            await self.peer.request("resources/subscribe", {"uri": uri}, time_limit=self._limits.connect)

    async def unsubscribe(self, uri: str) -> None:
        """Be told no more when a resource changes."""
        if self.welcome.era == "legacy" and self.welcome.offers("resources", "subscribe"):
            await self.peer.request("resources/unsubscribe", {"uri": uri}, time_limit=self._limits.connect)

    def changes(self, resources: Sequence[str]) -> dict[str, Any]:
        """What a server of 2026-07-28 can tell about changes, as its stream of changes is asked for it."""
        wanted: dict[str, Any] = {
            f"{kind}ListChanged": True for kind in PARSERS if self.welcome.offers(kind, "listChanged")
        }
        if resources and self.welcome.offers("resources", "subscribe"):
            wanted["resourceSubscriptions"] = list(resources)
        return wanted if self.welcome.era == "modern" else {}

    async def listen(self, changes: Mapping[str, Any]) -> None:
        """Take in what changes, until the stream ends or breaks off (McpError)."""
        await self.peer.request("subscriptions/listen", {"notifications": changes}, time_limit=NO_LIMIT)

    async def _ask(
        self,
        method: str,
        params: Mapping[str, Any],
        on_progress: OnProgress | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """The result of a request, after all the rounds of input that it needs."""
        pause, begun = FIRST_PAUSE, params
        for _ in range(MAX_ROUNDS + 1):
            answer = await self.peer.request(
                method,
                params,
                time_limit=self._limits.call,
                idle_limit=self._limits.idle,
                on_progress=on_progress,
                headers=headers,
            )
            if answer.get("resultType") != "input_required":
                return answer
            params = dict(begun)
            requests = answer.get("inputRequests")
            if isinstance(requests, Mapping) and requests:
                params["inputResponses"] = await self._inputs(requests)
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE)
            if isinstance(state := answer.get("requestState"), str):
                params["requestState"] = state
        raise McpError(f"The MCP server {self.name!r} asked for input more than {MAX_ROUNDS} times.")

    async def _inputs(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for key, request in list(requests.items())[:MAX_ROUNDS]:
            match request:
                case {"method": str(method), **rest}:
                    params = rest.get("params")
                    answer = self._host.answer(self.name, method, params if isinstance(params, Mapping) else {})
                case _:
                    method, answer = "something that is not a request", None
            if answer is None:
                raise McpError(f"The MCP server {self.name!r} asks for {method[:100]!r}, which is not offered to it.")
            answers[key] = await answer
        return answers

    async def aclose(self) -> None:
        """Close the connection."""
        await self.peer.aclose()
