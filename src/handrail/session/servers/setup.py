"""What the MCP servers of a session are given: who signs in, which tools are accepted, and what people should know."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.config.snapshot import Settings
from handrail.lazy import lazy
from handrail.mcp.config import VARIABLE, Authorizer, ServerConfig, expand_variables
from handrail.session.servers.parts import SessionDoors, server_parts
from handrail.session.servers.pins import LOCK, PinFile, ToolPins
from handrail.session.servers.servers import Servers, denied_by, refused_by
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.spec import SessionHost, SessionSpec
from handrail.session.tools import builtin_names

if TYPE_CHECKING:
    from handrail.http import client
    from handrail.mcp.oauth import authorizer, reach, sign_in, tokens
else:  # few servers want to know who asks
    authorizer = lazy("handrail.mcp.oauth.authorizer")
    client = lazy("handrail.http.client")
    reach = lazy("handrail.mcp.oauth.reach")
    sign_in = lazy("handrail.mcp.oauth.sign_in")
    tokens = lazy("handrail.mcp.oauth.tokens")

DYNAMIC = "dynamic"
"""The scope of servers that a program or --mcp-config names."""
PLUGIN = "plugin"


def open_servers(
    spec: SessionSpec,
    host: SessionHost,
    settings: SessionSettings,
    doors: SessionDoors,
    *,
    given: Mapping[str, Any],
    others: Mapping[str, Any],
    of_plugins: Mapping[str, Any] | None = None,
) -> Servers:
    """The servers of a session, not connected yet: those `given`, the `others` of its files, and those of plugins."""
    loaded = settings.loaded
    pins = ToolPins(partial(lock_file, loaded.settings, settings.places.state, str(spec.cwd), given), builtin_names)
    parts = replace(
        server_parts(host, settings, doors),
        authorizer_for=authorizers(loaded.env, settings.places.state),
        accept=pins.accept,
    )
    refuses, denies = refused_by(settings), denied_by(settings)
    servers = Servers(loaded.env, spec.cwd, host.mcp_transport, refuses, parts, denies=denies, approved=pins.names)
    for scope, entries in ((DYNAMIC, given), *by_scope(loaded.settings, others).items()):
        used = {name: entry for name, entry in entries.items() if scope == DYNAMIC or name not in given}
        for note in entry_notes(used, loaded.env):
            host.on_warning(note)
        servers.add(used, scope)
    servers.add(of_plugins or {}, PLUGIN)
    servers.confirm = partial(confirm_tools, servers, pins, host)
    return servers


async def confirm_tools(servers: Servers, pins: ToolPins, host: SessionHost) -> None:
    """Ask the person at the terminal about tools that are not as approved; those that are accepted are offered."""
    if host.handler is not None and pins.waiting:
        for name in await pins.ask(host.handler):
            await servers.reconnect(name)


def by_scope(settings: Settings, servers: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Servers that files name, by their scope."""
    found: dict[str, dict[str, Any]] = {}
    for name, entry in servers.items():
        written = settings.find_server(name)
        found.setdefault(written.scope if written else "project", {})[name] = entry
    return found


def lock_file(settings: Settings, state: Path, cwd: str, given: Mapping[str, Any], server: str) -> Path | None:
    """The lock that the tools of a server are pinned in; None if they are not pinned."""
    if server.startswith("plugin:"):
        return state / LOCK
    written = None if server in given else settings.find_server(server)
    if written is not None and written.scope != "project":
        return state / LOCK
    folder = Path(written.folder if written else cwd, ".handrail")
    if written is None and server not in PinFile(folder / LOCK).read():
        return None
    return folder / LOCK


def authorizers(
    env: Mapping[str, str], state: Path, open_browser: "sign_in.OpenBrowser | None" = None
) -> Callable[[ServerConfig], Authorizer | None]:
    """Makes the authorizer of a server that is reached over HTTP, unless its entry holds a credential already."""

    def make(config: ServerConfig) -> Authorizer | None:
        if any(name.lower() == "authorization" for name in config.headers) or config.headers_helper:
            return None
        options = sign_in.parse_options(config.oauth, lambda text: expand_variables(text, env))
        if not options.metadata_url and (url := env.get("HANDRAIL_OAUTH_CLIENT_METADATA_URL", "")):
            options = replace(options, metadata_url=url)
        guard = reach.ReachGuard(config.url)
        http = client.HttpClient(env, proxy_loopback=False, keep_alive=False, resolve=guard.look_up)
        return authorizer.OAuthAuthorizer(config, tokens.TokenStore(state), http, options, open_browser)

    return make


def entry_notes(servers: Mapping[str, Any], env: Mapping[str, str]) -> Iterator[str]:
    """What people should know about entries before they are used."""
    for name, entry in servers.items():
        texts = list(_texts(entry))
        unset = {found["name"] for _key, text in texts for found in VARIABLE.finditer(text) if _is_unset(found, env)}
        for variable in sorted(unset):
            yield f"the MCP server {name!r} uses ${{{variable}}}, which is not set; it is left as it is written."
        if padded := next((key for key, text in texts if text != text.strip()), None):
            yield f"the MCP server {name!r} has blanks around the value of {padded!r}; they are kept."


def _is_unset(found: "re.Match[str]", env: Mapping[str, str]) -> bool:
    return found["name"] not in env and found["default"] is None


def _texts(entry: Any) -> Iterator[tuple[str, str]]:
    """The texts of an entry in which variables are expanded, each with its key."""
    if not isinstance(entry, Mapping):
        return
    found = [(key, entry.get(key)) for key in ("command", "url")]
    args: Sequence[Any] = entry["args"] if isinstance(entry.get("args"), list) else ()
    found += [(f"args[{at}]", each) for at, each in enumerate(args)]
    for key in ("env", "headers"):
        if isinstance(entry.get(key), Mapping):
            found += [(f"{key}.{name}", value) for name, value in entry[key].items()]
    yield from ((key, value) for key, value in found if isinstance(value, str))
