"""Clients of one server: none takes the places of the others."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.conversation.blocks import Text
from handrail.remote.config import ServeClient, ServeConfig
from handrail.remote.records import ServedRunRecord
from handrail.remote.shares import next_run, refuse_to_wait
from handrail.remote.triggers import MAX_TRIGGERS
from handrail.testing.model_server import ModelServer, Reply
from tests.remote.serving import ANN, BOB, EVE, all_lines, get, served, start, write_config

NAMES = ("ann", "bob", "eve")


@pytest.mark.anyio
async def test_a_client_that_fills_its_places_leaves_those_of_the_others(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = [Reply((Text("Done."),), gates={0: gate}), *(Reply((Text("Done."),)) for _ in range(6))]
    trigger = {"name": "t", "folder": "shop", "prompt": "x"}
    async with asyncio.timeout(120), ModelServer(replies) as model:
        config = write_config(tmp_path, maxRuns=1, maxWaiting=9)
        async with served(model, tmp_path, config) as server, server.client() as ann, server.client("bob") as bob:
            first = await start(ann, "first")
            waiting = [await start(ann, f"ann {number}") for number in range(3)]
            fourth = await ann.post("/v1/runs", json={"folder": "shop", "prompt": "one more"})
            other = await start(bob, "bob")
            gate.set()
            for run in (first, *waiting, other):
                await all_lines(bob, run["id"])
            began = {(await get(bob, run["id"]))["started"]: run["id"] for run in (*waiting, other)}
            order = [began[moment] for moment in sorted(began)]

            share = MAX_TRIGGERS // len(NAMES)
            made = [(await ann.post("/v1/triggers", json=trigger)).status_code for _ in range(share + 1)]
            bobs = await bob.post("/v1/triggers", json=trigger)
            place = f"/v1/triggers/{bobs.json()['id']}"
            taken = await ann.patch(place, json={"prompt": "y"})

    assert (fourth.status_code, "3 of them yours" in fourth.json()["error"]) == (503, True)
    assert order[0] == other["id"]  # its turn comes before the second run of the one that came first
    assert Counter(made) == {201: share, 409: 1}
    assert (bobs.status_code, taken.status_code) == (201, 409)


@pytest.mark.anyio
async def test_the_operator_bounds_how_many_runs_of_a_client_work_at_once(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = [Reply((Text("Done."),), gates={0: gate}) for _ in range(3)]
    clients = {"ann": {**ANN, "maxRuns": 1}, "bob": BOB, "eve": EVE}
    async with (
        asyncio.timeout(60),
        ModelServer(replies) as model,
        served(model, tmp_path, write_config(tmp_path, clients=clients)) as server,
        server.client() as ann,
        server.client("bob") as bob,
    ):
        runs = [await start(ann, "one"), await start(ann, "two"), await start(bob, "three")]
        while len(model.requests) < 2:
            await asyncio.sleep(0.01)
        states = [(await get(ann, run["id"]))["status"] for run in runs]
        gate.set()
        results = [(await all_lines(ann, run["id"]))[-1]["result"] for run in runs]

    assert states == ["running", "waiting", "running"]
    assert results == ["Done."] * 3


CONFIG = ServeConfig({}, {}, {name: ServeClient(name, frozenset()) for name in NAMES})
WAITING = ServedRunRecord("r", "shop", "p", "x", "waiting", 0.0)


@given(
    st.lists(st.sampled_from((*NAMES, "")), max_size=40),
    st.integers(min_value=1, max_value=4),
    st.integers(min_value=3, max_value=9),
    st.randoms(use_true_random=False),
)
def test_every_client_has_its_places_and_its_turn_whatever_the_others_ask_for(
    asking: list[str], most: int, places: int, random: Random
) -> None:
    config = replace(CONFIG, max_runs=most, max_waiting=places)
    waiting: list[ServedRunRecord] = []
    running: Counter[str] = Counter()
    starts: Counter[str] = Counter()

    def start_all() -> None:
        while run := next_run(config, waiting, running, starts):
            rivals = [each for each in waiting if each.client != run.client]
            assert all(running[each.client] >= running[run.client] for each in rivals)
            waiting.remove(run)
            running[run.client] += 1
            starts[run.client] = max(starts.values(), default=0) + 1

    for number, client in enumerate(asking):
        here = Counter(run.client for run in waiting)
        if not refuse_to_wait(config, client, running, here):
            waiting.append(replace(WAITING, client=client, created=float(number)))
        elif client:
            assert here[client] >= config.share(places) or here.total() >= places
        start_all()
        assert running.total() <= most
        if running.total() and random.random() < 0.3:
            running[random.choice(sorted(running.elements()))] -= 1
            start_all()
