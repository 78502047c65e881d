"""
Decides which MCP servers may be used, by the settings `allowedMcpServers` and `deniedMcpServers`.

    {"serverName": "db"}   {"serverCommand": ["uvx", "db-mcp"]}   {"serverUrl": "https://*.example.com/*"}

Deny wins, from whatever file, and matches broadly. With a list of allowed servers no other one is used. A list that
names commands or addresses judges servers that have one by these alone, because a server can take any name.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from handrail.config.snapshot import Layer, Settings
from handrail.hooks.urls import url_allowed
from handrail.tools.mcp_names import server_name

ALLOWED, DENIED, ONLY_MANAGED = "allowedMcpServers", "deniedMcpServers", "allowManagedMcpServersOnly"
USUAL_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
NAME, COMMAND, ADDRESS = "serverName", "serverCommand", "serverUrl"


def refusal_reason(settings: Settings, name: str, forms: Sequence[Mapping[str, Any]]) -> str:
    """
    Why a server may not be used; empty if it may.

    `forms` are its configuration as written and as used; the last one is the one that would be used.
    """
    for place, entry in _entries(settings.layers, DENIED):
        if any(_denies(entry, name, form) for form in forms):
            return f"{place} denies it"
    if settings.doubtful:
        return "a settings file is broken, so it is unknown which servers it denies"
    managed_only = bool(settings.get_managed(ONLY_MANAGED))
    layers = [layer for layer in settings.layers if layer.source == "policy" or not managed_only]
    if not managed_only and not any(ALLOWED in layer.values for layer in layers):
        return ""
    allowed = list(_entries(layers, ALLOWED))
    if _allows([entry for _, entry in allowed], name, forms[-1]):
        return ""
    lists = [_place(layer, (ALLOWED,)) for layer in layers if ALLOWED in layer.values]
    return f"{lists[0]} does not allow it" if lists else f"{ONLY_MANAGED} is set, and policy allows none"


def _entries(layers: Sequence[Layer], key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for layer in layers:
        for at, entry in enumerate(layer.values.get(key, ())):
            yield _place(layer, (key, at)), entry


def _place(layer: Layer, path: tuple[str | int, ...]) -> str:
    line = layer.document.line(path)
    return f"{path[0]} of {layer.document.file.shown}" + (f":{line}" if line else "")


def _denies(entry: Mapping[str, Any], name: str, form: Mapping[str, Any]) -> bool:
    if NAME in entry:
        return _fold_name(str(entry[NAME])) == _fold_name(name)
    if COMMAND in entry:
        words, given = list(entry[COMMAND]), _words(form)
        return bool(words and given) and _program(words) == _program(given)
    pattern, address = str(entry.get(ADDRESS, "")), _address(form)
    return any(_reaches(pattern, spelling) for spelling in (address, _plain(address)))


def _allows(entries: Sequence[Mapping[str, Any]], name: str, form: Mapping[str, Any]) -> bool:
    words, address = _words(form), _address(form)
    if words and address:
        return False  # an allowed address must not vouch for a command, nor a command for an address
    if words and any(COMMAND in entry for entry in entries):
        return any(entry.get(COMMAND) == words for entry in entries)
    if address and any(ADDRESS in entry for entry in entries):
        return any(_reaches(entry[ADDRESS], address) for entry in entries if ADDRESS in entry)
    return any(entry.get(NAME) == name for entry in entries)


def _words(form: Mapping[str, Any]) -> list[str]:
    command = form.get("command")
    return [command, *map(str, form.get("args") or ())] if isinstance(command, str) else []


def _program(words: list[str]) -> list[str]:
    """The words without the folder of the program."""
    return [os.path.basename(words[0]), *words[1:]]  # noqa: PTH119  # a text


def _address(form: Mapping[str, Any]) -> str:
    url = form.get("url")
    return url.strip() if isinstance(url, str) else ""


def _plain(address: str) -> str:
    """The address without what makes no difference: the user, the default port, a dot after the host, an empty path."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return ""
    host = (parts.hostname or "").rstrip(".")
    if not host:
        return ""
    if port is not None and port != USUAL_PORTS.get(parts.scheme):
        host += f":{port}"
    return urlunsplit((parts.scheme, host, parts.path or "/", parts.query, ""))


def _reaches(pattern: str, address: str) -> bool:
    if not pattern or not address:
        return False
    return url_allowed(address, (pattern,))


def _fold_name(name: str) -> str:
    """The name as it appears in tool names, in which different names may become the same."""
    return server_name(name.casefold())
