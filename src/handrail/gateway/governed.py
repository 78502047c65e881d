"""
The tools of one client under its own rules: a session without a model.

    tools/call -> OverlappingCalls -> hooks, rules, questions -> the tool -> hooks, limits -> a result without secrets

Each client has a session of its own: settings, hooks, connections to servers and audit log. Nothing of it is shared, so
nothing of one client can reach another; only where their calls name the same files do they wait for each other.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from handrail.conversation.blocks import ToolUse
from handrail.errors import JsonRpcError
from handrail.files.memory import FileMemory
from handrail.gateway.asker import ClientAsker, ClientCall
from handrail.gateway.changes import Kind
from handrail.gateway.client import McpClient, use_client
from handrail.gateway.content import call_result
from handrail.gateway.listing import PREFIX, tool_definition
from handrail.mcp.messages import INVALID_PARAMS
from handrail.session.build import open_session
from handrail.session.no_model import NoModel
from handrail.session.overlapping_calls import OverlappingCalls
from handrail.session.servers.servers import Servers
from handrail.session.session import Session
from handrail.session.spec import SessionHost, SessionSpec
from handrail.tools.context import ProgressCallback, RunContext
from handrail.tools.mcp_names import RESOURCE_TOOLS, tool_name
from handrail.tools.outcome import Outcome
from handrail.tools.pool import SEARCH_TOOL, AnyTool
from handrail.tools.tool import McpInfo


class OnChange(Protocol):
    """Is told of a list that has changed, or of the address of a resource that has."""

    def __call__(self, kind: Kind, uri: str = "") -> None: ...


def _no_listener(kind: Kind, uri: str = "") -> None:
    """No client wants to know yet."""


@dataclass(slots=True)
class _ClientContext:
    context: RunContext


class GovernedTools:
    """The tools that one client may use."""

    def __init__(self, spec: SessionSpec, env: Mapping[str, str], host: SessionHost) -> None:
        self._asker = ClientAsker()
        self._session: Session = open_session(spec, env, replace(host, handler=self._asker, model=NoModel()))
        self._conversation = self._session.conversation
        self._ids = itertools.count(1)
        self._connecting: asyncio.Task[None] | None = None
        self._told: dict[Kind, tuple[Any, ...]] = {}
        self._definitions: dict[int, tuple[AnyTool, dict[str, Any]]] = {}
        self.followers: Counter[str] = Counter()
        """How often each resource of a server behind us is followed."""
        self.on_change: OnChange = _no_listener
        """Called when a list, or a resource of a server behind us, has changed."""

    async def connect(self) -> None:
        """Connect the servers behind us, once; those that are slow come later."""
        if self._session.servers is None:
            return
        if self._connecting is None:
            self._connecting = asyncio.ensure_future(self._connect())
        await asyncio.shield(self._connecting)

    async def _connect(self) -> None:
        assert self.servers is not None
        assert self._session.server_tools is not None
        self.servers.on_update = lambda _server, uri: self.on_change("resource", uri)
        await self._session.connect()
        self._told = self._lists()
        self._session.server_tools.on_change = self._tell_changes

    async def settle(self) -> None:
        """Wait for servers that are still connecting, but not long after the start: many clients ask for lists once."""
        if self.servers is not None:
            await self.servers.settle()

    def _lists(self) -> "dict[Kind, tuple[Any, ...]]":
        """What is offered now, as far as it may change by itself."""
        links = [link.server for link in self.servers.connections() if link.server] if self.servers else []
        return {
            "tools": self._conversation.tools.active,
            "prompts": tuple(link.prompts for link in links),
            "resources": tuple(link.resources for link in links),
        }

    def _tell_changes(self) -> None:
        before, self._told = self._told, self._lists()
        for kind, now in self._told.items():
            if now != before.get(kind, ()):
                self.on_change(kind)

    @property
    def servers(self) -> Servers | None:
        """The servers behind us."""
        return self._session.servers

    def asks_about(self, server: str, part: str) -> bool:
        """Whether an ask rule is about a server, or about what it has under a name."""
        return self._session.settings.policy().asks_about_tool(tool_name(server, part), McpInfo(server, part))

    def redact(self, value: Any) -> Any:
        """The value without secrets."""
        return self._session.redactor.value(value)

    def new_calls(self) -> OverlappingCalls:
        """Runs the calls of a client that has read nothing yet."""
        context = replace(self._conversation.state.context, files=FileMemory())
        return OverlappingCalls(self._session, _ClientContext(context))

    def drop_followers(self, addresses: Iterable[str]) -> None:
        """Each of these resources is followed once less."""
        for uri in addresses:
            self.followers[uri] -= 1
            if self.followers[uri] <= 0:
                del self.followers[uri]

    def add(self, tool: AnyTool) -> None:
        """Offer one more tool."""
        self._conversation.state.catalog.add((tool,))
        self._tell_changes()

    def definitions(self) -> list[dict[str, Any]]:
        """The tools as clients see them; always in the same order."""
        pool = self._conversation.state.catalog.refresh()
        # what they do for models, clients have methods for
        left_out = RESOURCE_TOOLS if pool.held else RESOURCE_TOOLS | {SEARCH_TOOL}
        view = pool.view(self._conversation.state.context)
        found = []
        for listed in pool.active:
            if listed.name not in left_out:
                tool = pool.find(listed.name)
                assert tool is not None
                known = self._definitions.get(id(tool))
                if known is None or known[0] is not tool:
                    known = self._definitions[id(tool)] = (tool, tool_definition(tool, view))
                    if known[1]["name"] != tool.name and pool.find_listed(known[1]["name"]):
                        known[1]["name"] = tool.name  # a tool of the program has the short name
                found.append(known[1])
        return found

    async def find(self, name: str) -> AnyTool:
        """The tool of a name, also of a server that is slow to start; JsonRpcError if there is none."""
        tool = self._find_now(name)
        if tool is None:
            await self.settle()
            tool = self._find_now(name)
        if tool is None:
            raise JsonRpcError(f"There is no tool {name[:100]!r}. See tools/list.", INVALID_PARAMS)
        return tool

    def _find_now(self, name: str) -> AnyTool | None:
        pool = self._conversation.tools
        return pool.find(name) or pool.find(f"{PREFIX}{name}")

    async def answer_call(
        self,
        name: str,
        given: Mapping[str, Any],
        client: McpClient,
        calls: OverlappingCalls,
        on_progress: ProgressCallback | None = None,
    ) -> dict[str, Any]:
        """The result of a call. Cancelling the wait stops the call."""
        tool = await self.find(name)
        outcome = await self.run(tool.name, given, client, calls, on_progress, tool=tool)
        return call_result(outcome, tool, self._session.redactor)

    async def run(
        self,
        name: str,
        given: Mapping[str, Any],
        client: McpClient,
        calls: OverlappingCalls,
        on_progress: ProgressCallback | None = None,
        *,
        tool: AnyTool | None = None,
    ) -> Outcome:
        """How a call ended; of a tool that is offered, or of this one."""
        catalog, number = self._conversation.state.catalog, f"{client.name or 'client'}-{next(self._ids)}"
        pool = catalog.pool
        self._asker.calls[number] = ClientCall(name, client, calls)
        use_client(client)
        try:
            outcome = await calls.run(ToolUse(number, name, given), tool=tool, on_progress=on_progress)
        finally:
            del self._asker.calls[number]
        if catalog.pool is not pool:
            self._tell_changes()
        return outcome

    async def aclose(self) -> None:
        """End its calls and connections."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait({self._connecting})
        await self._session.aclose()
