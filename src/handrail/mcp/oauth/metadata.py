"""
What servers publish about authorization (RFC 9728, RFC 8414), read and checked. Nothing here is fetched.

    MCP server --401--> protected resource metadata --> issuer --> authorization server metadata

All of it is untrusted: addresses must use https, except on this machine and only for servers on it, and an issuer or
a resource that is not the expected one is refused.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from handrail.errors import McpError, UrlError
from handrail.http.urls import is_loopback, parse_target
from handrail.mcp.oauth.reach import check_reach, url_reach
from handrail.records import record

RESOURCE_PATH = "/.well-known/oauth-protected-resource"
SERVER_PATH, OPENID_PATH = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
PARAMETER = re.compile(r'([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
PORTS = {"http": 80, "https": 443}


@record
class ProtectedResource:
    """What an MCP server says about itself: its name as an audience, who may issue tokens for it, and its scopes."""

    resource: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...] = ()


@record
class AuthorizationServer:
    """The endpoints and abilities of an authorization server."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    scopes: tuple[str, ...] = ()
    token_methods: tuple[str, ...] = ()
    """How clients may prove who they are; empty = not said."""
    sends_issuer: bool = False
    """Every answer to an authorization request names the issuer (RFC 9207)."""
    takes_metadata_url: bool = False
    """The address of a client metadata document is a client id."""


def parse_challenge(header: str) -> dict[str, str]:
    """The parameters of the Bearer challenge in a WWW-Authenticate header, by lower-case name."""
    scheme, _, rest = header.strip().partition(" ")
    if scheme.lower() != "bearer":
        found = re.search(r"(?i)(?:^|,)\s*bearer\s+", header)
        rest = header[found.end() :] if found else ""
    return {
        match[1].lower(): re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3]
        for match in PARAMETER.finditer(rest)
    }


def check_address(url: str, server_url: str) -> str:
    """
    The address, if it may be used for a server; McpError if not.

    It must use https. Plain http is for this machine, and no server elsewhere may point at this machine, nor a public
    one into this network.
    """
    try:
        target, server = parse_target(url), parse_target(server_url)
    except UrlError as error:
        raise McpError(f"its authorization names {url[:200]!r}, which is not a web address.") from error
    local = is_loopback(target.host)
    if local and not is_loopback(server.host):
        raise McpError(f"its authorization points at this machine ({target.url}), so it is not followed.")
    check_reach(target.host, url_reach(url), url_reach(server_url))
    if not target.secure and not local:
        raise McpError(f"its authorization uses {target.url}, which is not encrypted. It must use https.")
    if target.credentials:
        raise McpError(f"its authorization names an address with a password ({target.url}), so it is not followed.")
    return url


def canonical_resource(url: str) -> str:
    """The address of a server as tokens name it: lower-case scheme and host, no default port, query or fragment."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port not in (None, PORTS.get(parts.scheme)) else ""
    path = parts.path.rstrip("/")
    return urlunsplit((parts.scheme.lower(), host + port, path, "", ""))


def covers_server(resource: str, server_url: str) -> bool:
    """Whether a resource is the server, or a part of its site that the server lies in."""
    wanted, given = urlsplit(canonical_resource(server_url)), urlsplit(canonical_resource(resource))
    inside = wanted.path == given.path or wanted.path.startswith(given.path + "/")
    return (wanted.scheme, wanted.netloc) == (given.scheme, given.netloc) and inside


def resource_metadata_urls(server_url: str, challenge: Mapping[str, str]) -> tuple[str, ...]:
    """Where a server may describe itself, the best first: where its challenge says, else the well-known places."""
    if named := challenge.get("resource_metadata"):
        return (named,)
    parts = urlsplit(server_url)
    path = parts.path.rstrip("/")
    places = dict.fromkeys((RESOURCE_PATH + path, RESOURCE_PATH))
    return tuple(urlunsplit((parts.scheme, parts.netloc, place, "", "")) for place in places)


def server_metadata_urls(issuer: str) -> tuple[str, ...]:
    """Where an authorization server may describe itself, the best first."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    places = (SERVER_PATH + path, OPENID_PATH + path, path + OPENID_PATH)
    return tuple(urlunsplit((parts.scheme, parts.netloc, place, "", "")) for place in dict.fromkeys(places))


def parse_resource(value: object, server_url: str) -> ProtectedResource:
    """The metadata of a protected resource; McpError if it is not that of the server."""
    match value:
        case {"resource": str(resource), **rest}:
            pass
        case _:
            raise McpError("its protected resource metadata names no resource.")
    if not covers_server(resource, server_url):
        raise McpError(
            f"its protected resource metadata is for {resource[:200]!r}, not for {server_url!r}, so a token for it "
            "could be used elsewhere. Check the address of the server."
        )
    issuers = tuple(check_address(each, server_url) for each in _texts(rest.get("authorization_servers")))
    if not issuers:
        raise McpError("its protected resource metadata names no authorization server.")
    return ProtectedResource(resource, issuers, _texts(rest.get("scopes_supported")))


def parse_server(value: object, issuer: str, server_url: str) -> AuthorizationServer:
    """The metadata of an authorization server; McpError if it is not that of the issuer, or lacks what we need."""
    if not isinstance(value, Mapping):
        raise McpError(f"the metadata of {issuer!r} is not a JSON object.")
    if value.get("issuer") != issuer:  # a difference in spelling is a difference (RFC 8414)
        raise McpError(f"the metadata of {issuer!r} names another issuer, {str(value.get('issuer'))[:200]!r}.")
    if "S256" not in _texts(value.get("code_challenge_methods_supported")):
        raise McpError(f"{issuer!r} does not offer PKCE with S256, which protects the sign-in.")
    return AuthorizationServer(
        issuer,
        _endpoint(value, "authorization_endpoint", server_url),
        _endpoint(value, "token_endpoint", server_url),
        _endpoint(value, "registration_endpoint", server_url) if value.get("registration_endpoint") else "",
        _texts(value.get("scopes_supported")),
        _texts(value.get("token_endpoint_auth_methods_supported")),
        value.get("authorization_response_iss_parameter_supported") is True,
        value.get("client_id_metadata_document_supported") is True,
    )


def usual_endpoints(server_url: str) -> AuthorizationServer:
    """The endpoints of a server of the revision 2025-03-26 that publishes nothing."""
    parts = urlsplit(server_url)
    base = check_address(urlunsplit((parts.scheme, parts.netloc, "", "", "")), server_url)
    return AuthorizationServer(base, f"{base}/authorize", f"{base}/token", f"{base}/register")


def choose_scopes(challenge: Mapping[str, str], resource: ProtectedResource | None, server: AuthorizationServer) -> str:
    """The scopes to ask for: those of the challenge, else those of the resource; and to stay signed in, if offered."""
    wanted = challenge.get("scope", "").split() or list(resource.scopes if resource else ())
    if "offline_access" in server.scopes:
        wanted.append("offline_access")
    return join_scopes(wanted)


def join_scopes(scopes: Iterable[str]) -> str:
    """Scopes as one text, each once."""
    return " ".join(dict.fromkeys(scopes))


def _endpoint(value: Mapping[str, Any], name: str, server_url: str) -> str:
    url = value.get(name)
    if not isinstance(url, str):
        raise McpError(f"the metadata of {value.get('issuer')!r} has no {name}.")
    return check_address(url, server_url)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
