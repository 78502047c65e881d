"""The authorizer of one server: brings the token, renews it, and signs in again where a person can."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace

from handrail.errors import AuthorizationNeededError, McpError, TokenRefusedError
from handrail.http.client import HttpClient
from handrail.mcp.config import Challenge, ServerConfig
from handrail.mcp.oauth.endpoints import OAuthHttp
from handrail.mcp.oauth.metadata import check_address, choose_scopes, join_scopes, parse_challenge
from handrail.mcp.oauth.sign_in import OAuthOptions, OpenBrowser, SignIn, check_audience
from handrail.mcp.oauth.tokens import Grant, ServerGrants, TokenStore, tokens_of

MAX_SIGN_INS = 3
"""How often one connection may send a person to the browser: a server could ask for more scopes for ever."""


class OAuthAuthorizer:
    """
    Proves to one server who asks.

    Without `open_browser` there is no sign-in: earlier tokens are used and renewed, and where that is not enough,
    AuthorizationNeededError says what to run.
    """

    def __init__(
        self,
        config: ServerConfig,
        store: TokenStore,
        http: HttpClient,
        options: OAuthOptions,
        open_browser: OpenBrowser | None = None,
    ) -> None:
        self._name = config.name
        self._url = config.url
        self._store = store
        self._http = OAuthHttp(http)
        self._options = options
        self._open_browser = open_browser
        self._grants: ServerGrants | None = None
        self._sign_ins = 0
        self._busy = asyncio.Lock()

    async def headers(self) -> Mapping[str, str]:
        """The token of the server, renewed if it is about to expire; nothing before the first sign-in."""
        async with self._busy:
            grant = self._read().current
            if grant is None or grant.tokens is None:
                return {}
            if not grant.tokens.is_fresh(time.time()) and grant.tokens.refresh:
                grant = await self._renew(grant) or grant
            assert grant.tokens is not None
            return {"Authorization": f"Bearer {grant.tokens.access}"}

    async def respond(self, challenge: Challenge, /) -> bool:
        """
        Whether the refused request shall be sent once more.

        401: renew the token, else sign in. 403 with `insufficient_scope`: sign in for more scopes.
        """
        async with self._busy:
            said = parse_challenge(challenge.www_authenticate)
            step_up = challenge.status == 403
            if step_up and said.get("error") != "insufficient_scope":
                return False
            grants = self._read()
            grant = grants.current
            if not step_up and grant and grant.tokens and grant.tokens.refresh and await self._renew(grant):
                return True
            await self._sign_in(grants, said, step_up=step_up)
            return True

    async def _sign_in(self, grants: ServerGrants, said: Mapping[str, str], *, step_up: bool) -> None:
        if self._open_browser is None:
            what = f"wants more rights ({said.get('scope', 'unnamed')})" if step_up else "wants to know who asks"
            raise AuthorizationNeededError(f"it {what}. Sign in with: handrail mcp login {self._name}")
        if self._sign_ins >= MAX_SIGN_INS:
            raise AuthorizationNeededError(f"it was not satisfied with {MAX_SIGN_INS} sign-ins, so no more are tried.")
        self._sign_ins += 1
        found = await self._http.discover(self._url, said)
        scope = self._options.scope or choose_scopes(said, found.resource, found.server)
        if (grant := grants.grants.get(found.server.issuer)) and grant.tokens and step_up:
            scope = join_scopes((*grant.tokens.scope.split(), *scope.split()))
        self._keep(await SignIn(self._http, found, self._options, self._open_browser).run(grants, scope))

    async def _renew(self, grant: Grant) -> Grant | None:
        """The grant with new tokens; None if the server gives none for the old ones."""
        assert grant.tokens is not None
        fields = {"grant_type": "refresh_token", "refresh_token": grant.tokens.refresh, "resource": grant.resource}
        endpoint = check_address(grant.token_endpoint, self._url)
        try:
            answer = await self._http.request_token(endpoint, grant.client, fields)
            tokens = tokens_of(answer, grant.tokens.scope, grant.tokens)
            check_audience(tokens.access, self._url, self._options.audiences)
        except TokenRefusedError:
            return self._renewed_elsewhere(grant)
        grants = self._read()
        renewed = replace(grant, tokens=tokens)
        self._keep(grants.with_grant(grants.issuer, renewed))
        return renewed

    def _renewed_elsewhere(self, grant: Grant) -> Grant | None:
        """What another process got for the same refresh token, which may be used only once."""
        self._grants = None
        now = self._read().current
        return now if now and now.tokens and now.tokens != grant.tokens else None

    def _read(self) -> ServerGrants:
        if self._grants is None:
            self._grants = self._store.read(self._url)
        return self._grants

    def _keep(self, grants: ServerGrants) -> None:
        self._grants = grants
        try:
            self._store.write(grants)
        except OSError as error:
            raise McpError(f"the sign-in cannot be kept: {error.strerror}.") from error
