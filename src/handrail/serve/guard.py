"""
Which requests pass: the exact Host, no foreign Origin, and a token that is known.

A page of another site that a person has open can send requests to loopback too, under a name of its own that leads
there (DNS rebinding). So the name that was asked for must be ours, whatever a browser says about where a request
comes from must be us, and the token comes on top of that.
"""

import hashlib
import ipaddress
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from handrail.records import record

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]
NamesAt = Callable[[str, int], tuple[frozenset[str], frozenset[str]]]

IDENTITY = "handrail.identity"
"""The key of a request's scope under which its application finds who asks."""

_READS = frozenset({"GET", "HEAD"})
_OUR_SITES = frozenset({"same-origin", "none"})


def new_token() -> str:
    """A token of 256 random bits, as text for a URL or a header."""
    return secrets.token_urlsafe(32)


def token_digest(token: str) -> str:
    """What is kept of a token: enough to know it again, useless to a reader of the file."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


@record
class Refusal:
    """Why a request is not answered."""

    status: int
    message: str


@record
class Door:
    """Who may come in: the names this server has, the origins that belong to it, and the tokens by digest.

    Without `tokens` every program on this machine may; `public` are the paths that need no token (a page's own files).
    `cookie` is the cookie that may carry the token instead of the header. `error` makes of a refusal what the clients
    of this server get as JSON for any error; without it they get plain text.
    """

    hosts: frozenset[str]
    origins: frozenset[str]
    tokens: Mapping[str, str] | None
    public: frozenset[str] = frozenset()
    cookie: str = ""
    error: Callable[[str], Mapping[str, Any]] | None = None


def own_names(host: str, port: int, *, tls: bool) -> tuple[frozenset[str], frozenset[str]]:
    """The values of Host and of Origin that mean this server; loopback has three names."""
    host = host.strip("[]").lower()
    names = {f"[{host}]" if ":" in host else host} | (
        {"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else set()
    )
    scheme, default = ("https", 443) if tls else ("http", 80)
    hosts = {f"{name}:{port}" for name in names} | ({*names} if port == default else set())
    return frozenset(hosts), frozenset(f"{scheme}://{host}" for host in hosts)


def is_everywhere(host: str) -> bool:
    """Whether a server that is bound there listens at every address of its machine."""
    return host.strip("[]") in ("0.0.0.0", "::", "")  # noqa: S104  # it is told apart, not bound


def plain_address(host: str) -> str:
    """An address as people write it: that of IPv4 also where it comes inside one of IPv6."""
    mapped = ipaddress.IPv6Address(host).ipv4_mapped if ":" in host else None
    return str(mapped) if mapped else host


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address; a name counts only if it is `localhost`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def judge(door: Door, method: str, path: str, headers: Mapping[str, tuple[str, ...]]) -> str | Refusal:
    """Who asks, as the tokens name them (empty without tokens), or why the request is refused."""
    hosts = headers.get("host", ())
    if len(hosts) != 1 or hosts[0].lower() not in door.hosts:
        return Refusal(421, f"This server is not {_quote(hosts)}; ask for {' or '.join(sorted(door.hosts))}.")
    origins = headers.get("origin", ())
    if any(origin.lower() not in door.origins for origin in origins):
        return Refusal(403, f"Pages of {_quote(origins)} may not use this server.")
    sites = headers.get("sec-fetch-site", ())
    navigates = method in _READS and headers.get("sec-fetch-mode") == ("navigate",)
    if not navigates and any(site.lower() not in _OUR_SITES for site in sites):
        return Refusal(403, "Pages of another site may not use this server.")
    if door.tokens is None or path in door.public:
        return ""
    token = _presented_token(headers, door.cookie)
    who = door.tokens.get(token_digest(token)) if token else None
    if who is None:
        return Refusal(401, "This server needs its token: send the header 'Authorization: Bearer TOKEN'.")
    return who


def _presented_token(headers: Mapping[str, tuple[str, ...]], cookie: str) -> str:
    for value in headers.get("authorization", ()):
        scheme, _, token = value.partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""
    for line in headers.get("cookie", ()) if cookie else ():
        for part in line.split(";"):
            name, _, value = part.strip().partition("=")
            if name == cookie:
                return value
    return ""


def _quote(values: tuple[str, ...]) -> str:
    return " and ".join(ascii(value) for value in values) or "without a name"


class Guard:
    """
    An application behind a door: asks `judge` for each request, before the application sees any of it.

    `names_at`, for a server that listens everywhere: the names and origins of the address that a connection came to.
    """

    def __init__(self, app: App, door: Door, names_at: NamesAt | None = None) -> None:
        self.app = app
        self.door = door
        self._names_at = names_at

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers: dict[str, tuple[str, ...]] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1").lower()
            headers[key] = (*headers.get(key, ()), value.decode("latin-1"))
        answer = judge(self._door_at(scope.get("server")), scope.get("method", "GET"), scope["path"], headers)
        if isinstance(answer, Refusal):
            await self._refuse(answer, scope["type"], send)
            return
        await self.app(scope | {IDENTITY: answer}, receive, send)

    def _door_at(self, server: tuple[str, int | None] | None) -> Door:
        if self._names_at is None or server is None or server[1] is None:
            return self.door
        hosts, origins = self._names_at(plain_address(server[0]), server[1])
        return replace(self.door, hosts=self.door.hosts | hosts, origins=self.door.origins | origins)

    async def _refuse(self, refusal: Refusal, kind: str, send: Send) -> None:
        if kind == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal.message[:120]})
            return
        form, body = "text/plain; charset=utf-8", f"{refusal.message}\n"
        if self.door.error is not None:
            form, body = "application/json", json.dumps(self.door.error(refusal.message))
        headers = [(b"content-type", form.encode()), (b"x-content-type-options", b"nosniff")]
        if refusal.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": body.encode()})
