"""Prompts, resources and completion for clients: those of the program first, then those of the servers behind us."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

from handrail.errors import HandrailError, JsonRpcError
from handrail.gateway.client import ClientLink, use_client
from handrail.gateway.links import RoundLink
from handrail.gateway.offering import McpServer
from handrail.gateway.offers import ResourceOffer, call_function
from handrail.gateway.protocol import ClientRequest
from handrail.gateway.servers import ServersBehind
from handrail.gateway.state import ClientState
from handrail.mcp.messages import INVALID_PARAMS
from handrail.mcp.server import PartialArgument

MAX_COMPLETIONS = 100
MAX_FOLLOWED = 1_000

Method: TypeAlias = "Callable[[ClientState, ClientRequest, ClientLink], Awaitable[dict[str, Any]]]"


class ClientOffers:
    """Answers what clients ask about prompts and resources."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self.methods: dict[str, Method] = {
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "completion/complete": self._complete,
        }
        self.legacy_methods: dict[str, Method] = {
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
        }

    async def follow(self, state: ClientState, addresses: Iterable[str]) -> list[str]:
        """Follow resources for a client that cannot be asked; those of them that it may follow."""
        followed: list[str] = []
        link = RoundLink({}, lambda _message: None, {})
        for uri in list(dict.fromkeys(addresses))[:MAX_FOLLOWED]:
            try:
                await self._follow(state, uri, link)
                followed.append(uri)
            except HandrailError:
                continue  # what is not honoured is not in the acknowledgement
        return followed

    async def _follow(self, state: ClientState, uri: str, link: ClientLink) -> None:
        if state.tools.servers is not None and self._find_own(uri) is None:
            await ServersBehind(state.tools).follow(uri, state.client(link), state.calls)

    # Prompts

    async def _list_prompts(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        await state.tools.settle()
        own = [prompt.definition() for prompt in self._server.prompts.values()]
        return {"prompts": own + ServersBehind(state.tools).prompts()}

    async def _get_prompt(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        name, given = request.text("name"), request.object("arguments")
        if (prompt := self._server.prompts.get(name)) is not None:
            use_client(state.client(link))
            return {"description": prompt.description, "messages": await prompt.messages(given)}
        texts = {key: str(value) for key, value in given.items()}
        return await ServersBehind(state.tools).prompt(name, texts, state.client(link), state.calls)

    # Resources

    async def _list_resources(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        await state.tools.settle()
        own = [each.definition() for each in self._server.resources.values() if not each.variables]
        return {"resources": own + ServersBehind(state.tools).resources()}

    async def _list_templates(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        await state.tools.settle()
        own = [each.definition() for each in self._server.resources.values() if each.variables]
        return {"resourceTemplates": own + ServersBehind(state.tools).templates()}

    async def _read_resource(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        uri, client = request.text("uri"), state.client(link)
        use_client(client)
        if (own := self._find_own(uri)) is not None:
            return {"contents": await own[0].read(uri, own[1])}
        return {"contents": await ServersBehind(state.tools).read(uri, client, state.calls)}

    async def _subscribe(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        uri = request.text("uri")
        if len(state.followed) >= MAX_FOLLOWED:
            raise JsonRpcError(f"A client may follow {MAX_FOLLOWED:,} resources.", INVALID_PARAMS)
        if uri not in state.followed:
            await self._follow(state, uri, link)
            state.followed.add(uri)
        return {}

    async def _unsubscribe(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        uri = request.text("uri")
        if uri in state.followed:
            state.followed.discard(uri)
            await ServersBehind(state.tools).unfollow(uri)
        return {}

    def _find_own(self, uri: str) -> tuple[ResourceOffer, dict[str, str]] | None:
        """The resource of the program at this address, and the values of its variables; None if there is none."""
        for each in self._server.resources.values():
            if (values := each.match(uri)) is not None:
                return each, values
        return None

    # Completion

    async def _complete(self, state: ClientState, request: ClientRequest, link: ClientLink) -> dict[str, Any]:
        match request.params:
            case {"ref": Mapping() as ref, "argument": {"name": str(name), "value": str(begun)}}:
                use_client(state.client(link))
                others = request.object("context").get("arguments")
                given = {str(key): str(value) for key, value in others.items()} if isinstance(others, Mapping) else {}
                values = await self._completions(state, ref, PartialArgument(name, begun, given))
            case _:
                raise JsonRpcError("ref and argument with name and value must be given.", INVALID_PARAMS)
        shown = values[:MAX_COMPLETIONS]
        return {"completion": {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}}

    async def _completions(self, state: ClientState, ref: Mapping[str, Any], argument: PartialArgument) -> list[str]:
        match ref:
            case {"type": "ref/prompt", "name": str(prompt)} if prompt in self._server.prompts:
                complete = self._server.prompts[prompt].complete.get(argument.name)
            case {"type": "ref/resource", "uri": str(uri)} if uri in self._server.resources:
                complete = self._server.resources[uri].complete.get(argument.name)
            case _:
                return await ServersBehind(state.tools).complete(ref, argument)
        if complete is None:
            return []
        return [str(value) for value in await call_function(lambda: complete(argument.begun), {})]
