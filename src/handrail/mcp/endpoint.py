"""
Requests to a server at an address: its headers, its sign-in, and what its status says.

A redirect is followed only within the server itself, so that no header and no message reaches another host.
"""

import json
import re
from collections.abc import Mapping
from urllib.parse import urljoin

from handrail.errors import (
    AuthorizationNeededError,
    HandrailError,
    HttpStatusError,
    McpError,
    TransportError,
    UnreachableError,
    UrlError,
)
from handrail.http.client import HttpClient, HttpResponse
from handrail.http.transport import HttpRequest
from handrail.http.urls import parse_target, without_user
from handrail.mcp.config import Authorizer, Challenge, ServerConfig
from handrail.mcp.messages import shown_text
from handrail.processes.run import run

MAX_REDIRECTS, MAX_CHALLENGES = 3, 5
MAX_REFUSAL = 64 * 1024
"""The most bytes that are read of an answer that refuses."""
HELPER_TIME, HELPER_BYTES = 10.0, 64 * 1024
NOT_GIVEN = frozenset(
    ("content-length", "content-type", "host", "transfer-encoding", "connection", "upgrade", "accept")
)
"""Headers that an entry cannot set: they belong to the message."""


class ServerEndpoint:
    """Sends requests to one server. `extra` are the headers that a helper gave."""

    def __init__(
        self,
        config: ServerConfig,
        client: HttpClient,
        authorizer: Authorizer | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        self.url = re.sub(r"^ws(?=s?://)", "http", config.url)  # a WebSocket begins as a request
        self.name = config.name
        self._client = client
        self._authorizer = authorizer
        given = {**config.headers, **(extra or {})}
        self._given = {name.lower(): value for name, value in given.items() if name.lower() not in NOT_GIVEN}
        check_headers(self._given)

    async def send(self, method: str, headers: Mapping[str, str], body: bytes = b"", url: str = "") -> HttpResponse:
        """
        An answer whose status says that it went well.

        Raises:
            HttpStatusError: the server refuses.
            AuthorizationNeededError: someone has to sign in first.
            UnreachableError: there is no answer.
        """
        url, challenges = url or self.url, 0
        for _ in range(MAX_REDIRECTS + MAX_CHALLENGES):
            response = await self._ask(method, url, headers, body)
            if response.status < 300:
                return response
            if response.status in (307, 308) or (300 <= response.status < 400 and method == "GET"):
                response.abort()
                url = self._redirect_target(url, response.headers.get("location", ""))
            elif response.status in (401, 403) and challenges < MAX_CHALLENGES:
                challenges += 1
                refusal = await self._refusal(response)
                if not await self._authorize(response):
                    raise refusal
            else:
                raise await self._refusal(response)
        raise McpError(f"The MCP server {self.name!r} redirects or refuses again and again.")

    async def aclose(self) -> None:
        """Close idle connections."""
        await self._client.aclose()

    async def _ask(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        proof = await self._authorizer.headers() if self._authorizer else {}
        whole = {**{name.lower(): value for name, value in proof.items()}, **self._given, **headers}
        try:
            return await self._client.send(HttpRequest(url, tuple(whole.items()), body, method))
        except (TransportError, UrlError) as error:
            raise UnreachableError(f"The MCP server {self.name!r} cannot be reached: {error}.") from error

    async def _authorize(self, response: HttpResponse) -> bool:
        challenge = Challenge(self.name, self.url, response.status, response.headers.get("www-authenticate", ""))
        if self._authorizer is not None:
            return await self._authorizer.respond(challenge)
        if response.status == 401:
            raise AuthorizationNeededError(
                f"The MCP server {self.name!r} wants to know who asks (status 401). "
                "Give it a header in its entry, or sign in."
            )
        return False

    def _redirect_target(self, url: str, location: str) -> str:
        target = urljoin(url, location)
        try:
            inside = parse_target(target).origin == parse_target(url).origin
        except UrlError:
            inside = False
        if not location or not inside:
            raise McpError(
                f"The MCP server {self.name!r} redirects to {shown_text(without_user(target))[:200]!r}, which is not "
                "followed. Put that address into its entry if it is the right one."
            )
        return target

    async def _refusal(self, response: HttpResponse) -> HttpStatusError:
        body = await read_bounded(response, MAX_REFUSAL)
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            value = None
        text = shown_text(body[:200].decode("utf-8", "replace")).strip()
        said = f": {text!r}" if text and value is None else ""
        return HttpStatusError(
            f"The MCP server {self.name!r} answered with status {response.status}{said}.", response.status, value
        )


async def read_bounded(response: HttpResponse, limit: int) -> bytes:
    """The answer, or its first `limit` bytes and a little more."""
    body = bytearray()
    try:
        while len(body) <= limit and (data := await response.read()):
            body += data
    except TransportError:
        pass  # what came before counts
    finally:
        response.abort()
    return bytes(body)


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise McpError if a header could not be sent."""
    for name, value in headers.items():
        if not name or not name.isascii() or any(each in value for each in "\r\n\0"):
            raise McpError(f"its header {name!r} cannot be sent: its name or value has characters that no header has.")


async def headers_of_helper(config: ServerConfig, env: Mapping[str, str]) -> dict[str, str]:
    """The headers that the helper of an entry prints as a JSON object; McpError if it does not."""
    if not config.headers_helper:
        return {}
    given = {"CLAUDE_CODE_MCP_SERVER_NAME": config.name, "CLAUDE_CODE_MCP_SERVER_URL": config.url}
    given |= {"HANDRAIL_MCP_SERVER_NAME": config.name, "HANDRAIL_MCP_SERVER_URL": config.url}
    try:
        ended = await run(
            ["/bin/sh", "-c", config.headers_helper],
            cwd=config.cwd,
            env={**env, **given},
            timeout=HELPER_TIME,
            max_bytes=HELPER_BYTES,
        )
        value = json.loads(ended.stdout) if ended.code == 0 else None
    except (OSError, ValueError, HandrailError) as error:
        raise McpError(f"its headersHelper {config.headers_helper!r} failed: {error}.") from error
    if ended.code != 0:
        said = shown_text(ended.stderr.decode("utf-8", "replace").strip())[-300:]
        why = "took too long" if ended.timed_out else f"ended with exit code {ended.code}"
        raise McpError(f"its headersHelper {config.headers_helper!r} {why}.{f' It said: {said}' if said else ''}")
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise McpError(f"its headersHelper {config.headers_helper!r} must print a JSON object of texts.")
    return value
