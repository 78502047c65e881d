"""Triggers, and what a server starts by the clock with no session open."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.blocks import Text
from handrail.remote.config import ServeFile, build_config
from handrail.remote.service import RunService, open_service
from handrail.remote.triggers import Trigger
from handrail.schedules import clock, starting
from handrail.schedules.entries import new_entry
from handrail.schedules.store import ScheduleStore
from handrail.testing.model_server import ModelServer, Reply
from tests.cli.test_run import variables
from tests.remote.serving import ANN, BOB, all_lines, config_of, get, served, write_config

pytestmark = pytest.mark.anyio

START = 1_800_000_000.0  # a full minute


class Now:
    """The time of the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = START
        monkeypatch.setattr(clock, "now", lambda: self.time)
        monkeypatch.setattr(starting, "LOOK_SECONDS", 0.01)


@asynccontextmanager
async def service(model: ModelServer, folder: Path, told: list[str], **changes: Any) -> AsyncIterator[RunService]:
    config = build_config(ServeFile(**config_of(folder, **changes)), "test", folder)
    env = variables(model, folder) | {"ANTHROPIC_API_KEY": "k", "TZ": "UTC"}
    async with open_service(config, Path(env["HANDRAIL_STATE_DIR"]), env, told.append) as opened:
        yield opened


async def ended(opened: RunService, count: int) -> list[tuple[str, str]]:
    """The states and results of so many runs, when they have ended."""
    while len(runs := opened.runs.all("bob")) < count or any(run.is_open for run in runs):
        await asyncio.sleep(0.01)
    return [(run.status, run.result["result"]) for run in reversed(runs)]


async def add(folder: Path, where: str, prompt: str) -> str:
    made = replace(
        new_entry("* * * * *", prompt, clock.now(), recurring=True),
        durable=True,
        folder=os.path.realpath(folder / where),
    )
    store = ScheduleStore(Path(f"{folder}-state/schedules.json"))
    await store.change(lambda before: ((*before, made), None))
    return made.id


async def test_durable_schedules_of_listed_folders_start_with_no_session_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, told = Now(monkeypatch), list[str]()
    (tmp_path / "shop" / "api").mkdir(parents=True)
    folders = {
        "shop": {"path": str(tmp_path / "shop"), "policies": ["ask", "closed"], "schedules": "closed"},
        "docs": {"path": str(tmp_path / "docs"), "policies": ["closed"]},
    }
    missed = await add(tmp_path, "shop", "Missed while there was no server.")
    now.time += 90
    async with (
        asyncio.timeout(60),
        ModelServer([Reply((Text("Looked."),))], strict=True) as model,
        service(model, tmp_path, told, folders=folders) as opened,
    ):
        api = await add(tmp_path, "shop/api", "Look at the build.")
        await add(tmp_path, "docs", "Not here: no policy for schedules.")
        await add(tmp_path, "elsewhere", "Not here: not listed.")
        while not any("when no session was open" in line for line in told):
            await asyncio.sleep(0.01)
        store = ScheduleStore(Path(f"{tmp_path}-state/schedules.json"))
        await store.change(lambda before: (tuple(each for each in before if each.id != missed), None))
        now.time += 60
        results = await ended(opened, 1)
        run = opened.runs.all("bob")[0]

    assert results == [("finished", "Looked.")]
    assert (run.folder, run.path, run.policy, run.client) == ("shop", "api", "closed", "")
    assert run.origin == {"schedule": api}
    assert "Look at the build." in json.dumps(model.requests[0].body["messages"])


async def test_a_due_time_starts_once_even_if_the_server_dies_before_it_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, told = Now(monkeypatch), list[str]()
    folders = {"shop": {"path": str(tmp_path / "shop"), "policies": ["closed"], "schedules": "closed"}}
    clients = {"ann": ANN, "bob": {**BOB, "folders": ["shop"]}}
    async with asyncio.timeout(60), ModelServer([Reply((Text("Once."),))], strict=True) as model:
        async with service(model, tmp_path, told, folders=folders, clients=clients) as opened:
            await add(tmp_path, "shop", "Look.")
            store = Path(f"{tmp_path}-state/schedules.json")
            before = store.read_bytes()
            now.time += 60
            assert await ended(opened, 1) == [("finished", "Once.")]
        store.write_bytes(before)  # as if the process had been killed between the run and this file
        now.time += 1
        async with service(model, tmp_path, told, folders=folders, clients=clients) as opened:
            while store.read_bytes() == before:
                await asyncio.sleep(0.01)
            assert await ended(opened, 1) == [("finished", "Once.")]

    assert len(model.requests) == 1
    assert not any("was not started" in line for line in told)


async def test_a_trigger_with_a_time_starts_by_the_clock_with_the_rights_of_its_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, told = Now(monkeypatch), list[str]()
    replies = [Reply((Text("First."),)), Reply((Text("Second."),))]
    async with asyncio.timeout(60), ModelServer(replies, strict=True) as model:
        async with service(model, tmp_path, told) as opened:
            trigger = Trigger("t1", "watch", "shop", "Look.", "ann", START, cron="* * * * *", since=START)
            opened.triggers.keep(trigger)
            opened.triggers.keep(replace(trigger, id="t2", enabled=False))
            opened.triggers.keep(replace(trigger, id="t3", client="eve"))  # who has no right to the shop any more
            now.time += 60
            first = await ended(opened, 1)
        async with service(model, tmp_path, told) as opened:  # kept over a restart
            now.time += 60
            second = await ended(opened, 2)
            origin = opened.runs.all("bob")[0].origin

    assert (first, second) == ([("finished", "First.")], [("finished", "First."), ("finished", "Second.")])
    assert origin == {"client": "ann", "trigger": "t1", "by": "clock"}


async def test_triggers_are_made_changed_started_and_removed_over_http(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(60),
        ModelServer([Reply((Text("Looked."),))], strict=True) as model,
        served(model, tmp_path, write_config(tmp_path)) as server,
        server.client() as ann,
        server.client("bob") as bob,
        server.client("eve") as eve,
    ):
        wanted = {"name": "watch", "folder": "shop", "prompt": "Look at the build.", "cron": "0 9 * * 1-5"}
        made = (await ann.post("/v1/triggers", json=wanted)).json()
        place = f"/v1/triggers/{made['id']}"
        refused = [
            await ann.post("/v1/triggers", json={**wanted, "cron": "0 25 * * *"}),
            await ann.post("/v1/triggers", json={**wanted, "folder": "docs"}),
            await ann.post("/v1/triggers", json={**wanted, "client": "bob"}),
            await ann.patch(place, json={"path": "../docs"}),
            await eve.get(place),
            await eve.post(f"{place}/run"),
            await eve.delete(place),
        ]
        changed = (await bob.patch(place, json={"prompt": "Look twice.", "cron": "", "policy": "closed"})).json()
        started = (await bob.post(f"{place}/run", json={"prompt": "And be quick."})).json()
        await all_lines(bob, started["id"])
        run = await get(ann, started["id"])
        listed = (await ann.get("/v1/triggers")).json()["triggers"]
        others = (await eve.get("/v1/triggers")).json()["triggers"]
        removed = (await ann.delete(place)).json()
        gone = await ann.get(place)

    assert [answer.status_code for answer in refused] == [400, 404, 400, 400, 404, 404, 404]
    assert (made["client"], made["enabled"], made["runs"]) == ("ann", True, [])
    assert (changed["client"], changed["prompt"], changed["cron"]) == ("bob", "Look twice.", "")
    assert run["origin"] == {"client": "bob", "address": "127.0.0.1", "trigger": made["id"]}
    assert [each["id"] for each in listed[0]["runs"]] == [started["id"]]
    assert (others, removed, gone.status_code) == ([], {"removed": made["id"]}, 404)
    assert "Look twice.\\n\\nAnd be quick." in json.dumps(model.requests[0].body["messages"])
