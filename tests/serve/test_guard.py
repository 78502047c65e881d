"""The one HTTP server answers its own names, its own pages and known tokens, and nobody else."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import ListenError
from handrail.serve.guard import IDENTITY, Door, Receive, Refusal, Send, judge, new_token, own_names, token_digest
from handrail.serve.listen import BindAddress, address_of, bind, check_endpoint
from handrail.serve.server import serve

TOKEN = new_token()
HOSTS, ORIGINS = own_names("127.0.0.1", 8000, tls=False)
DOOR = Door(HOSTS, ORIGINS, {token_digest(TOKEN): "ann"}, public=frozenset({"/"}), cookie="handrail")
OURS = {"host": ("127.0.0.1:8000",)}
BEARER = {"authorization": (f"Bearer {TOKEN}",)}

CASES = [
    pytest.param("GET", "/x", OURS | BEARER, "ann", id="the token of ann"),
    pytest.param("GET", "/x", {"host": ("LOCALHOST:8000",)} | BEARER, "ann", id="localhost, in any case"),
    pytest.param("POST", "/x", OURS | {"cookie": (f"a=b; handrail={TOKEN}",)}, "ann", id="the cookie"),
    pytest.param("GET", "/", OURS, "", id="a public file without a token"),
    pytest.param("GET", "/x", OURS, 401, id="no token"),
    pytest.param("GET", "/x", OURS | {"authorization": ("Bearer ",)}, 401, id="an empty token"),
    pytest.param("GET", "/x", OURS | {"authorization": (f"Basic {TOKEN}",)}, 401, id="another scheme"),
    pytest.param("GET", "/x", OURS | {"cookie": (f"other={TOKEN}",)}, 401, id="a cookie of another name"),
    pytest.param("GET", "/", {}, 421, id="no host"),
    pytest.param("GET", "/", {"host": ("evil.test:8000",)} | BEARER, 421, id="a name that was bent to us"),
    pytest.param("GET", "/", {"host": ("127.0.0.1:9000",)}, 421, id="another port"),
    pytest.param("GET", "/", {"host": ("127.0.0.1",)}, 421, id="the name without its port"),
    pytest.param("GET", "/", {"host": ("127.0.0.1:8000", "evil.test")}, 421, id="two hosts"),
    pytest.param("GET", "/", {"host": ("127.0.0.1:8000.evil.test",)}, 421, id="a name that begins like ours"),
    pytest.param("POST", "/x", OURS | BEARER | {"origin": ("http://127.0.0.1:8000",)}, "ann", id="our own page"),
    pytest.param("POST", "/x", OURS | BEARER | {"origin": ("http://evil.test",)}, 403, id="a foreign page"),
    pytest.param("GET", "/x", OURS | BEARER | {"origin": ("null",)}, 403, id="a sandboxed page"),
    pytest.param("GET", "/x", OURS | BEARER | {"origin": ("http://127.0.0.1:9000",)}, 403, id="a page of another port"),
    pytest.param("POST", "/x", OURS | BEARER | {"sec-fetch-site": ("cross-site",)}, 403, id="a form of another site"),
    pytest.param("POST", "/x", OURS | BEARER | {"sec-fetch-site": ("same-site",)}, 403, id="another port's form"),
    pytest.param("GET", "/x", OURS | BEARER | {"sec-fetch-site": ("cross-site",)}, 403, id="an image of another site"),
    pytest.param(
        "GET", "/", OURS | {"sec-fetch-site": ("cross-site",), "sec-fetch-mode": ("navigate",)}, "", id="a link to us"
    ),
    pytest.param(
        "POST",
        "/",
        OURS | {"sec-fetch-site": ("cross-site",), "sec-fetch-mode": ("navigate",)},
        403,
        id="a form that navigates",
    ),
]


@pytest.mark.parametrize(("method", "path", "headers", "expected"), CASES)
def test_a_request_passes_or_is_refused(
    method: str, path: str, headers: dict[str, tuple[str, ...]], expected: str | int
) -> None:
    answer = judge(DOOR, method, path, headers)
    assert (answer.status if isinstance(answer, Refusal) else answer) == expected


texts = st.text(max_size=30) | st.sampled_from(
    ["127.0.0.1:8000", "localhost:8000", "http://localhost:8000", "same-origin", "navigate", f"Bearer {TOKEN}"]
)
names = st.sampled_from(["host", "origin", "sec-fetch-site", "sec-fetch-mode", "authorization", "cookie"])


@given(st.sampled_from(["GET", "POST", "PUT", "x"]), st.dictionaries(names, st.lists(texts, max_size=2).map(tuple)))
def test_no_headers_pass_without_our_name_our_pages_and_the_token(
    method: str, headers: Mapping[str, tuple[str, ...]]
) -> None:
    if isinstance(judge(DOOR, method, "/x", headers), Refusal):
        return

    assert len(headers["host"]) == 1
    assert headers["host"][0].lower() in HOSTS
    assert all(origin.lower() in ORIGINS for origin in headers.get("origin", ()))
    assert TOKEN in " ".join((*headers.get("authorization", ()), *headers.get("cookie", ())))


@pytest.mark.parametrize(
    ("endpoint", "token", "said"),
    [
        pytest.param(BindAddress("0.0.0.0"), True, "TLS", id="every address without TLS"),
        pytest.param(BindAddress("::"), True, "TLS", id="every address of IPv6"),
        pytest.param(BindAddress("box.example"), True, "TLS", id="a name"),
        pytest.param(
            BindAddress("0.0.0.0", 0, Path(__file__), Path(__file__)), False, "token", id="TLS without a token"
        ),
        pytest.param(BindAddress("127.0.0.1", 0, Path(__file__)), True, "key", id="a certificate without its key"),
        pytest.param(BindAddress("127.0.0.1", 0, Path("/no"), Path("/no")), True, "no such file", id="a missing file"),
    ],
)
def test_an_address_that_others_reach_needs_tls_and_a_token(endpoint: BindAddress, token: bool, said: str) -> None:
    with pytest.raises(ListenError, match=said):
        check_endpoint(endpoint, token=token)


def test_a_busy_port_is_told_with_the_flag_that_helps() -> None:
    with bind(BindAddress()) as first, pytest.raises(ListenError, match="--port"):
        bind(BindAddress(port=first.getsockname()[1]))


@pytest.mark.anyio
async def test_an_application_answers_behind_the_door_and_is_told_who_asks() -> None:
    async def app(scope: dict[str, Any], _receive: Receive, send: Send) -> None:
        body = json.dumps(scope[IDENTITY]).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    endpoint = BindAddress()
    listener = bind(endpoint)
    address = address_of(endpoint, listener)
    door = Door(address.hosts, address.origins, {token_digest(TOKEN): "ann"})
    async with asyncio.timeout(20), serve(app, door, endpoint, listener), httpx2.AsyncClient() as client:
        good = await client.get(address.url, headers={"Authorization": f"Bearer {TOKEN}"})
        bad = await client.get(address.url)
        bent = await client.get(address.url, headers={"Authorization": f"Bearer {TOKEN}", "Host": "evil.test"})

    assert (good.json(), bad.status_code, bent.status_code) == ("ann", 401, 421)
