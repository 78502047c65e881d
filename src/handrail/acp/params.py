"""The params of requests: texts, lists, folders and MCP servers; JsonRpcError for what cannot be used."""

import os
from collections.abc import Mapping
from typing import Any

from handrail.conversation.blocks import Json
from handrail.errors import JsonRpcError

INVALID_PARAMS = -32602


def invalid(problem: str) -> JsonRpcError:
    """The refusal of params that cannot be used."""
    return JsonRpcError(problem, INVALID_PARAMS)


def text_of(params: Json, name: str) -> str:
    """The text of a param; JsonRpcError if it is none."""
    value = params.get(name)
    if not isinstance(value, str):
        raise invalid(f"{name} is {value!r:.100}, not a text.")
    return value


def list_of(params: Json, name: str) -> list[Any]:
    """The list of a param, empty if there is none; JsonRpcError if it is no list."""
    value = params.get(name)
    if value is not None and not isinstance(value, list):
        raise invalid(f"{name} is {value!r:.100}, not a list.")
    return value or []


def read_folder(value: object) -> str:
    """A folder as an absolute path; JsonRpcError if it is none."""
    if not isinstance(value, str) or not os.path.isabs(value) or "\0" in value or not os.path.isdir(value):  # noqa: PTH112, PTH117
        raise invalid(f"{value!r:.300} is not the absolute path of a folder that exists.")
    return value


def read_servers(servers: list[Any]) -> dict[str, Any]:
    """The MCP servers of the editor, as configurations by name; JsonRpcError if one is not understood."""
    return {text_of(server, "name"): _server(server) for server in map(_checked_server, servers)}


def _checked_server(server: object) -> Json:
    if not isinstance(server, Mapping):
        raise invalid(f"An MCP server is {server!r:.100}, not an object.")
    return server


def _server(server: Json) -> Json:
    match server.get("type"):
        case None | "stdio":
            arguments = list_of(server, "args")
            if not all(isinstance(each, str) for each in arguments):
                raise invalid("The args of an MCP server are texts.")
            return {"command": text_of(server, "command"), "args": arguments, "env": _pairs(server, "env")}
        case "http" | "sse" as kind:
            return {"type": kind, "url": text_of(server, "url"), "headers": _pairs(server, "headers")}
        case kind:
            raise invalid(f"An MCP server of the type {kind!r:.100} cannot be used. Give stdio, http or sse.")


def _pairs(server: Json, name: str) -> dict[str, str]:
    return {text_of(pair, "name"): text_of(pair, "value") for pair in map(_checked_server, list_of(server, name))}
