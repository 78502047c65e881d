"""Requests to authorization servers: discovery, registration, and tokens for a code or a refresh token."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit, urlunsplit

from handrail.errors import McpError, TokenRefusedError, TransportError, UrlError
from handrail.http.client import HttpClient, WholeResponse
from handrail.http.transport import HttpRequest
from handrail.mcp.oauth.metadata import (
    AuthorizationServer,
    ProtectedResource,
    check_address,
    parse_resource,
    parse_server,
    resource_metadata_urls,
    server_metadata_urls,
    usual_endpoints,
)
from handrail.mcp.oauth.tokens import OAuthClient
from handrail.records import record

TIME_LIMIT, MAX_BYTES = 15.0, 1_000_000
METHODS = ("none", "client_secret_basic", "client_secret_post")
ACCEPT = (("accept", "application/json"),)
GRANT_TYPES = ("authorization_code", "refresh_token")


@record
class Discovery:
    """What is known of the authorization of a server; `resource` is None if it describes only its endpoints."""

    server: AuthorizationServer
    resource: ProtectedResource | None

    def audience(self, server_url: str) -> str:
        """What tokens are asked for."""
        return self.resource.resource if self.resource else server_url


class OAuthHttp:
    """Asks authorization servers over HTTP, in bounded time and size. Redirects are not followed."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    async def discover(self, server_url: str, challenge: Mapping[str, str]) -> Discovery:
        """
        Who issues tokens for a server, and how.

        Raises:
            McpError: the server does not say, or says something that must not be used.
        """
        check_address(server_url, server_url)
        described = await self._first(resource_metadata_urls(server_url, challenge), server_url)
        if described is not None:
            resource = parse_resource(described, server_url)
            issuer = resource.issuers[0]
            found = await self._first(server_metadata_urls(issuer), server_url)
            if found is None:
                raise McpError(f"its authorization server {issuer!r} publishes no metadata.")
            return Discovery(parse_server(found, issuer, server_url), resource)
        if challenge.get("resource_metadata"):
            raise McpError(f"its metadata at {challenge['resource_metadata'][:200]!r} cannot be read.")
        parts = urlsplit(server_url)
        base = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        found = await self._first(server_metadata_urls(base), server_url)
        if found is None:
            return Discovery(usual_endpoints(server_url), None)
        return Discovery(parse_server(found, _own_issuer(found, base), server_url), None)

    async def register(self, server: AuthorizationServer, redirect: str, scope: str) -> OAuthClient:
        """A client id for us at an authorization server; McpError if it gives none."""
        method = next((each for each in METHODS if each in server.token_methods), "none")
        wanted = {
            "client_name": "handrail",
            "application_type": "native",
            "redirect_uris": [redirect],
            "grant_types": GRANT_TYPES,
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            **({"scope": scope} if scope else {}),
        }
        headers = (("content-type", "application/json"),)
        answer = await self._post(server.registration_endpoint, headers, json.dumps(wanted).encode())
        match _json(answer):
            case {"client_id": str(client), **rest} if answer.status in (200, 201):
                secret, given = rest.get("client_secret"), rest.get("token_endpoint_auth_method")
                chosen = given if given in METHODS else method
                return OAuthClient(client, secret if isinstance(secret, str) else "", str(chosen), redirect)
            case value:
                raise McpError(f"{server.issuer} did not register us: {_reason(answer, value)}")

    async def request_token(
        self, endpoint: str, client: OAuthClient, fields: Mapping[str, str], methods: Sequence[str] = ()
    ) -> Mapping[str, Any]:
        """
        The answer of a token endpoint.

        Raises:
            TokenRefusedError: the server answered that it gives none.
            McpError: it did not answer, or not in JSON.
        """
        method = client.method if client.secret else "none"
        if client.secret and method not in METHODS[1:]:
            method = next((each for each in METHODS[1:] if each in methods), METHODS[1])
        form, headers = dict(fields), [("content-type", "application/x-www-form-urlencoded")]
        if method == "client_secret_basic":
            pair = f"{quote_plus(client.id)}:{quote_plus(client.secret)}".encode()
            headers.append(("authorization", f"Basic {base64.b64encode(pair).decode()}"))
        else:
            form["client_id"] = client.id
            if method == "client_secret_post":
                form["client_secret"] = client.secret
        answer = await self._post(endpoint, headers, urlencode(form).encode())
        value = _json(answer)
        if answer.status == 200 and isinstance(value, Mapping):
            return value
        raise TokenRefusedError(f"the authorization server gave no token: {_reason(answer, value)}")

    async def _first(self, urls: Sequence[str], server_url: str) -> object:
        """The first of several documents that is there; None if none is."""
        for url in urls:
            answer = await self._ask(HttpRequest(check_address(url, server_url), ACCEPT, b"", "GET"))
            if answer.status == 200:
                return _json(answer)
            if answer.status >= 500:
                raise McpError(f"{url} answered with status {answer.status}. Try again later.")
        return None

    async def _post(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> WholeResponse:
        return await self._ask(HttpRequest(url, (*ACCEPT, *headers), body))

    async def _ask(self, request: HttpRequest) -> WholeResponse:
        try:
            answer = await self._http.fetch(request, max_bytes=MAX_BYTES, timeout=TIME_LIMIT)
        except TimeoutError as error:
            raise McpError(f"{request.url} did not answer in {TIME_LIMIT:g} s.") from error
        except (TransportError, UrlError) as error:
            raise McpError(f"its authorization server cannot be reached: {error}") from error
        if answer.cut:
            raise McpError(f"{request.url} answered with more than {MAX_BYTES:,} bytes.")
        return answer


def _own_issuer(found: object, base: str) -> str:
    """The issuer that a server of an older revision may name: its own address, with or without a slash at the end."""
    named = found.get("issuer") if isinstance(found, Mapping) else None
    return named if isinstance(named, str) and named.rstrip("/") == base else base


def _json(answer: WholeResponse) -> object:
    try:
        value: object = json.loads(answer.body)
    except ValueError:
        return None
    return value


def _reason(answer: WholeResponse, value: object) -> str:
    """What an error answer says, without control characters and in one line."""
    match value:
        case {"error": str(error), **rest}:
            more = rest.get("error_description")
            text = f"{error}: {more}" if isinstance(more, str) else error
        case _:
            text = f"status {answer.status}"
    return "".join(each if each.isprintable() else " " for each in text)[:300]
