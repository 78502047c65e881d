"""RemoteTrigger: an agent here keeps and starts prompts at a server, under the rules of both."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from handrail.config.remote_servers import remote_servers
from handrail.config.snapshot import Layer, Settings
from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from tests.cli.test_run import started, variables
from tests.remote.serving import TOKENS, Served, get, served, write_config

pytestmark = pytest.mark.anyio


def trigger(call: str, action: str, **more: Any) -> Reply:
    return Reply((ToolUse(call, "RemoteTrigger", {"action": action, **more}),))


@asynccontextmanager
async def here(
    server: Served, model: ModelServer, folder: Path, rules: Sequence[str], *more: str
) -> AsyncIterator[list[dict[str, Any]]]:
    """The lines of `handrail -p` on this side, whose settings name the server."""
    home = folder / "here" / "home" / ".handrail"
    home.mkdir(parents=True, exist_ok=True)
    entry = {"url": server.url, "tokenEnv": "SHOP_ACCESS"}
    (home / "settings.json").write_text(json.dumps({"remoteServers": {"shop": entry}}))
    env = variables(model, folder / "here") | {"ANTHROPIC_API_KEY": "k", "SHOP_ACCESS": TOKENS["ann"]}
    arguments = ("-p", "Go.", "--output-format", "stream-json", "--verbose", "--allowedTools", *rules, *more)
    process = await started(folder / "here", env, *arguments)
    out, _ = await process.communicate(b"")
    yield [json.loads(line) for line in out.splitlines()]


def results(lines: Sequence[dict[str, Any]]) -> list[tuple[str, bool]]:
    blocks = [line["message"]["content"][0] for line in lines if line["type"] == "user"]
    return [
        ("".join(part.get("text", "") for part in block["content"]), block.get("is_error", False))
        for block in blocks
        if block["type"] == "tool_result"
    ]


@pytest.mark.proves("N28")
async def test_a_trigger_is_created_changed_and_run_elsewhere(tmp_path: Path) -> None:
    there = [Reply((ToolUse("c1", "Bash", {"command": "touch made.txt"}),)), Reply((Text("I may not."),))]
    body = {"name": "watch", "folder": "shop", "prompt": "Look at the build.", "policy": "closed"}
    async with asyncio.timeout(120), ModelServer(there, strict=True) as far:
        async with served(far, tmp_path, write_config(tmp_path)) as server, server.client() as ann:
            rules = ["RemoteTrigger", f"WebFetch(domain:127.0.0.1:{server.url.rpartition(':')[2]})"]
            search = Reply((ToolUse("s", "ToolSearch", {"query": "select:RemoteTrigger"}),))
            first = [search, trigger("a", "create", body=body), trigger("b", "list"), Reply((Text("Made."),))]
            async with ModelServer(first, strict=True) as near, here(server, near, tmp_path, rules) as lines:
                made = results(lines)
            known = (await ann.get("/v1/triggers")).json()["triggers"]
            wanted = known[0]["id"]
            second = [
                search,
                trigger("a", "update", trigger_id=wanted, body={"prompt": "Look twice."}),
                trigger("b", "run", trigger_id=wanted, body={"prompt": "Now."}),
                trigger("c", "get", trigger_id=wanted),
                Reply((Text("Started."),)),
            ]
            async with ModelServer(second, strict=True) as near, here(server, near, tmp_path, rules) as lines:
                run_results = results(lines)
            runs = (await ann.get("/v1/runs")).json()["runs"]
            async with ann.stream("GET", f"/v1/runs/{runs[0]['id']}/events") as stream:
                async for _ in stream.aiter_lines():
                    pass
            run = await get(ann, runs[0]["id"])
            third = [search, trigger("a", "get", trigger_id=run["id"]), Reply((Text("Done."),))]
            async with ModelServer(third, strict=True) as near, here(server, near, tmp_path, rules) as lines:
                told = results(lines)
        state = Path(f"{tmp_path / 'here'}-state")
        kept = b"".join(file.read_bytes() for file in state.rglob("*") if file.is_file())

    assert [wrong for _, wrong in (*made, *run_results, *told)] == [False] * 9
    assert (known[0]["client"], known[0]["prompt"]) == ("ann", "Look at the build.")
    assert "nothing in it is a permission" in made[1][0]
    assert 'folders and policies: {"shop": ["ask", "closed"]}' in made[2][0]
    assert f"RemoteTrigger get with {run['id']} says how the run stands" in run_results[2][0]
    assert run["origin"] == {"client": "ann", "address": "127.0.0.1", "trigger": wanted}
    assert "Look twice.\\n\\nNow." in json.dumps(far.requests[0].body["messages"])
    assert not (tmp_path / "shop" / "made.txt").exists()  # the policy there did not allow it
    assert "is finished" in told[1][0]
    assert "I may not." in told[1][0]
    assert TOKENS["ann"].encode() not in kept


async def test_what_starts_something_elsewhere_needs_a_rule_for_the_tool_and_one_for_an_address_inside(
    tmp_path: Path,
) -> None:
    search = Reply((ToolUse("s", "ToolSearch", {"query": "select:RemoteTrigger"}),))
    body = {"name": "watch", "folder": "shop", "prompt": "Look."}
    calls = [search, trigger("a", "list"), trigger("b", "create", body=body), Reply((Text("End."),))]
    async with (
        asyncio.timeout(120),
        ModelServer() as far,
        served(far, tmp_path, write_config(tmp_path)) as server,
        server.client() as ann,
    ):
        address = f"WebFetch(domain:127.0.0.1:{server.url.rpartition(':')[2]})"
        found = {}
        for name, rules in {
            "nothing": ["Read"],
            "the tool": ["RemoteTrigger"],
            "the address": [address],
            "both": ["RemoteTrigger", address],
        }.items():
            async with ModelServer(calls, strict=True) as near, here(server, near, tmp_path, rules) as lines:
                found[name] = [not wrong for _, wrong in results(lines)[1:]]
        denied = ("--disallowedTools", "WebFetch(domain:127.0.0.1)")
        rules = ["RemoteTrigger", address]
        async with ModelServer(calls, strict=True) as near, here(server, near, tmp_path, rules, *denied) as lines:
            found["denied"] = [not wrong for _, wrong in results(lines)[1:]]
        made = (await ann.get("/v1/triggers")).json()["triggers"]

    assert found == {
        "nothing": [False, False],
        "the tool": [False, False],
        "the address": [True, False],
        "both": [True, True],
        "denied": [False, False],
    }
    assert len(made) == 1


SERVER = {"url": "https://runs.example.org", "tokenEnv": "T"}
TABLE = [
    pytest.param("user", SERVER, "", id="of the person"),
    pytest.param("flag", SERVER, "", id="of a flag"),
    pytest.param("policy", SERVER, "", id="of a policy"),
    pytest.param("user", {**SERVER, "url": "http://localhost:1"}, "", id="this machine without TLS"),
    pytest.param("project", SERVER, None, id="of a project"),
    pytest.param("local", SERVER, None, id="of a project, local"),
    pytest.param("user", {**SERVER, "url": "http://runs.example.org"}, "unprotected", id="another one without TLS"),
    pytest.param("user", {**SERVER, "url": "ftp://x"}, "not an http", id="another scheme"),
    pytest.param("user", {**SERVER, "tokenEnv": "NOT_SET"}, "holds no token", id="a variable that is not set"),
    pytest.param("user", {"url": SERVER["url"]}, "tokenEnv names no variable", id="no token"),
    pytest.param("user", {**SERVER, "token": "secret"}, "not understood", id="the token in the file"),
    pytest.param("user", "https://runs.example.org", "not understood", id="a text"),
]


@pytest.mark.parametrize(("source", "entry", "problem"), TABLE)
async def test_only_servers_that_the_person_named_count(source: Any, entry: Any, problem: str | None) -> None:
    document: Any = SimpleNamespace(file=SimpleNamespace(source=source))
    layer = Layer(document, {"remoteServers": {"shop": entry}})
    found = remote_servers(Settings(layers=(layer,)), {"T": "token"})

    assert list(found.servers) == (["shop"] if problem == "" else [])
    assert len(found.problems) == (1 if problem else 0)
    assert (problem or "") in "".join(found.problems)
