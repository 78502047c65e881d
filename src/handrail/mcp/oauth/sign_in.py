"""
A sign-in: the authorization code flow with PKCE (S256), a state, the audience of the token, and a check of the issuer.

    address of the authorization server -> a person agrees in the browser -> 127.0.0.1 gets a code -> tokens
"""

import base64
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from handrail.errors import McpError
from handrail.mcp.oauth.endpoints import Discovery, OAuthHttp
from handrail.mcp.oauth.loopback import Redirect
from handrail.mcp.oauth.metadata import AuthorizationServer, canonical_resource, covers_server
from handrail.mcp.oauth.tokens import Grant, OAuthClient, ServerGrants, tokens_of
from handrail.records import record

PATIENCE = 300.0
"""Seconds in which a person has to sign in."""

OpenBrowser: TypeAlias = Callable[[str], Awaitable[None]]
"""Shows an address to the person who signs in."""


@record
class OAuthOptions:
    """
    The `oauth` of a server's entry.

    `audiences` are names for which tokens may be issued besides the address of the server.
    """

    client_id: str = ""
    client_secret: str = ""
    metadata_url: str = ""
    """The address of our client metadata document, which serves as client id where the server takes one."""
    callback_port: int = 0
    scope: str = ""
    audiences: tuple[str, ...] = ()


def parse_options(written: Mapping[str, Any], expand: Callable[[str], str] = str) -> OAuthOptions:
    """The `oauth` object of an entry; McpError if a part of it is not of the kind it must be."""
    kinds = {"clientId": str, "clientSecret": str, "clientMetadataUrl": str, "callbackPort": int, "audience": str}
    for name, kind in kinds.items():
        if name in written and (not isinstance(written[name], kind) or isinstance(written[name], bool)):
            raise McpError(f"its oauth.{name} must be {'a text' if kind is str else 'a number'}.")
    port, scopes = written.get("callbackPort", 0), written.get("scopes", ())
    if not 0 <= port < 65_536:
        raise McpError(f"its oauth.callbackPort is {port}. Give a port from 1 to 65535.")
    metadata_url = expand(written.get("clientMetadataUrl", ""))
    if metadata_url and not metadata_url.startswith("https://"):
        raise McpError(f"its oauth.clientMetadataUrl is {metadata_url!r}. It must be an https address.")
    return OAuthOptions(
        expand(written.get("clientId", "")),
        expand(written.get("clientSecret", "")),
        metadata_url,
        port,
        scopes if isinstance(scopes, str) else " ".join(map(str, scopes)),
        (written["audience"],) if "audience" in written else (),
    )


@record
class SignIn:
    """One sign-in at the authorization server of one MCP server."""

    http: OAuthHttp
    found: Discovery
    options: OAuthOptions
    open_browser: OpenBrowser

    async def run(self, known: ServerGrants, scope: str) -> ServerGrants:
        """
        The grants of a server after a person has signed in.

        Raises:
            McpError: the person or the server refused, or the answer cannot be trusted.
        """
        server, state, verifier = self.found.server, secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        before = known.grants.get(server.issuer)
        audience = self.found.audience(known.url)
        with closing(await self._listen(state, before)) as redirect:
            client = await self._client(before, redirect.url, scope)
            digest = hashlib.sha256(verifier.encode()).digest()
            asked = {
                "response_type": "code",
                "client_id": client.id,
                "redirect_uri": redirect.url,
                "state": state,
                "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
                "code_challenge_method": "S256",
                "resource": audience,
                **({"scope": scope} if scope else {}),
            }
            await self.open_browser(add_parameters(server.authorization_endpoint, asked))
            try:
                answer = await redirect.answer(PATIENCE)
            except TimeoutError as error:
                raise McpError(f"there was no sign-in within {PATIENCE:g} s. Run the command again.") from error
        fields = {
            "grant_type": "authorization_code",
            "code": code_of(answer, state, server),
            "redirect_uri": redirect.url,
            "code_verifier": verifier,
            "resource": audience,
        }
        given = await self.http.request_token(server.token_endpoint, client, fields, server.token_methods)
        tokens = tokens_of(given, scope)
        check_audience(tokens.access, known.url, self.options.audiences)
        return known.with_grant(server.issuer, Grant(client, tokens, server.token_endpoint, audience))

    async def _listen(self, state: str, before: Grant | None) -> Redirect:
        """The address for the answer, on the port that is configured, else on that which is registered, else on any."""
        registered = urlsplit(before.client.redirect).port if before and not self.options.client_id else None
        for port in dict.fromkeys((self.options.callback_port or registered or 0, self.options.callback_port)):
            with suppress(OSError):
                return await Redirect(state, port).listen()
        raise McpError(
            f"the port {self.options.callback_port} for the sign-in is in use. Free it, or name another one."
        )

    async def _client(self, before: Grant | None, redirect: str, scope: str) -> OAuthClient:
        """Who we are there: as configured, by our metadata document, as registered before, or newly registered."""
        server, options = self.found.server, self.options
        if options.client_id:
            method = next((each for each in server.token_methods if each.startswith("client_secret_")), "")
            return OAuthClient(options.client_id, options.client_secret, method if options.client_secret else "none")
        if options.metadata_url and server.takes_metadata_url:
            return OAuthClient(options.metadata_url)
        if before is not None and before.client.redirect == redirect:
            return before.client
        if not server.registration_endpoint:
            raise McpError(
                f"{server.issuer} registers no clients by itself. Register one there with the redirect address "
                'http://127.0.0.1:PORT/callback, and put "oauth": {"clientId": "...", "callbackPort": PORT} into its '
                "entry."
            )
        return await self.http.register(server, redirect, scope)


def code_of(answer: Mapping[str, str], state: str, server: AuthorizationServer) -> str:
    """The code in an authorization response; McpError if it is refused, or not from this server."""
    if answer.get("state") != state:
        raise McpError("the answer to the sign-in belongs to another one.")
    issuer = answer.get("iss")
    if issuer is None and server.sends_issuer:
        raise McpError(f"the answer to the sign-in does not say that it is from {server.issuer!r}, as it must.")
    if issuer is not None and issuer != server.issuer:  # no normalisation: RFC 9207 compares texts
        raise McpError(f"the answer to the sign-in is from {issuer[:200]!r}, not from {server.issuer!r}.")
    if "error" in answer:
        more = answer.get("error_description", "")
        text = f"{answer['error']}{': ' if more else ''}{more}"[:300]
        raise McpError(f"the sign-in was refused: {''.join(each if each.isprintable() else ' ' for each in text)}")
    if not answer.get("code"):
        raise McpError("the answer to the sign-in holds no code.")
    return answer["code"]


def check_audience(token: str, server_url: str, also: tuple[str, ...] = ()) -> None:
    """
    Raise McpError if a token says that it is for another site. Most tokens say nothing that we can read.

    A token that another site accepts could be used there by this server.
    """
    claims = _claims(token)
    named = claims.get("aud")
    audiences = [each for each in (named if isinstance(named, list) else [named]) if isinstance(each, str)]
    sites = [each for each in audiences if "://" in each]
    if not sites or len(sites) < len(audiences) or any(each in also for each in audiences):
        return
    site = urlsplit(canonical_resource(server_url)).netloc
    if not any(covers_server(each, server_url) or urlsplit(canonical_resource(each)).netloc == site for each in sites):
        raise McpError(
            f"the authorization server gave a token for {sites[0][:200]!r}, not for {server_url!r}, so it is not used. "
            'If that is right, add "oauth": {"audience": "..."} to the entry of the server.'
        )


def _claims(token: str) -> Mapping[str, Any]:
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        value = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def add_parameters(url: str, given: Mapping[str, str]) -> str:
    """The address with parameters added to those it has."""
    parts = urlsplit(url)
    query = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *given.items()])
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))
