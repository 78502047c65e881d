"""What a server refuses: strangers, folders that are not listed, paths that lead out of them, senseless bodies."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from tests.cli.test_run import started, variables
from tests.remote.serving import TOKENS, all_lines, get, served, start, write_config

pytestmark = pytest.mark.anyio

ANN = {"authorization": f"Bearer {TOKENS['ann']}"}
RUN = {"folder": "shop", "prompt": "x"}
STRANGERS = [
    ("no token", {}, 401),
    ("a wrong token", {"authorization": "Bearer token-of-ann-which-is-long-enougH"}, 401),
    ("the digest in place of the token", {"authorization": "Bearer 0f"}, 401),
    ("a name that was bent to us", ANN | {"host": "evil.test"}, 421),
    ("a page of another site", ANN | {"origin": "https://evil.test"}, 403),
    ("a form of another site", ANN | {"sec-fetch-site": "cross-site"}, 403),
]
BODIES: list[tuple[str, Any, int]] = [
    ("a folder that is not listed", {**RUN, "folder": "etc"}, 404),
    ("a folder of others", {**RUN, "folder": "docs"}, 404),
    ("a path as the name", {**RUN, "folder": "../docs"}, 404),
    ("the parent", {**RUN, "path": ".."}, 400),
    ("the parent further on", {**RUN, "path": "src/../../docs"}, 400),
    ("an absolute path", {**RUN, "path": "/etc"}, 400),
    ("the home folder", {**RUN, "path": "~"}, 400),
    ("a link that leads out", {**RUN, "path": "out"}, 400),
    ("a folder behind a link that leads out", {**RUN, "path": "out/inner"}, 400),
    ("the folder of git", {**RUN, "path": ".git/hooks"}, 400),
    ("our own folder, by a link", {**RUN, "path": "own"}, 400),
    ("a file", {**RUN, "path": "file"}, 404),
    ("nothing", {**RUN, "path": "nope"}, 404),
    ("a zero in the path", {**RUN, "path": "a\0b"}, 400),
    ("no prompt", {"folder": "shop"}, 400),
    ("an empty prompt", {**RUN, "prompt": "  "}, 400),
    ("a prompt that is a number", {**RUN, "prompt": 1}, 400),
    ("a policy of another folder", {**RUN, "policy": "other"}, 403),
    ("an unknown field", {**RUN, "cwd": "/"}, 400),
    ("a list", [RUN], 400),
    ("a text", "x", 400),
    ("a long prompt", {**RUN, "prompt": "x" * 200_000}, 400),
]
RAW: list[tuple[str, bytes, dict[str, str], int]] = [
    ("no JSON", b"{", {"content-type": "application/json"}, 400),
    ("JSON that is nested without end", b"[" * 100_000, {"content-type": "application/json"}, 400),
    ("no UTF-8", b'{"folder": "\xff"}', {"content-type": "application/json"}, 400),
    ("a form", b"folder=shop", {"content-type": "application/x-www-form-urlencoded"}, 415),
    ("text, as forms can send it", json.dumps(RUN).encode(), {"content-type": "text/plain"}, 415),
    ("more than a server should read", b" " * 1_100_000, {"content-type": "application/json"}, 413),
]
PLACES = [
    ("GET", "/", 404),
    ("GET", "/v2/runs", 404),
    ("PUT", "/v1/runs", 405),
    ("GET", "/v1/runs/nope", 404),
    ("GET", "/v1/runs/..%2f..%2fsecret", 404),
    ("GET", "/v1/runs/nope/events", 404),
    ("POST", "/v1/runs/nope/stop", 404),
    ("GET", "/v1/runs?limit=-1", 400),
    ("GET", "/v1/runs?status=mad", 400),
    ("GET", f"/v1/runs?limit={'9' * 5_000}", 400),
    ("GET", "/v1/triggers/nope", 404),
    ("POST", "/v1/triggers/nope/run", 404),
]


def error(answer: httpx2.Response) -> str:
    """The one text of every refusal."""
    value = answer.json()
    return str(value["error"]) if [*value] == ["error"] else ""


async def test_strangers_and_senseless_requests_are_refused_and_the_server_goes_on(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    shop = tmp_path / "shop"
    (tmp_path / "docs" / "inner").mkdir()
    for folder in (".git/hooks", ".handrail", "src"):
        (shop / folder).mkdir(parents=True)
    (shop / "out").symlink_to(tmp_path / "docs")
    (shop / "own").symlink_to(shop / ".handrail")
    (shop / "in").symlink_to(shop / "src")
    (shop / "file").touch()
    wrong: dict[str, tuple[Any, ...]] = {}
    async with (
        asyncio.timeout(90),
        ModelServer([Reply((Text("Fine."),)), Reply((Text("Fine too."),))]) as model,
        served(model, tmp_path, config) as server,
        server.client() as ann,
        server.client("eve") as eve,
    ):

        def check(name: str, answer: httpx2.Response, expected: int) -> None:
            form, demand = (answer.headers.get(key) for key in ("content-type", "www-authenticate"))
            shape = (answer.status_code, form, demand)
            if shape != (expected, "application/json", "Bearer" if expected == 401 else None) or not error(answer):
                wrong[name] = (*shape, answer.text)

        for name, headers, expected in STRANGERS:
            request = ann.build_request("POST", "/v1/runs", json=RUN)
            for header in ("authorization", *headers):
                request.headers.pop(header, None)
            request.headers.update(headers)
            answer = await ann.send(request)
            check(name, answer, expected)
        for name, body, expected in BODIES:
            answer = await ann.post("/v1/runs", json=body)
            check(name, answer, expected)
        for name, data, headers, expected in RAW:
            answer = await ann.post("/v1/runs", content=data, headers=headers)
            check(name, answer, expected)
        for method, path, expected in PLACES:
            answer = await ann.request(method, path)
            check(f"{method} {path}", answer, expected)
        assert (await ann.put("/v1/runs")).headers["allow"] == "GET, HEAD, POST"
        assert (await ann.get("/v1/runs")).json()["runs"] == []

        made = await start(ann, "A link inside is as good as its folder.", path="in")
        assert (await all_lines(ann, made["id"]))[-1]["result"] == "Fine."
        for method, place in (("GET", ""), ("GET", "/events"), ("POST", "/stop"), ("POST", "/resume")):
            answer = await eve.request(method, f"/v1/runs/{made['id']}{place}")
            check(f"{method} {place} of others", answer, 404)
        assert (await eve.get("/v1/runs")).json()["runs"] == []
        bad = await ann.get(f"/v1/runs/{made['id']}/events", params={"after": "-1"})
        far = await ann.get(f"/v1/runs/{made['id']}/events", params={"after": "9" * 30})
        too_far = await ann.get(f"/v1/runs/{made['id']}/events", params={"after": "9" * 5_000})
        assert (bad.status_code, far.status_code, far.text, too_far.status_code) == (400, 200, "", 400)

    assert wrong == {}


async def test_no_token_is_in_what_the_server_prints_or_keeps(tmp_path: Path) -> None:
    secret = "correct-horse-battery-staple"
    replies = [Reply((ToolUse("c1", "Bash", {"command": "env; cat /proc/$PPID/environ"}),)), Reply((Text(secret),))]
    config = write_config(tmp_path)
    async with (
        asyncio.timeout(60),
        ModelServer(replies) as model,
        served(model, tmp_path, config, SHOP_PASSWORD=secret) as server,
        server.client() as ann,
    ):
        made = await start(ann, "Look around.")
        await ann.post("/v1/runs", json=RUN, headers={"authorization": "Bearer wrong-token-of-someone"})
        lines_text = ""
        async with ann.stream("GET", f"/v1/runs/{made['id']}/events") as stream:
            async for line in stream.aiter_lines():
                lines_text += line
                if '"control_request"' in line:
                    question = json.loads(line)["request"]["question"]
                    said = {"question": question["id"], "digest": question["digest"], "choice": "allow"}
                    await ann.post(f"/v1/runs/{made['id']}/answer", json=said)
        assert (await get(ann, made["id"]))["status"] == "finished"
        await server.end()

    kept = b"".join(file.read_bytes() for file in Path(f"{tmp_path}-state").rglob("*") if file.is_file())
    everything = b"\n".join((server.printed, server.errors, kept, lines_text.encode()))
    assert [name for name, token in TOKENS.items() if token.encode() in everything] == []
    assert b"wrong-token-of-someone" not in everything
    assert secret.encode() not in everything  # what secrets the environment holds is taken out of the lines too
    modes = {oct(file.stat().st_mode & 0o077) for file in Path(f"{tmp_path}-state/serve").rglob("*")}
    assert modes == {"0o0"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(("--host", "0.0.0.0"), "needs TLS", id="every address, without TLS"),
        pytest.param(("--host", "::", "--tls-cert", "cert.pem"), "both a certificate and its key", id="half of TLS"),
        pytest.param(("--folder", "a=b"), "does not go with --config", id="flags beside the file"),
        pytest.param(("--allowedTools", "Bash"), "does not go with --config", id="rules beside the file"),
    ],
)
async def test_a_server_does_not_start_where_or_as_it_should_not(
    tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    async with asyncio.timeout(60), ModelServer() as model:
        config = write_config(tmp_path)
        process = await started(tmp_path, variables(model, tmp_path), "serve", "--config", str(config), *arguments)
        out, errors = await process.communicate(b"")

    assert (process.returncode, out) == (2, b"")
    assert problem in errors.decode()


async def test_a_change_that_comes_slowly_does_not_bring_back_a_trigger_that_was_removed(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(60),
        ModelServer() as model,
        served(model, tmp_path, write_config(tmp_path)) as server,
        server.client() as ann,
        server.client("bob") as bob,
    ):
        made = (await ann.post("/v1/triggers", json={**RUN, "name": "watch"})).json()
        place = f"/v1/triggers/{made['id']}"

        async def slow_body() -> AsyncIterator[bytes]:
            yield b'{"prompt": '
            assert (await bob.delete(place)).status_code == 200
            yield b'"y"}'

        answer = await ann.patch(place, content=slow_body(), headers={"content-type": "application/json"})
        kept = (await ann.get("/v1/triggers")).json()["triggers"]

    assert (answer.status_code, kept) == (404, [])
