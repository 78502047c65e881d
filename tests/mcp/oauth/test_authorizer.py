"""Signing in at MCP servers: real servers on loopback, a browser that agrees to everything."""

import json
import socket
import stat
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import AuthorizationNeededError, McpError
from handrail.http.client import HttpClient
from handrail.http.transport import HttpRequest
from handrail.mcp.config import Challenge, ServerConfig
from handrail.mcp.oauth.authorizer import OAuthAuthorizer
from handrail.mcp.oauth.metadata import canonical_resource, check_address, covers_server, parse_challenge
from handrail.mcp.oauth.reach import ReachGuard
from handrail.mcp.oauth.sign_in import OAuthOptions, check_audience
from handrail.mcp.oauth.tokens import TokenStore
from tests.mcp.oauth.authorization_server import Site, running_site

pytestmark = pytest.mark.anyio
NO_OPTIONS = OAuthOptions()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running_site(Site()) as running:
        yield running


@dataclass
class Person:
    """Somebody who calls the MCP server of a site and agrees to every sign-in."""

    site: Site
    state: Path
    options: OAuthOptions = NO_OPTIONS
    can_sign_in: bool = True
    is_attacked: bool = False
    """Another page guesses the address that the browser returns to, and is there first."""

    async def call(self, times: int = 1) -> list[int]:
        """The statuses of requests, each repeated as the authorizer wants it."""
        guard = ReachGuard(self.site.mcp)
        async with HttpClient({}, keep_alive=False) as http, HttpClient({}, resolve=guard.look_up) as asking:

            async def browse(url: str) -> None:
                answer = await http.fetch(HttpRequest(url, (), b"", "GET"), max_bytes=10_000, timeout=5)
                assert answer.status == 302
                place = answer.headers["location"].partition("?")[0]
                for forged in ("?state=guess&code=evil", "?code=evil", "") if self.is_attacked else ():
                    seen = await http.fetch(HttpRequest(place + forged, (), b"", "GET"), max_bytes=9_999, timeout=5)
                    assert seen.status == 400
                back = HttpRequest(answer.headers["location"], (), b"", "GET")
                await http.fetch(back, max_bytes=10_000, timeout=5)

            config = ServerConfig("box", "http", url=self.site.mcp)
            opens = browse if self.can_sign_in else None
            authorizer = OAuthAuthorizer(config, TokenStore(self.state), asking, self.options, opens)
            statuses = []
            for _ in range(times):
                status = 0
                for _attempt in range(5):
                    headers = tuple((name.lower(), value) for name, value in (await authorizer.headers()).items())
                    answer = await http.fetch(HttpRequest(self.site.mcp, headers, b""), max_bytes=9_999, timeout=5)
                    said, status = answer.headers.get("www-authenticate", ""), answer.status
                    challenge = Challenge("box", self.site.mcp, status, said)
                    if status == 200 or not await authorizer.respond(challenge):
                        break
                statuses.append(status)
            return statuses


@pytest.fixture
def person(site: Site, tmp_path: Path) -> Person:
    return Person(site, tmp_path / "state")


async def test_a_sign_in_registers_us_proves_the_code_is_ours_and_asks_for_a_token_for_this_server(
    person: Person, site: Site
) -> None:
    site.scopes = ("read", "write")

    with anyio.fail_after(20):
        assert await person.call() == [200]

    (registered,), (asked,), (token,) = (site.asked(path) for path in ("/register", "/authorize", "/token"))
    assert json.loads(registered["redirect_uris"]) == [asked["redirect_uri"]]
    assert json.loads(registered["grant_types"]) == ["authorization_code", "refresh_token"]
    assert asked["redirect_uri"].startswith("http://127.0.0.1:")
    assert (asked["code_challenge_method"], asked["scope"]) == ("S256", "read write")
    assert asked["resource"] == token["resource"] == site.mcp
    assert len(token["code_verifier"]) >= 43


async def test_tokens_are_kept_for_the_owner_only_and_used_by_the_next_process(person: Person, site: Site) -> None:
    with anyio.fail_after(20):
        await person.call()
        assert await replace(person, can_sign_in=False).call() == [200]

    (file,) = (person.state / "mcp-tokens").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert list(json.loads(file.read_text())["grants"]) == [site.base]
    assert len(site.asked("/authorize")) == 1
    file.chmod(0o644)
    with pytest.raises(AuthorizationNeededError, match="handrail mcp login box"):
        await replace(person, can_sign_in=False).call()


async def test_without_a_browser_the_error_says_what_to_run(person: Person) -> None:
    with anyio.fail_after(20), pytest.raises(AuthorizationNeededError, match="Sign in with: handrail mcp login box"):
        await replace(person, can_sign_in=False).call()


async def test_an_expired_token_is_renewed_and_a_revoked_one_leads_to_a_sign_in(person: Person, site: Site) -> None:
    site.expires = 1
    with anyio.fail_after(20):
        await person.call()
        site.expires = 3600
        assert await replace(person, can_sign_in=False).call() == [200]
        assert {each["grant_type"] for each in site.asked("/token")[1:]} == {"refresh_token"}

        site.tokens.clear()
        site.refreshes.clear()
        assert await person.call() == [200]

    assert len(site.asked("/authorize")) == 2
    assert len(site.asked("/register")) == 1, "a registration with the same address is used again"


async def test_a_request_that_needs_more_rights_signs_in_for_the_old_and_the_new_scopes(
    person: Person, site: Site
) -> None:
    site.challenge_scope = "read"
    with anyio.fail_after(20):
        await person.call()
        site.needs_scope = "write"
        assert await person.call() == [200]
        site.needs_scope = "admin"
        with pytest.raises(AuthorizationNeededError, match=r"more rights \(admin\)"):
            await replace(person, can_sign_in=False).call()

    assert [each["scope"] for each in site.asked("/authorize")] == ["read", "read write"]


async def test_a_server_that_is_never_satisfied_does_not_open_the_browser_for_ever(person: Person, site: Site) -> None:
    site.needs_scope = "of your dreams"  # two words: no token ever holds it

    with anyio.fail_after(20), pytest.raises(AuthorizationNeededError, match="not satisfied with 3 sign-ins"):
        await person.call()

    assert len(site.asked("/authorize")) == 3


@pytest.mark.parametrize("method", ["none", "client_secret_basic", "client_secret_post"])
async def test_the_client_proves_itself_as_the_server_wants_it(person: Person, site: Site, method: str) -> None:
    site.methods = (method,)
    site.secret = "" if method == "none" else "s:cret&"

    with anyio.fail_after(20):
        assert await person.call() == [200]


async def test_a_client_id_of_ones_own_or_a_metadata_document_needs_no_registration(person: Person, site: Site) -> None:
    site.registers = False
    with anyio.fail_after(20):
        with pytest.raises(McpError, match=r'"clientId"'):
            await person.call()
        site.methods, site.secret = ("client_secret_basic",), "shh"
        own = OAuthOptions(client_id="mine", client_secret="shh")
        assert await replace(person, options=own).call() == [200]

        site.tokens.clear()
        site.refreshes.clear()
        site.methods, site.metadata = ("none",), {"client_id_metadata_document_supported": True}
        document = OAuthOptions(metadata_url="https://app.test/client.json")
        assert await replace(person, options=document).call() == [200]

    assert [each["client_id"] for each in site.asked("/authorize")] == ["mine", "https://app.test/client.json"]


async def test_what_one_issuer_gave_is_not_shown_to_the_next_one(person: Person, site: Site) -> None:
    async with running_site(Site()) as second:
        with anyio.fail_after(20):
            await person.call()
            old = set(site.tokens)
            site.issuer = second.base
            site.tokens = second.tokens
            site.refreshes.clear()
            assert await person.call() == [200]

    said = json.dumps(second.said)
    assert "client1" in json.dumps(second.asked("/authorize"))
    assert len(second.asked("/register")) == 1
    assert not any(token in said for token in old)


async def test_a_server_of_an_older_revision_is_its_own_authorization_server(person: Person, site: Site) -> None:
    site.described = False

    with anyio.fail_after(20):
        assert await person.call() == [200]


def _set(**values: object) -> Callable[[Site], None]:
    def change(site: Site) -> None:
        for name, value in values.items():
            text = value.replace("BASE", site.base) if isinstance(value, str) else value
            setattr(site, name, text)

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(_set(resource="https://other.test/mcp"), "is for 'https://other.test/mcp'", id="another resource"),
        pytest.param(_set(resource="BASE/mcpx"), "not for", id="a neighbour of the resource"),
        pytest.param(_set(issuer="http://as.test"), "not encrypted", id="an issuer without encryption"),
        pytest.param(_set(metadata={"issuer": "https://x.test"}), "another issuer", id="metadata of another issuer"),
        pytest.param(
            _set(metadata={"code_challenge_methods_supported": ["plain"]}), "PKCE with S256", id="a server without PKCE"
        ),
        pytest.param(
            _set(metadata={"token_endpoint": "file:///etc/passwd"}), "not a web address", id="an endpoint in a file"
        ),
        pytest.param(_set(issuer_in_answer="https://evil.test"), "not from 'http:", id="an answer of another issuer"),
        pytest.param(_set(issuer_in_answer="BASE/"), "not from 'http://127", id="an issuer that is spelt otherwise"),
        pytest.param(
            _set(metadata={"authorization_response_iss_parameter_supported": True}),
            "does not say that it is from",
            id="an answer without the promised issuer",
        ),
        pytest.param(_set(refuses="access_denied"), "refused: access_denied", id="a person who says no"),
        pytest.param(
            _set(audience="https://bank.test/api"), "token for 'https://bank.test/api'", id="another audience"
        ),
        pytest.param(_set(moves_tokens=True), "gave no token: status 307", id="tokens are to be had elsewhere"),
        pytest.param(
            _set(metadata={"token_endpoint": "https://169.254.169.254/token"}),
            "points into this network",
            id="an endpoint that hands out credentials of the machine",
        ),
    ],
)
async def test_a_sign_in_that_cannot_be_trusted_fails_and_leaves_no_token(
    person: Person, site: Site, change: Callable[[Site], None], problem: str
) -> None:
    change(site)

    with anyio.fail_after(20), pytest.raises(McpError, match=problem):
        await person.call()

    assert not (person.state / "mcp-tokens").exists()
    assert not site.asked("/elsewhere")


async def test_a_token_that_names_this_server_as_its_audience_is_used(person: Person, site: Site) -> None:
    site.audience = site.mcp

    with anyio.fail_after(20):
        assert await person.call() == [200]


async def test_a_sign_in_is_not_disturbed_by_answers_with_another_state(person: Person) -> None:
    with anyio.fail_after(20):
        assert await replace(person, is_attacked=True).call() == [200]


@pytest.mark.parametrize(
    ("url", "server", "fine"),
    [
        ("https://as.test/x", "https://mcp.test", True),
        ("http://127.0.0.1:1/x", "http://localhost:2/mcp", True),
        ("http://127.0.0.1:1/x", "https://mcp.test", False),
        ("http://localhost/x", "https://mcp.test", False),
        ("http://[::1]/x", "https://mcp.test", False),
        ("http://as.test/x", "https://mcp.test", False),
        ("https://user:word@as.test/x", "https://mcp.test", False),
        ("https://10.0.0.5/x", "https://mcp.example.com", False),
        ("https://wiki/x", "https://mcp.example.com", False),
        ("https://[fd00::1]/x", "https://mcp.example.com", False),
        ("https://0x0a000005/x", "https://mcp.example.com", False),
        ("https://169.254.169.254/x", "https://10.0.0.5", False),
        ("https://10.0.0.5/x", "https://10.0.0.6", True),
        ("https://as.example.com/x", "https://10.0.0.6", True),
        ("javascript:alert(1)", "https://mcp.test", False),
        ("file:///etc/passwd", "https://mcp.test", False),
        ("", "https://mcp.test", False),
    ],
)
def test_only_encrypted_addresses_and_those_of_a_local_server_on_this_machine_are_asked(
    url: str, server: str, fine: bool
) -> None:
    if fine:
        assert check_address(url, server) == url
    else:
        with pytest.raises(McpError):
            check_address(url, server)


@pytest.mark.parametrize(
    ("server", "host", "fine"),
    [
        ("https://mcp.example.com/mcp", "as.example.com", True),
        ("https://mcp.example.com/mcp", "wiki.example.com", False),
        ("https://wiki.example.com/mcp", "wiki.example.com", True),
        ("https://wiki.example.com/mcp", "host.example.com", False),
        ("https://both.example.com/mcp", "wiki.example.com", False),
    ],
    ids=["on the internet", "a name that leads inside", "from inside", "from inside to credentials", "half inside"],
)
async def test_a_name_that_leads_further_inside_than_the_server_is_not_connected_to(
    server: str, host: str, fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"mcp": "93.184.216.34", "as": "93.184.216.35", "wiki": "10.0.0.5", "host": "169.254.169.254"}
    known["both"] = "10.0.0.6 93.184.216.36"

    def resolve(name: str, port: int, *_rest: object, **_options: object) -> list[tuple[object, ...]]:
        addresses = known[name.partition(".")[0]].split()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    guard = ReachGuard(server)
    if fine:
        assert await guard.look_up(host, 443) == (known[host.partition(".")[0]],)
    else:
        with pytest.raises(McpError, match="points into this network"):
            await guard.look_up(host, 443)


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (
            'Bearer resource_metadata="https://a.test/x", scope="a b"',
            {"resource_metadata": "https://a.test/x", "scope": "a b"},
        ),
        ('Basic realm="x", Bearer error=insufficient_scope', {"error": "insufficient_scope"}),
        ('bearer Scope="say \\"hi\\""', {"scope": 'say "hi"'}),
        ("Basic realm=x", {}),
        ("", {}),
    ],
)
def test_challenges_are_read(header: str, found: dict[str, str]) -> None:
    assert parse_challenge(header) == found


@given(st.text(max_size=200))
def test_any_header_is_a_challenge_or_none(header: str) -> None:
    assert isinstance(parse_challenge(header), dict)


@given(
    st.sampled_from(["https://a.test", "https://a.test/mcp", "HTTPS://A.test:443/mcp/"]), st.text("ab/.", max_size=9)
)
def test_a_resource_covers_only_servers_below_it(resource: str, rest: str) -> None:
    assert covers_server(resource, canonical_resource(resource) + "/" + rest)
    assert not covers_server(resource, "https://b.test/mcp")
    assert not covers_server("https://a.test/mcp", f"https://a.test/mcpx{rest}")


@pytest.mark.parametrize("token", ["opaque", "a.b.c", "..", "e30.e30.x", "e30.W10.x"])
def test_tokens_that_say_nothing_are_taken(token: str) -> None:
    check_audience(token, "https://a.test/mcp")
