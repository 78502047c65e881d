"""
The servers that the person named for RemoteTrigger.

    {"remoteServers": {"shop": {"url": "https://runs.example.org", "tokenEnv": "SHOP_TOKEN"}}}

They count in the person's own settings, flags and policy files, never in those of a project: a project could else name
a variable with a secret and have it sent somewhere. The token itself is in no file of settings.
"""

from collections.abc import Mapping
from typing import Any

from handrail.config.snapshot import Settings
from handrail.errors import UrlError
from handrail.http import urls
from handrail.records import record
from handrail.tools.remote import RemoteServer

KEY = "remoteServers"
SOURCES = ("user", "flag", "policy")
"""Whose servers count; of one name, the last."""
FIELDS = frozenset({"url", "tokenEnv"})


@record
class FoundServers:
    """The servers that can be used, and what is wrong with the others."""

    servers: Mapping[str, RemoteServer]
    problems: tuple[str, ...] = ()


NO_SERVERS = FoundServers({})


def remote_servers(settings: Settings, env: Mapping[str, str]) -> FoundServers:
    """The servers of the settings, with the tokens that the environment holds."""
    entries: dict[str, Any] = {}
    for source in SOURCES:
        for layer in settings.layers:
            if layer.source == source and isinstance(named := layer.values.get(KEY), Mapping):
                entries |= named
    if not entries:
        return NO_SERVERS
    servers, problems = dict[str, RemoteServer](), list[str]()
    for name, entry in entries.items():
        found = _server(name, entry, env)
        if isinstance(found, str):
            problems.append(f"{KEY}.{name} is left out: {found}")
        else:
            servers[name] = found
    return FoundServers(servers, tuple(problems))


def _server(name: str, entry: Any, env: Mapping[str, str]) -> RemoteServer | str:
    if not isinstance(entry, Mapping) or entry.keys() - FIELDS or not isinstance(entry.get("url"), str):
        return 'it is not understood. Write {"url": "https://...", "tokenEnv": "NAME_OF_A_VARIABLE"}.'
    try:
        target = urls.parse_target(entry["url"])
    except UrlError as error:
        return str(error)
    if not target.secure and not urls.is_loopback(target.host):
        return f"{entry['url']} would send the token unprotected. Use https."
    variable = entry.get("tokenEnv")
    token = env.get(variable, "") if isinstance(variable, str) else ""
    if not token:
        return (
            f"the variable {variable!r} holds no token." if variable else "tokenEnv names no variable with its token."
        )
    return RemoteServer(name, entry["url"], token)
