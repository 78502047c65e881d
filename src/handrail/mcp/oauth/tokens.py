"""
Tokens and client ids on disk: one file per server, inside by issuer, readable for the owner only.

What one authorization server issued is never sent to another, nor to another MCP server.
"""

import hashlib
import json
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from handrail.errors import McpError
from handrail.files.private_folder import make_private_folder
from handrail.mcp.oauth.metadata import canonical_resource
from handrail.records import record

VERSION = 1
EARLY = 30.0
"""Seconds before its end at which a token counts as expired."""


@record
class OAuthClient:
    """Who we are at one authorization server. `redirect` is the address that was registered, if one was."""

    id: str
    secret: str = ""
    method: str = "none"
    redirect: str = ""


@record
class TokenSet:
    """What a person's sign-in gave us. `expires` is a time of the clock; 0 = not known."""

    access: str
    refresh: str = ""
    expires: float = 0.0
    scope: str = ""

    def is_fresh(self, now: float) -> bool:
        """Whether it can be used for some time yet."""
        return not self.expires or now < self.expires - EARLY


@record
class Grant:
    """What we hold of one issuer for one server."""

    client: OAuthClient
    tokens: TokenSet | None = None
    token_endpoint: str = ""
    resource: str = ""
    """The audience that tokens were asked for."""


@record
class ServerGrants:
    """All grants for one server; `issuer` is the one in use."""

    url: str
    issuer: str = ""
    grants: Mapping[str, Grant] = field(default_factory=dict)

    @property
    def current(self) -> Grant | None:
        """The grant of the issuer in use."""
        return self.grants.get(self.issuer)

    def with_grant(self, issuer: str, grant: Grant) -> "ServerGrants":
        """The same with this grant in use."""
        return ServerGrants(self.url, issuer, {**self.grants, issuer: grant})


class TokenStore:
    """The grants of one user, below the state folder."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "mcp-tokens"

    def read(self, url: str) -> ServerGrants:
        """What is kept for a server; McpError if a newer handrail wrote it."""
        file = self._file(url)
        try:
            with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as opened:
                status = os.fstat(opened.fileno())
                if status.st_uid != os.geteuid() or status.st_mode & 0o077:
                    return ServerGrants(url)  # others could have written or read it
                content = json.loads(opened.read())
            if content["version"] > VERSION:
                raise McpError(f"{file} was written by a newer handrail. Use that one, or run: handrail mcp logout.")
            grants = {issuer: _grant(each) for issuer, each in content["grants"].items()}
            if content["url"] == canonical_resource(url):
                return ServerGrants(url, content["issuer"], grants)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        return ServerGrants(url)

    def write(self, grants: ServerGrants) -> None:
        """Keep the grants of a server."""
        make_private_folder(self._folder)
        content = {
            "version": VERSION,
            "url": canonical_resource(grants.url),
            "issuer": grants.issuer,
            "grants": {issuer: _plain(each) for issuer, each in grants.grants.items()},
        }
        file = self._file(grants.url)
        new = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
        try:
            opened = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(opened, "w", encoding="utf-8") as writing:
                writing.write(json.dumps(content, indent=1) + "\n")
            new.replace(file)
        finally:
            with suppress(OSError):
                new.unlink()

    def forget(self, url: str) -> bool:
        """Remove what is kept for a server; whether there was something."""
        try:
            self._file(url).unlink()
        except FileNotFoundError:
            return False
        return True

    def _file(self, url: str) -> Path:
        digest = hashlib.sha256(canonical_resource(url).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self._folder / f"{digest}.json"


def tokens_of(answer: Mapping[str, Any], scope: str, before: TokenSet | None = None) -> TokenSet:
    """The tokens in an answer of a token endpoint; McpError if there are none that we can use."""
    match answer:
        case {"access_token": str(access), "token_type": str(kind)} if kind.lower() == "bearer" and access:
            pass
        case _:
            raise McpError("the authorization server gave no bearer token.")
    seconds, refresh, granted = answer.get("expires_in"), answer.get("refresh_token"), answer.get("scope")
    lasts = float(seconds) if isinstance(seconds, (int, float)) and 0 < seconds < 1e10 else 0.0
    return TokenSet(
        access,
        refresh if isinstance(refresh, str) else before.refresh if before else "",
        time.time() + lasts if lasts else 0.0,
        granted if isinstance(granted, str) else scope,
    )


def _plain(grant: Grant) -> dict[str, Any]:
    client, tokens = grant.client, grant.tokens
    return {
        "client": {"id": client.id, "secret": client.secret, "method": client.method, "redirect": client.redirect},
        "tokens": None
        if tokens is None
        else {"access": tokens.access, "refresh": tokens.refresh, "expires": tokens.expires, "scope": tokens.scope},
        "token_endpoint": grant.token_endpoint,
        "resource": grant.resource,
    }


def _grant(value: Mapping[str, Any]) -> Grant:
    tokens = value["tokens"]
    return Grant(
        OAuthClient(**value["client"]),
        TokenSet(**tokens) if tokens else None,
        value["token_endpoint"],
        value["resource"],
    )
