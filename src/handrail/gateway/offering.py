"""
An MCP server in a few lines: tools, prompts and resources of a program, governed by rules.

    server = McpServer("weather", tools=[forecast], allow=["forecast"])

    @server.resource("weather://{city}")
    def weather(city: str) -> str: ...

    asyncio.run(serve_stdio(server))
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from handrail import __version__
from handrail.dispatch.held_places import HeldPlaces
from handrail.gateway.changes import Change, Changes
from handrail.gateway.client_rules import ClientRules, session_name
from handrail.gateway.governed import GovernedTools
from handrail.gateway.offers import Complete, PromptOffer, ResourceOffer
from handrail.session.arguments import check_builtin_tools, check_folder, check_servers, check_tools, settings_flags
from handrail.session.arguments import variables as environment
from handrail.session.spec import PromptOptions, SessionHost, SessionSpec, ToolOptions
from handrail.tools.pool import AnyTool

Function = TypeVar("Function", bound=Callable[..., Any])


class McpServer:
    """
    Tools, prompts and resources for MCP clients. Every call goes through the rules, hooks and limits of a session.

    `tools` are your own, `builtin_tools` those of handrail by name, `mcp_servers` other servers to put behind this one.
    `allow`, `ask` and `deny` are rules; what they leave open is asked through the client, if it can ask a person, else
    refused. With `settings=True` the settings files of the user and of the folder count as well. A tool asks its
    client with `current_client`.

    Raises:
        HandrailError: an argument is not what is expected.
    """

    def __init__(
        self,
        name: str = "handrail",
        tools: Iterable[AnyTool] = (),
        *,
        instructions: str = "",
        builtin_tools: bool | Iterable[str] = False,
        mcp_servers: Mapping[str, Any] | None = None,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        settings: bool | str | Path = False,
        cwd: Path | str | None = None,
        state_dir: Path | str | None = None,
    ) -> None:
        env = environment(None, state_dir)
        spec = SessionSpec(
            cwd=check_folder(cwd),
            tools=ToolOptions(
                check_tools(tools),
                check_builtin_tools(builtin_tools),
                mcp_servers=check_servers(mcp_servers),
                strict_mcp=settings is not True,
            ),
            flags=settings_flags(settings, "", allow, ask, deny),
            keep_files=bool(env.get("HANDRAIL_STATE_DIR")) or settings is True,
        )
        self._open((name, instructions), spec, env, SessionHost(), {})

    @classmethod
    def from_spec(
        cls,
        spec: SessionSpec,
        *,
        name: str = "handrail",
        instructions: str = "",
        env: Mapping[str, str] | None = None,
        host: SessionHost | None = None,
        clients: Mapping[str, ClientRules] | None = None,
    ) -> "McpServer":
        """A server on a whole specification; `clients` have rules of their own, by the names that their tokens give."""
        server = cls.__new__(cls)
        server._open((name, instructions), spec, environment(env, None), host or SessionHost(), clients or {})
        return server

    def _open(
        self,
        about: tuple[str, str],
        spec: SessionSpec,
        env: Mapping[str, str],
        host: SessionHost,
        clients: Mapping[str, ClientRules],
    ) -> None:
        name, self.instructions = about
        self.info: Mapping[str, str] = {"name": name, "version": __version__}
        self.prompts: dict[str, PromptOffer] = {}
        self.resources: dict[str, ResourceOffer] = {}
        self.changes = Changes()
        tools = replace(spec.tools, defer=spec.tools.defer or "auto")
        self._spec = replace(spec, tools=tools, prompt=PromptOptions("", context=False), slash_commands=False)
        self._env = env
        self._host = replace(host, places=host.places or HeldPlaces())
        self._clients = clients
        self._opened: dict[str, GovernedTools] = {}

    # What it offers

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """The tools of the program."""
        return self._spec.tools.custom

    def add_tool(self, tool: AnyTool) -> None:
        """Offer one more tool, from now on; ToolDefinitionError if its name is taken."""
        self._spec = replace(self._spec, tools=replace(self._spec.tools, custom=(*self._spec.tools.custom, tool)))
        for tools in self._opened.values():
            tools.add(tool)

    def prompt(
        self, *, name: str = "", complete: Mapping[str, Complete] | None = None
    ) -> Callable[[Function], Function]:
        """Offer a function as a prompt: it returns a text, or messages. `complete` gives values for parameters."""

        def add(function: Function) -> Function:
            offer = PromptOffer(function, name, complete)
            self.prompts[offer.name] = offer
            self.changes.tell(Change("prompts"))
            return function

        return add

    def resource(
        self, uri: str, *, name: str = "", mime_type: str = "", complete: Mapping[str, Complete] | None = None
    ) -> Callable[[Function], Function]:
        """Offer a function as a resource: it returns a text or bytes. `{names}` in the address are its parameters."""

        def add(function: Function) -> Function:
            self.resources[uri] = ResourceOffer(function, uri, name=name, mime_type=mime_type, complete=complete)
            self.changes.tell(Change("resources"))
            return function

        return add

    def resource_changed(self, uri: str) -> None:
        """Tell the clients that follow a resource that it has changed."""
        self.changes.tell(Change("resource", uri))

    # What the service needs

    def open_tools(self, client: str) -> GovernedTools:
        """The tools of a client, under its rules."""
        rules = self._clients.get(client)
        spec = self._spec if rules is None else replace(self._spec, flags=rules.applied_to(self._spec.flags))
        spec = replace(spec, transcript=replace(spec.transcript, session_id=session_name(client)))
        self._opened[client] = GovernedTools(spec, self._env, self._host)
        return self._opened[client]
