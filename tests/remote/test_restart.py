"""What is left when a server is killed: every run, with its truth, and nothing twice."""

import asyncio
import json
import resource
import signal
from pathlib import Path

import pytest

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from tests.remote.serving import all_lines, first_line, get, kinds, lines_of, served, start, write_config

pytestmark = pytest.mark.anyio

TOUCH = ToolUse("c1", "Bash", {"command": "touch made.txt"})


@pytest.mark.proves("N28")
async def test_no_run_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    never = asyncio.Event()
    replies = [
        Reply((Text("Ready."),), to="quick"),
        Reply((Text("never"),), to="slow", gates={2: never}),
        Reply((TOUCH,), to="asks"),
        Reply((ToolUse("c2", "Bash", {"command": "sleep 600"}),), to="command"),
        Reply((Text("never"),), to="fourth", gates={2: never}),
    ]
    config = write_config(
        tmp_path,
        maxRuns=4,
        policies={"ask": {"allow": ["Bash(sleep *)"], "settingSources": []}, "closed": {}},
    )
    words = ("slow", "asks", "command", "fourth")
    replies += [Reply((Text(f"Went on: {word}."),), to=word) for word in words]
    replies.append(Reply((Text("Had room."),), to="waits"))
    async with asyncio.timeout(120), ModelServer(replies, strict=True) as model:
        async with served(model, tmp_path, config, anew=True) as server, server.client() as ann:
            quick = (await start(ann, "quick"))["id"]
            before = await all_lines(ann, quick)
            runs = {word: (await start(ann, word))["id"] for word in words}
            await first_line(ann, runs["asks"], "control_request")
            await first_line(ann, runs["command"], "assistant")
            while len(model.requests) < 5:
                await asyncio.sleep(0.01)
            waiting = (await start(ann, "waits for room"))["id"]
            assert (await get(ann, waiting))["status"] == "waiting"
            code = await server.end(signal.SIGKILL)
        record = Path(f"{tmp_path}-state/serve/runs/{runs['slow']}.jsonl")
        with record.open("ab") as file:
            file.write(b'{"type": "half a li')  # what a kill in the middle of a write would leave
        async with served(model, tmp_path, config, anew=True) as server, server.client() as ann:
            listed = {run["id"] for run in (await ann.get("/v1/runs")).json()["runs"]}
            after = {word: await all_lines(ann, run_id) for word, run_id in runs.items()}
            found = {word: await get(ann, run_id) for word, run_id in runs.items()}
            assert await all_lines(ann, quick) == before
            states = (await get(ann, quick))["status"], (await get(ann, quick))["restarts"]
            late = (await all_lines(ann, waiting))[-1]["result"]

    assert code == -signal.SIGKILL
    assert listed == {quick, waiting, *runs.values()}
    assert states == ("finished", 0)
    assert late == "Had room."
    for word in runs:
        assert (found[word]["status"], found[word]["restarts"]) == ("finished", 1), word
        assert after[word][-1]["result"] == f"Went on: {word}."
        assert kinds(after[word]).count("result") == 1
        said = [text for text in (json.dumps(each.body["messages"]) for each in model.requests) if f'"{word}"' in text]
        assert "was started again" in said[-1]
    assert not (tmp_path / "shop" / "made.txt").exists()  # the question was never answered


async def test_runs_are_left_for_clients_to_resume_where_the_operator_wants_that(tmp_path: Path) -> None:
    never = asyncio.Event()
    replies = [Reply((Text("never"),), gates={2: never}), Reply((Text("Went on."),))]
    config = write_config(tmp_path, onRestart="leave")
    async with asyncio.timeout(90), ModelServer(replies, strict=True) as model:
        async with served(model, tmp_path, config, anew=True) as server, server.client() as ann:
            run_id = (await start(ann, "Think."))["id"]
            while not model.requests:
                await asyncio.sleep(0.01)
            await server.end(signal.SIGKILL)
        async with served(model, tmp_path, config) as server, server.client() as ann:
            left = await get(ann, run_id)
            await ann.post(f"/v1/runs/{run_id}/resume")
            lines = await all_lines(ann, run_id)

    assert left["status"] == "interrupted"
    assert "the server ended while it ran" in left["problem"]
    assert lines[-1]["result"] == "Went on."


async def test_a_run_of_a_client_that_is_gone_does_not_go_on(tmp_path: Path) -> None:
    never = asyncio.Event()
    async with asyncio.timeout(90), ModelServer([Reply((Text("never"),), gates={2: never})], strict=True) as model:
        config = write_config(tmp_path)
        async with served(model, tmp_path, config, anew=True) as server, server.client() as ann:
            run_id = (await start(ann, "Think."))["id"]
            while not model.requests:
                await asyncio.sleep(0.01)
            await server.end(signal.SIGKILL)
        clients = json.loads(config.read_text())["clients"]
        config = write_config(tmp_path, clients={"bob": clients["bob"]})
        async with served(model, tmp_path, config) as server, server.client("bob") as bob:
            await all_lines(bob, run_id)
            left = await get(bob, run_id)
            gone = None
            async with server.client("ann") as ann:
                gone = await ann.get("/v1")

    assert (left["status"], "There is no folder 'shop' for you" in left["problem"]) == ("interrupted", True)
    assert gone.status_code == 401
    assert len(model.requests) == 1


@pytest.mark.parametrize("text", ["{", '{"version": 99}', '{"version": 1, "id": "x"}'], ids=["cut", "newer", "odd"])
async def test_a_record_that_cannot_be_read_is_told_and_left_alone(tmp_path: Path, text: str) -> None:
    folder = Path(f"{tmp_path}-state/serve/runs")
    folder.mkdir(parents=True)
    for each in (folder, folder.parent, folder.parent.parent):
        each.chmod(0o700)
    (folder / "broken.json").write_text(text)
    async with (
        asyncio.timeout(60),
        ModelServer([Reply((Text("Fine."),))]) as model,
        served(model, tmp_path, write_config(tmp_path)) as server,
        server.client() as ann,
    ):
        made = await start(ann, "Hello.")
        assert (await all_lines(ann, made["id"]))[-1]["result"] == "Fine."
        await server.end()

    assert b"broken.json cannot be read and is left out" in server.errors
    assert (folder / "broken.json").read_text() == text


async def test_a_run_that_another_client_resumes_is_told_of_with_the_address_of_that_client(tmp_path: Path) -> None:
    folder = Path(f"{tmp_path}-state/serve/runs")
    async with asyncio.timeout(90), ModelServer([Reply((Text("Fine."),)), Reply((Text("More."),))]) as model:
        config = write_config(tmp_path)
        async with served(model, tmp_path, config) as server, server.client() as ann:
            run_id = (await start(ann, "Hello."))["id"]
            await all_lines(ann, run_id)
        kept = json.loads((folder / f"{run_id}.json").read_text())
        (folder / f"{run_id}.json").write_text(json.dumps(kept | {"origin": {"client": "ann", "address": "192.0.2.9"}}))
        async with served(model, tmp_path, config) as server, server.client("bob") as bob:
            await bob.post(f"/v1/runs/{run_id}/resume", json={"prompt": "Go on."})
            resumed = await get(bob, run_id)
            await all_lines(bob, run_id)

    assert resumed["origin"] == {"client": "bob", "address": "127.0.0.1"}


async def test_a_run_whose_end_cannot_be_written_ends_all_the_same_and_makes_room(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    folder, away = Path(f"{tmp_path}-state/serve/runs"), tmp_path / "away"
    async with (
        asyncio.timeout(60),
        ModelServer([Reply((Text("Lost."),), gates={2: gate}), Reply((Text("Fine."),))]) as model,
        served(model, tmp_path, write_config(tmp_path, maxRuns=1)) as server,
        server.client() as ann,
    ):
        lost = (await start(ann, "One."))["id"]
        while not model.requests:
            await asyncio.sleep(0.01)
        reading = lines_of(ann, lost)
        await anext(reading)
        folder.rename(away)
        folder.touch()
        gate.set()
        lines = [line async for line in reading]
        told = await get(ann, lost)
        folder.unlink()
        away.rename(folder)
        other = (await start(ann, "Two."))["id"]
        after = await all_lines(ann, other)

    assert lines[-1]["result"] == "Lost."
    assert (told["status"], "cannot be written" in told["problem"]) == ("interrupted", True)
    assert after[-1]["result"] == "Fine."


async def test_a_run_that_finds_no_room_on_disk_ends_with_that_reason(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with (
        asyncio.timeout(60),
        ModelServer([Reply((Text("Lost."),), gates={2: gate}), Reply((Text("Fine."),))]) as model,
        served(model, tmp_path, write_config(tmp_path), anew=True) as server,
        server.client() as ann,
    ):
        lost = (await start(ann, "One."))["id"]
        while not model.requests:
            await asyncio.sleep(0.01)
        size, pid = resource.RLIMIT_FSIZE, server.process.pid
        before = resource.prlimit(pid, size, (0, resource.RLIM_INFINITY))  # as a full disk: nothing can be added
        gate.set()
        await all_lines(ann, lost)
        told = await get(ann, lost)
        resource.prlimit(pid, size, before)
        await ann.post(f"/v1/runs/{lost}/resume", json={"prompt": "Again."})
        after = await all_lines(ann, lost)

    assert (told["status"], "cannot be written: File too large" in told["problem"]) == ("interrupted", True)
    assert after[-1]["result"] == "Fine."
