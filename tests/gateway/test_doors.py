"""Who comes in over HTTP, and what one client sees of another."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import tool
from handrail.config.flags import SettingsFlags
from handrail.errors import JsonRpcError, ListenError
from handrail.gateway import ClientQuestion, ClientRules, McpServer, serve_http
from handrail.gateway.http import McpEndpoint
from handrail.gateway.protocol import ClientRequest
from handrail.gateway.service import McpService
from handrail.serve.guard import Door, Guard, token_digest
from handrail.serve.listen import BindAddress
from handrail.session.spec import ToolOptions
from tests.gateway.clients import TOKENS, headers_for, modern, sdk_client, spec_in, text_of, url_of

RAN: list[str] = []


@tool
async def touch(name: str) -> str:
    """Changes something."""
    RAN.append(name)
    return f"touched {name}"


def server_in(folder: Path, **clients: ClientRules) -> McpServer:
    return McpServer.from_spec(spec_in(folder, tools=ToolOptions((touch,), ())), clients=clients)


CALL = modern("tools/call", {"name": "touch", "arguments": {"name": "x"}})
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
PLAIN = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@asynccontextmanager
async def bare(folder: Path, **clients: ClientRules) -> AsyncIterator[tuple[httpx2.AsyncClient, str]]:
    """A client that sends what it is told to, and the address of a server that knows Ann and Ben."""
    with anyio.fail_after(60):
        async with (
            url_of(server_in(folder, **clients), TOKENS) as url,
            httpx2.AsyncClient(trust_env=False, timeout=30) as http,
        ):
            yield http, url


@pytest.mark.anyio
async def test_only_requests_with_our_host_no_foreign_origin_and_a_token_are_answered(tmp_path: Path) -> None:
    RAN.clear()
    async with bare(tmp_path, ann=ClientRules(allow=("touch",))) as (http, url):
        good = headers_for(CALL) | {"authorization": f"Bearer {TOKENS['ann']}"}
        port = url.split(":")[2].split("/")[0]
        cases: dict[str, tuple[dict[str, str], int]] = {
            "without a token": ({"authorization": ""}, 401),
            "with a wrong token": ({"authorization": "Bearer wrong"}, 401),
            "with the token as a password": ({"authorization": f"Basic {TOKENS['ann']}"}, 401),
            "for another host": ({"host": "evil.example"}, 421),
            "for another port": ({"host": "127.0.0.1:1"}, 421),
            "from a page elsewhere": ({"origin": "https://evil.example"}, 403),
            "from a page of nowhere": ({"origin": "null"}, 403),
            "from another site": ({"sec-fetch-site": "cross-site"}, 403),
            "as a form": ({"content-type": "text/plain"}, 415),
            "from our own page": ({"origin": f"http://localhost:{port}"}, 200),
            "with everything right": ({}, 200),
        }
        answers = {
            name: await http.post(url, content=json.dumps(CALL), headers=good | change)
            for name, (change, _) in cases.items()
        }
        found = {name: answer.status_code for name, answer in answers.items()}
        refusals = [answer.json() for answer in answers.values() if answer.status_code != 200]
        elsewhere = (await http.post(url.replace("/mcp", "/other"), json=CALL, headers=good)).status_code
    assert found == {name: status for name, (_, status) in cases.items()}
    assert elsewhere == 404
    assert [{*each} for each in refusals] == [{"jsonrpc", "id", "error"}] * len(refusals)
    assert all(each["error"]["message"] for each in refusals)
    assert RAN == ["x", "x"]


OURS = "http://127.0.0.1:80"
HOSTS = st.sampled_from(["127.0.0.1:80", "localhost:80", "evil.example", "127.0.0.1", "127.0.0.1:80.evil.example", ""])
ORIGINS = st.sampled_from([None, OURS, "http://evil.example", "null", f"{OURS}.evil.example"])
WORDS = ("", "Bearer ", "Bearer right", "bearer right", "Bearer wrong", "right", "Bearer right x")


@given(HOSTS, ORIGINS, st.sampled_from([None, *WORDS]), st.booleans())
def test_no_request_reaches_the_service_unless_host_origin_and_token_are_right(
    host: str, origin: str | None, authorization: str | None, doubled: bool
) -> None:
    reached: list[str] = []

    class Recording(McpEndpoint):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            reached.append(scope["handrail.identity"])

    hosts, origins = frozenset({"127.0.0.1:80", "localhost:80"}), frozenset({OURS})
    app = Guard(Recording(None), Door(hosts, origins, {token_digest("right"): "ann"}))  # type: ignore[arg-type]
    headers = [("host", host)] + [("host", "127.0.0.1:80")] * doubled
    headers += [("origin", origin)] if origin is not None else []
    headers += [("authorization", authorization)] if authorization is not None else []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(k.encode(), v.encode()) for k, v in headers],
    }

    async def nothing(*_args: object) -> Any:
        return {"type": "http.disconnect"}

    asyncio.run(app(scope, nothing, nothing))

    right = host in hosts and not doubled and origin in (None, OURS)
    known = authorization is not None and authorization.lower().split(" ", 1) == ["bearer", "right"]
    assert reached == (["ann"] if right and known else [])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("endpoint", "tokens", "says"),
    [
        pytest.param(BindAddress("0.0.0.0"), {"d": ""}, "TLS", id="beyond loopback without TLS"),
        pytest.param(BindAddress("example.org"), {"d": ""}, "TLS", id="a name that is not loopback"),
    ],
)
async def test_others_are_served_only_with_tls(
    endpoint: BindAddress, tokens: dict[str, str], says: str, tmp_path: Path
) -> None:
    with pytest.raises(ListenError, match=says):
        async with serve_http(server_in(tmp_path), endpoint, tokens):
            pass


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_each_client_has_its_own_rules(era: str, tmp_path: Path) -> None:
    ann, ben = ClientRules(allow=("touch",)), ClientRules(deny=("touch",))
    with anyio.fail_after(60):
        async with url_of(server_in(tmp_path, ann=ann, ben=ben), TOKENS) as url:
            async with sdk_client(url, era, TOKENS["ann"]) as client:
                allowed = await client.call_tool("touch", {"name": "by ann"})
            async with sdk_client(url, era, TOKENS["ben"]) as client:
                listed = (await client.list_tools()).tools
    assert text_of(allowed) == "touched by ann"
    assert listed == []


@pytest.mark.anyio
async def test_a_session_and_a_paused_call_belong_to_the_client_that_began_them(tmp_path: Path) -> None:
    RAN.clear()
    ann, ben = ({"authorization": f"Bearer {TOKENS[name]}"} for name in ("ann", "ben"))
    asking = modern("tools/call", {"name": "touch", "arguments": {"name": "x"}}, elicitation={})
    async with bare(tmp_path) as (http, url):
        session = (await http.post(url, json=HELLO, headers=PLAIN | ann)).headers["mcp-session-id"]
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        own, foreign = [
            await http.post(url, json=listing, headers=PLAIN | who | {"mcp-session-id": session}) for who in (ann, ben)
        ]
        paused = (await http.post(url, json=asking, headers=headers_for(asking) | ann)).json()["result"]
        (key,) = paused["inputRequests"]
        answers = {key: {"action": "accept", "content": {"decision": "allow"}}}

        async def repeat(who: dict[str, str], arguments: dict[str, str], state: str) -> dict[str, Any]:
            params = {"name": "touch", "arguments": arguments, "inputResponses": answers, "requestState": state}
            message = modern("tools/call", params, elicitation={})
            found: dict[str, Any] = (await http.post(url, json=message, headers=headers_for(message) | who)).json()
            return found

        state = paused["requestState"]
        by_ben = await repeat(ben, {"name": "x"}, state)
        for_another = await repeat(ann, {"name": "y"}, state)
        guessed = await repeat(ann, {"name": "x"}, state[:-1])
        assert RAN == []
        right = await repeat(ann, {"name": "x"}, state)
        again = await repeat(ann, {"name": "x"}, state)
    assert (own.status_code, foreign.status_code) == (200, 404)
    assert [each["error"]["code"] for each in (by_ben, for_another, guessed, again)] == [-32602] * 4
    assert right["result"]["content"][0]["text"] == "touched x"
    assert RAN == ["x"]


@pytest.mark.anyio
async def test_an_answer_that_comes_before_the_question_allows_nothing(tmp_path: Path) -> None:
    RAN.clear()
    allowed = {"action": "accept", "content": {"decision": "allow"}}
    answers = dict.fromkeys(("permission", "permission_", "decision", "question_1"), allowed)
    params = {"name": "touch", "arguments": {"name": "x"}, "inputResponses": answers}
    message = modern("tools/call", params, elicitation={})
    async with bare(tmp_path) as (http, url):
        headers = headers_for(message) | {"authorization": f"Bearer {TOKENS['ann']}"}
        result = (await http.post(url, json=message, headers=headers)).json()["result"]
    assert result["resultType"] == "input_required"
    assert RAN == []


TARGETS = ("alpha", "amber", "beta")
RULES = st.lists(
    st.sampled_from(["change", "change(alpha)", "change(a*)", "change(*r)", "change(beta)"]), max_size=2, unique=True
)


def covers(rule: str, target: str) -> bool:
    """What a rule means, said in another way than the product does."""
    return rule == "change" or fnmatchcase(target, rule.removeprefix("change(").removesuffix(")"))


@given(RULES, RULES, RULES, RULES, RULES, st.sampled_from(["", "acceptEdits", "dontAsk"]))
def test_no_call_passes_that_a_rule_denies_and_each_passes_that_rules_only_allow(
    allow: list[str], ask: list[str], deny: list[str], own_allow: list[str], own_deny: list[str], mode: str
) -> None:
    """Whatever else is allowed, and although the client says yes to every question."""
    ran: list[str] = []

    @tool(subject="target")
    async def change(target: str) -> str:
        """Changes something."""
        ran.append(target)
        return "done"

    async def call_all() -> None:
        flags = SettingsFlags(
            sources=(), managed_policy=False, allowed=tuple(allow), ask=tuple(ask), disallowed=tuple(deny)
        )
        spec = spec_in(Path("/"), tools=ToolOptions((change,), ()), flags=flags)
        rules = ClientRules(tuple(own_allow), (), tuple(own_deny), mode)
        service = McpService(McpServer.from_spec(spec, clients={"ann": rules}))
        state, _ = await service.greet("ann", ClientRequest("initialize", {}, 1))
        try:
            for target in TARGETS:
                call = ClientRequest("tools/call", {"name": "change", "arguments": {"target": target}}, 1)
                with suppress(JsonRpcError):  # a tool that is denied as a whole is not there
                    await service.answer(state, call, Agreeing())
        finally:
            await service.aclose()

    asyncio.run(call_all())

    denied = {each for each in TARGETS for rule in (*deny, *own_deny) if covers(rule, each)}
    allowed = {each for each in TARGETS for rule in (*allow, *own_allow) if covers(rule, each)}
    asked = {each for each in TARGETS for rule in ask if covers(rule, each)}
    assert denied.isdisjoint(ran)
    assert (allowed - denied - asked).issubset(ran)


class Agreeing:
    """A client that says yes to every question."""

    capabilities: Mapping[str, Any] = {"elicitation": {}}

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """It does not listen."""

    async def ask(self, questions: Mapping[str, ClientQuestion]) -> Mapping[str, Mapping[str, Any]]:
        return {key: {"action": "accept", "content": {"decision": "allow"}} for key in questions}
