"""A small authorization server and a protected resource, both real, on loopback, with switches for what goes wrong."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

Reply = tuple[int, dict[str, str], bytes]


@dataclass
class Site:
    """Both servers on one port. `said` holds every request to an endpoint, in order."""

    base: str = ""
    resource: str = ""
    issuer: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    challenge_scope: str = ""
    methods: tuple[str, ...] = ("none",)
    registers: bool = True
    issuer_in_answer: str | None = None
    refuses: str = ""
    audience: str = ""
    expires: int = 3600
    described: bool = True
    secret: str = ""
    moves_tokens: bool = False
    needs_scope: str = ""
    said: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    refreshes: dict[str, str] = field(default_factory=dict)

    @property
    def mcp(self) -> str:
        return f"{self.base}/mcp"

    def asked(self, path: str) -> list[dict[str, str]]:
        """What was sent to an endpoint."""
        return [fields for at, fields in self.said if at == path]

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        parts = urlsplit(target)
        fields = dict(parse_qsl(parts.query or body.decode("utf-8", "replace")))
        if "authorization" in headers:
            fields["authorization"] = headers["authorization"]
        self.said.append((parts.path, fields))
        match method, parts.path:
            case "GET", "/.well-known/oauth-protected-resource/mcp" if self.described:
                about = {"resource": self.resource or self.mcp, "authorization_servers": [self.issuer or self.base]}
                return _json(200, {**about, **({"scopes_supported": self.scopes} if self.scopes else {})})
            case "GET", "/.well-known/oauth-authorization-server":
                return _json(200, self._metadata())
            case "POST", "/register" if self.registers:
                return self._register(json.loads(body))
            case "GET", "/authorize":
                return self._authorize(fields)
            case "POST", "/token" if self.moves_tokens:
                return 307, {"location": f"{self.base}/elsewhere"}, b""
            case "POST", "/token":
                return self._token(fields)
            case "POST", "/mcp":
                return self._mcp(fields.get("authorization", ""), body)
            case _:
                return _json(404, {"error": "not_found"})

    def _metadata(self) -> dict[str, Any]:
        usual = {
            "issuer": self.issuer or self.base,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": self.methods,
            **({"registration_endpoint": f"{self.base}/register"} if self.registers else {}),
        }
        return usual | self.metadata

    def _register(self, wanted: Mapping[str, Any]) -> Reply:
        self.said[-1] = ("/register", {name: json.dumps(value) for name, value in wanted.items()})
        given = {"client_id": f"client{len(self.asked('/register'))}", **wanted}
        return _json(201, {**given, **({"client_secret": self.secret} if self.secret else {})})

    def _authorize(self, fields: dict[str, str]) -> Reply:
        code = f"code{len(self.codes)}"
        self.codes[code] = fields
        answer = {"state": fields["state"], **({"error": self.refuses} if self.refuses else {"code": code})}
        if self.issuer_in_answer is not None:
            answer["iss"] = self.issuer_in_answer
        return 302, {"location": f"{fields['redirect_uri']}?{urlencode(answer)}"}, b""

    def _token(self, fields: dict[str, str]) -> Reply:
        if fields["grant_type"] == "refresh_token":
            scope = self.refreshes.pop(fields["refresh_token"], None)
            if scope is None:
                return _json(400, {"error": "invalid_grant"})
        else:
            asked = self.codes.pop(fields["code"])
            digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
            proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if proof != asked["code_challenge"] or fields["redirect_uri"] != asked["redirect_uri"]:
                return _json(400, {"error": "invalid_grant"})
            scope = asked.get("scope", "")
        if not self._knows(fields):
            return _json(401, {"error": "invalid_client"})
        number = len(self.tokens)
        token = f"token{number}" if not self.audience else _jwt(self.audience)
        self.tokens[token], self.refreshes[f"refresh{number}"] = scope, scope
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": self.expires, "scope": scope}
        return _json(200, {**answer, "refresh_token": f"refresh{number}"})

    def _knows(self, fields: Mapping[str, str]) -> bool:
        """Whether the client proved itself as this server wants it."""
        match self.methods[0]:
            case "client_secret_basic":
                pair = base64.b64decode(fields.get("authorization", "").removeprefix("Basic ")).decode()
                return unquote_plus(pair.partition(":")[2]) == self.secret
            case "client_secret_post":
                return fields.get("client_secret") == self.secret
            case _:
                return "client_secret" not in fields and "authorization" not in fields

    def _mcp(self, authorization: str, body: bytes) -> Reply:
        token = authorization.removeprefix("Bearer ")
        metadata = f'resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"' if self.described else ""
        if token not in self.tokens:
            scope = f'scope="{self.challenge_scope}"' if self.challenge_scope else ""
            said = ", ".join(filter(None, (metadata, scope)))
            return 401, {"www-authenticate": f"Bearer {said}" if said else "Bearer"}, b""
        if self.needs_scope and self.needs_scope not in self.tokens[token].split():
            said = f'Bearer error="insufficient_scope", scope="{self.needs_scope}", {metadata}'
            return 403, {"www-authenticate": said}, b""
        return _answer(json.loads(body)) if body else _json(200, {"who": token})


def _answer(message: Mapping[str, Any]) -> Reply:
    """What an MCP server of an older revision answers that has one tool."""
    tool = {"name": "whoami", "description": "Who you are.", "inputSchema": {"type": "object"}}
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "box", "version": "1"},
        },
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": "you"}]},
    }
    if "id" not in message:
        return 202, {}, b""
    found = results.get(message["method"])
    answer = {"result": found} if found else {"error": {"code": -32601, "message": "unknown"}}
    return _json(200, {"jsonrpc": "2.0", "id": message["id"], **answer})


def _json(status: int, value: object) -> Reply:
    return status, {"content-type": "application/json"}, json.dumps(value).encode()


def _jwt(audience: str) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'aud': audience})}.x"


@asynccontextmanager
async def running_site(site: Site) -> AsyncIterator[Site]:
    """The site on a port of its own, until the block ends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        status, answered, content = site.answer(method, target, headers, body)
        lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in answered.items())]
        lines += [f"content-length: {len(content)}", "connection: close", "", ""]
        writer.write("\r\n".join(lines).encode() + content)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    site.base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield site
    finally:
        server.close()
