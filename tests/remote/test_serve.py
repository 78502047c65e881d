"""Runs over HTTP: started in listed folders under listed policies, streamed, asked about, stopped and resumed."""

import asyncio
import json
import signal
import socket
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from handrail.conversation.blocks import Text, ToolUse
from handrail.remote.app import make_app
from handrail.remote.service import RunService
from handrail.testing.model_server import ModelServer, Reply
from tests.cli.test_run import started, variables
from tests.remote.serving import (
    TOKENS,
    all_lines,
    first_line,
    get,
    kinds,
    lines_until_gone,
    served,
    start,
    write_config,
)

pytestmark = pytest.mark.anyio

TOUCH = ToolUse("c1", "Bash", {"command": "touch made.txt"})


def answer_to(question: dict[str, Any], choice: str, **more: Any) -> dict[str, Any]:
    return {"question": question["id"], "digest": question["digest"], "choice": choice, **more}


async def test_a_run_gives_the_lines_of_stream_json_and_is_kept_with_its_result(tmp_path: Path) -> None:
    read = ToolUse("c1", "Read", {"file_path": "hello.txt"})
    replies = [Reply((read,)), Reply((Text("It says hello."),))]
    async with asyncio.timeout(60), ModelServer(replies * 2, strict=True) as model:
        config = write_config(tmp_path)
        (tmp_path / "shop" / "hello.txt").write_text("hello")
        async with served(model, tmp_path, config) as server, server.client() as ann, server.client("bob") as bob:
            made = await start(ann, "What does the file say?")
            lines = await all_lines(ann, made["id"])
            again = await all_lines(bob, made["id"], after=len(lines) - 1)
            run = await get(bob, made["id"])
            listed = (await bob.get("/v1/runs", params={"status": "finished", "folder": "shop"})).json()
        env = variables(model, tmp_path) | {"ANTHROPIC_API_KEY": "k"}
        plain = await started(tmp_path / "shop", env, "-p", "What?", "--output-format", "stream-json", "--verbose")
        printed = [json.loads(line) for line in (await plain.communicate(b""))[0].splitlines()]

    assert kinds(lines) == ["session_state_changed", *kinds(printed)]
    assert [sorted(line) for line in lines[1:]] == [sorted(line) for line in printed]
    assert {line["session_id"] for line in lines} == {made["id"]}
    assert again == lines[-1:]
    assert (run["status"], run["result"]["result"], run["client"]) == ("finished", "It says hello.", "ann")
    assert [each["id"] for each in listed["runs"]] == [made["id"]]


async def test_a_request_that_the_server_fails_at_is_answered_as_other_errors_are() -> None:
    broken = cast("RunService", None)
    transport = httpx2.ASGITransport(make_app(broken), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/v1/runs/r1")

    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/json")
    said = "GET /v1/runs/r1 failed in the server: AttributeError. The standard error of the server says more."
    assert answer.json() == {"error": said}


async def test_a_run_stays_the_session_that_its_id_names(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(60),
        ModelServer([], strict=True) as model,
        served(model, tmp_path, write_config(tmp_path)) as server,
        server.client() as ann,
    ):
        made = await start(ann, "/clear")
        lines = await all_lines(ann, made["id"])

    assert {line["session_id"] for line in lines if "session_id" in line} == {made["id"]}
    assert (lines[-1]["type"], lines[-1]["is_error"]) == ("result", True)
    assert "This run is one session from its beginning to its end" in json.dumps(lines[-1])


async def test_a_question_waits_for_a_client_that_may_answer_and_no_answer_widens_rules(tmp_path: Path) -> None:
    remove = ToolUse("c2", "Bash", {"command": "rm made.txt"})
    replies = [Reply((TOUCH,)), Reply((remove,)), Reply((Text("Done."),))]
    async with asyncio.timeout(60), ModelServer(replies, strict=True) as model:
        config = write_config(tmp_path)
        async with served(model, tmp_path, config) as server, server.client() as ann, server.client("bob") as bob:
            run_id = (await start(bob, "Make a file."))["id"]
            asked = (await first_line(ann, run_id, "control_request"))["request"]
            question = asked["question"]
            assert (await get(ann, run_id))["questions"] == [question]
            place = f"/v1/runs/{run_id}/answer"
            refused = [
                await bob.post(place, json=answer_to(question, "allow")),
                await ann.post(place, json=answer_to(question, "always")),
                await ann.post(place, json=answer_to({**question, "digest": "x"}, "allow")),
                await ann.post(place, json=answer_to({**question, "id": "c9#1"}, "allow")),
            ]
            assert not (tmp_path / "shop" / "made.txt").exists()
            taken = await ann.post(place, json=answer_to(question, "allow"))
            lines = await all_lines(bob, run_id)
            late = await ann.post(place, json=answer_to(question, "allow"))

    assert [each.status_code for each in refused] == [403, 409, 409, 409]
    assert (taken.status_code, late.status_code) == (200, 409)
    assert (asked["subtype"], asked["tool_name"], asked["input"]) == ("can_use_tool", "Bash", TOUCH.input)
    assert (tmp_path / "shop" / "made.txt").exists()  # the deny rule of the policy held without a question
    assert [line["tool_name"] for line in lines if line.get("subtype") == "permission_denied"] == ["Bash"]
    assert not (tmp_path / "shop" / ".handrail").exists()


async def test_a_run_can_do_only_what_its_policy_allows_and_its_origin_is_in_the_audit_log(tmp_path: Path) -> None:
    async with asyncio.timeout(60), ModelServer([Reply((TOUCH,)), Reply((Text("No."),))], strict=True) as model:
        config = write_config(tmp_path)
        async with served(model, tmp_path, config) as server, server.client() as ann:
            wishes: list[dict[str, Any]] = [
                {"permissionMode": "bypassPermissions"},
                {"allow": ["Bash"]},
                {"settings": {}},
            ]
            for more in wishes:
                answer = await ann.post("/v1/runs", json={"folder": "shop", "prompt": "x", **more})
                assert (answer.status_code, next(iter(more)) in answer.json()["error"]) == (400, True)
            other = await ann.post("/v1/runs", json={"folder": "shop", "prompt": "x", "policy": "open"})
            made = await start(ann, "Make a file.", policy="closed")
            await all_lines(ann, made["id"])
        assert other.status_code == 403
        assert not (tmp_path / "shop" / "made.txt").exists()
        env = variables(model, tmp_path)
        shown = await started(tmp_path, env, "audit", "--client", "ann", "--json")
        line = json.loads((await shown.communicate(b""))[0])
        told = (await (await started(tmp_path, env, "audit", "why", "c1")).communicate(b""))[0].decode()
        counted = (await (await started(tmp_path, env, "audit", "--by", "origin")).communicate(b""))[0].decode()
        none = (await (await started(tmp_path, env, "audit", "--client", "bob")).communicate(b""))[0].decode()

    origin = {"client": "ann", "address": "127.0.0.1", "run": made["id"]}
    assert (line["decision"], line["origin"]) == ("deny", origin)
    assert f"client ann, address 127.0.0.1, run {made['id']}" in told
    assert "client ann" in counted
    assert "No recorded decision matches" in none


async def test_a_run_is_stopped_and_goes_on_with_another_prompt(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = [Reply((Text("never"),), gates={2: gate}), Reply((Text("Went on."),))]
    config = write_config(tmp_path)
    async with (
        asyncio.timeout(60),
        ModelServer(replies, strict=True) as model,
        served(model, tmp_path, config) as server,
        server.client() as ann,
    ):
        run_id = (await start(ann, "Think."))["id"]
        place = f"/v1/runs/{run_id}"
        await first_line(ann, run_id, "system")
        while not model.requests:
            await asyncio.sleep(0.01)
        busy = await ann.post(f"{place}/resume", json={"prompt": "More."})
        await ann.post(f"{place}/stop")
        lines = await all_lines(ann, run_id)
        stopped = await get(ann, run_id)
        resumed = await ann.post(f"{place}/resume", json={"prompt": "Go on, please."})
        more = await all_lines(ann, run_id, after=len(lines))
        ended = await get(ann, run_id)
        bare = await ann.post(f"{place}/resume")

    assert (busy.status_code, resumed.status_code, bare.status_code) == (409, 200, 400)
    assert (stopped["status"], stopped["problem"], lines[-1]["type"]) == ("stopped", "stopped by ann", "result")
    assert (ended["status"], more[-1]["result"]) == ("finished", "Went on.")
    assert "Go on, please." in json.dumps(model.requests[-1].body["messages"][-1])


async def test_what_has_no_room_waits_and_what_has_none_there_either_is_refused(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = [Reply((Text("one"),), gates={0: gate}), Reply((Text("two"),))]
    async with asyncio.timeout(60), ModelServer(replies, strict=True) as model:
        config = write_config(tmp_path, maxRuns=1, maxWaiting=1)
        async with served(model, tmp_path, config) as server, server.client() as ann:
            first, second = await start(ann, "First."), await start(ann, "Second.")
            third = await ann.post("/v1/runs", json={"folder": "shop", "prompt": "Third."})
            waiting = await get(ann, second["id"])
            reading = asyncio.ensure_future(all_lines(ann, second["id"]))
            lone = await ann.post(f"/v1/runs/{second['id']}/stop")
            ended = await reading  # a reader of a run that never began sees its end
            second = await start(ann, "Second.")
            gate.set()
            results = [(await all_lines(ann, each["id"]))[-1]["result"] for each in (first, second)]

    assert (third.status_code, waiting["status"]) == (503, "waiting")
    assert (lone.json()["status"], ended) == ("stopped", [])
    assert results == ["one", "two"]


async def test_a_reader_that_reads_nothing_holds_up_no_other(tmp_path: Path) -> None:
    words = "x" * 900_000
    turns = [Reply((Text(words), ToolUse(f"c{n}", "Glob", {"pattern": f"*.{n}"}))) for n in range(10)]
    policy = {"settings": {"autoCompactEnabled": False}}
    config = write_config(tmp_path, policies={"ask": policy, "closed": {}})
    async with (
        asyncio.timeout(120),
        ModelServer([*turns, Reply((Text("End."),))], strict=True) as model,
        served(model, tmp_path, config) as server,
        server.client() as ann,
    ):
        run_id = (await start(ann, "Talk."))["id"]
        host, port = server.url.removeprefix("http://").split(":")
        with socket.socket() as small:
            small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            small.connect((host, int(port)))
            reader, writer = await asyncio.open_connection(sock=small)
            head = f"GET /v1/runs/{run_id}/events HTTP/1.0\r\nHost: {host}:{port}\r\n"
            writer.write(f"{head}Authorization: Bearer {TOKENS['ann']}\r\n\r\n".encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            lines = await all_lines(ann, run_id)
            late = await reader.read(-1)
            writer.close()

    assert (lines[-1]["type"], lines[-1]["result"], late.count(words.encode())) == ("result", "End.", 10)
    assert [json.loads(line) for line in late.partition(b"\r\n\r\n")[2].splitlines()] == lines  # it missed nothing


async def test_runs_under_way_go_on_when_a_server_that_was_ended_starts_again(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = [Reply((Text("never"),), gates={2: gate}), Reply((Text("At last."),))]
    async with asyncio.timeout(60), ModelServer(replies, strict=True) as model:
        config = write_config(tmp_path)
        async with served(model, tmp_path, config) as server, server.client() as ann:
            run_id = (await start(ann, "Take your time."))["id"]
            while not model.requests:
                await asyncio.sleep(0.01)
            following = asyncio.ensure_future(lines_until_gone(ann, run_id))
            code = await server.end(signal.SIGTERM)
            seen = await following
        async with served(model, tmp_path, config) as server, server.client() as ann:
            lines = await all_lines(ann, run_id, after=len(seen))
            run = await get(ann, run_id)

    assert code == 0
    assert "result" not in kinds(seen)
    assert (run["status"], run["restarts"], lines[-1]["result"]) == ("finished", 1, "At last.")


async def test_many_runs_are_under_way_at_once_in_one_process(tmp_path: Path) -> None:
    count, gate = 40, asyncio.Event()
    calls = [Reply((ToolUse(f"c{n}", "Glob", {"pattern": "*"}),), gates={0: gate}) for n in range(count)]
    async with (
        asyncio.timeout(120),
        ModelServer([*calls, *(Reply((Text(f"Answer {n}."),)) for n in range(count))], strict=True) as model,
        served(model, tmp_path, write_config(tmp_path)) as server,
        server.client() as ann,
    ):
        made = [(await start(ann, f"Task {n}."))["id"] for n in range(count)]
        while len(model.requests) < count:
            await asyncio.sleep(0.01)
        running = (await ann.get("/v1/runs", params={"status": "running", "limit": 200})).json()["runs"]
        gate.set()
        ends = await asyncio.gather(*(all_lines(ann, run_id) for run_id in made))

    assert {run["id"] for run in running} == set(made)
    assert {lines[-1]["result"] for lines in ends} == {f"Answer {n}." for n in range(count)}


async def test_a_second_server_on_the_same_state_is_refused(tmp_path: Path) -> None:
    async with asyncio.timeout(60), ModelServer() as model:
        config = write_config(tmp_path)
        async with served(model, tmp_path, config):
            env = variables(model, tmp_path)
            second = await started(tmp_path, env, "serve", "--config", str(config))
            out, errors = await second.communicate(b"")

    assert (second.returncode, out) == (2, b"")
    assert b"another handrail serve holds" in errors


async def test_a_folder_by_flag_has_one_client_and_the_flags_are_its_policy(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    async with asyncio.timeout(60), ModelServer([Reply((TOUCH,)), Reply((Text("Made."),))], strict=True) as model:
        env = variables(model, tmp_path) | {"ANTHROPIC_API_KEY": "k"}
        arguments = ("serve", "--folder", "shop=shop", "--json", "--allowedTools", "Bash(touch *)")
        process = await started(tmp_path, env, *arguments)
        assert process.stdout is not None
        told = json.loads(await process.stdout.readline())
        headers = {"Authorization": f"Bearer {told['token']}"}
        async with httpx2.AsyncClient(base_url=told["url"], headers=headers, timeout=60) as client:
            made = await start(client, "Make it.")
            lines = await all_lines(client, made["id"])
            about = (await client.get("/v1")).json()
        process.send_signal(signal.SIGTERM)
        rest, errors = await process.communicate()

    assert lines[-1]["result"] == "Made."
    assert (tmp_path / "shop" / "made.txt").exists()
    assert (about["folders"], about["answers"], errors) == ({"shop": ["flags"]}, True, b"")
    assert told["token"].encode() not in rest
