"""Schedules in a living session: what is due wakes it, once, also where several sessions and restarts are involved."""

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text, ToolUse
from handrail.headless.engine import EngineOptions
from handrail.schedules import clock, zone
from handrail.schedules.store import ScheduleStore
from handrail.session import schedules
from handrail.session.spec import SessionHost
from handrail.testing.model import say, use
from handrail.testing.model_server import Reply
from tests.headless.in_process import Line, Peer, peer
from tests.session.agents.test_subagents import open_agent
from tests.session.agents_model import AgentsModel

pytestmark = pytest.mark.anyio

BERLIN = "/usr/share/zoneinfo/Europe/Berlin"
MAY_KEEP: dict[str, Any] = {"spec": {"flags": SettingsFlags(allowed=("CronCreate", "CronDelete"))}}


class WallClock:
    """The time of the test; an idle session looks at it all the time."""

    def __init__(self) -> None:
        self.time = 0.0

    def set(self, shown: str) -> None:
        self.time = datetime.fromisoformat(shown).replace(tzinfo=ZoneInfo("Europe/Berlin")).timestamp()


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    found = WallClock()
    found.set("2026-03-27T08:00")
    monkeypatch.setattr(clock, "now", lambda: found.time)
    monkeypatch.setattr(zone, "SYSTEM_ZONE", BERLIN)
    monkeypatch.setattr(schedules, "LOOK_SECONDS", 0.01)
    return found


def calls(name: str, **given: Any) -> Reply:
    return Reply((ToolUse(f"u-{name}", name, given),))


def said(text: str) -> Reply:
    return Reply((Text(text),))


def results(lines: list[Line]) -> str:
    """What the calls of a turn gave."""
    return json.dumps([line["message"]["content"] for line in lines if line["type"] == "user"])


def last_message(p: Peer) -> str:
    return json.dumps(p.server.requests[-1].body["messages"][-1]["content"])


@pytest.mark.proves("N25")
async def test_a_recurring_prompt_wakes_an_idle_session_every_time_in_local_time(
    tmp_path: Path, wall: WallClock
) -> None:
    replies = [
        calls("CronCreate", cron="30 2 * * *", prompt="Look at the build."),
        *map(said, ("Made.", "First.", "Second.")),
    ]
    async with peer(tmp_path, replies) as p:
        made = await p.turn("go")
        assert "every day at 02:30, next 2026-03-28 02:30, in this session" in results(made)

        wall.set("2026-03-28T02:30")
        first = (await p.until("result"))[-1]
        assert (first["result"], first["origin"]) == ("First.", {"kind": "schedule"})
        assert 'schedule=\\"every day at 02:30\\" due=\\"2026-03-28 02:30\\">\\nLook at the build.' in last_message(p)

        wall.set("2026-03-29T03:00")  # 02:30 is skipped in this night
        assert (await p.until("result"))[-1]["result"] == "Second."
        assert 'due=\\"2026-03-29 03:00\\"' in last_message(p)
    assert len(p.server.requests) == 4


@pytest.mark.proves("N25")
async def test_times_that_pass_together_come_once_and_a_recurring_one_ends_after_seven_days(
    tmp_path: Path, wall: WallClock
) -> None:
    replies = [
        calls("CronCreate", cron="0 0 29 2 *", prompt="Leap."),
        calls("CronCreate", cron="0 * * * *", prompt="Hourly."),
        *map(said, ("Made.", "Late.", "Last.")),
        calls("CronList"),
        said("None."),
    ]
    async with peer(tmp_path, replies) as p:
        assert "would never come. Set recurring to false" in results(await p.turn("go"))
        wall.set("2026-03-27T11:20")
        assert (await p.until("result"))[-1]["result"] == "Late."
        assert "Its time came 3 times" in last_message(p)
        wall.set("2026-04-08T11:20")
        assert (await p.until("result"))[-1]["result"] == "Last."
        assert "It has come for the last time." in last_message(p)
        assert 'due=\\"2026-04-03 09:00\\"' in last_message(p)  # a day of 23 hours was among the seven
        assert "There are no schedules." in results(await p.turn("which?"))


@pytest.mark.proves("N26", "N27")
async def test_schedules_are_listed_and_removed_and_what_is_removed_does_not_come(
    tmp_path: Path, wall: WallClock
) -> None:
    once = Reply(
        tuple(
            ToolUse(f"c{each}", "CronCreate", {"cron": f"{each} 9 * * *", "prompt": f"P{each}.", "recurring": False})
            for each in (1, 2)
        )
    )
    replies = [once, calls("CronList"), said("Made.")]
    async with peer(tmp_path, replies) as p:
        listed = [line["tool_use_result"] for line in await p.turn("go") if "jobs" in line.get("tool_use_result", "")]
        first, second = listed[0]["jobs"]
        assert (first["prompt"], first["humanSchedule"]) == ("P1.", "once, 2026-03-27 09:01")

        replies += [
            calls("CronDelete", id=first["id"]),
            calls("CronDelete", id="zzz"),
            said("Gone."),
            said("P2 is here."),
        ]
        gone = results(await p.turn("drop it"))
        assert f"Schedule {first['id']} (once, 2026-03-27 09:01) was removed." in gone
        assert "There is no schedule 'zzz'. CronList shows" in gone
        wall.set("2026-03-27T10:00")
        assert (await p.until("result"))[-1]["result"] == "P2 is here."
        assert second["id"] in last_message(p)
        assert "P1." not in last_message(p)


def agree(p: Peer, asked: Line) -> None:
    answer = {"subtype": "success", "request_id": asked["request_id"], "response": {}}
    p.say({"type": "control_response", "response": answer})


async def test_a_wake_up_comes_after_at_least_a_minute_and_stop_hooks_know_of_it(
    tmp_path: Path, wall: WallClock
) -> None:
    wake = calls("ScheduleWakeup", delaySeconds=5, reason="the deploy", prompt="Is it deployed?")
    async with peer(tmp_path, [wake, said("Later."), said("It is.")]) as p:
        await p.ask("initialize", hooks={"Stop": [{"hookCallbackIds": ["stop"]}]})
        p.prompt("go")
        asked = (await p.until("control_request"))[-1]
        [known] = asked["request"]["input"]["session_crons"]
        agree(p, asked)
        assert (await p.until("result"))[-1]["result"] == "Later."
        wall.time += 60
        asked = (await p.until("control_request"))[-1]
        agree(p, asked)
        assert (await p.until("result"))[-1]["result"] == "It is."
        assert "Is it deployed?" in last_message(p)
    assert (known["schedule"], known["recurring"]) == ("once at 2026-03-27 08:01", False)


@pytest.mark.proves("N25")
async def test_a_durable_one_outlives_its_session_and_starts_in_one_of_two(tmp_path: Path, wall: WallClock) -> None:
    create = calls("CronCreate", cron="0 9 * * *", prompt="Morning.", durable=True)
    async with peer(tmp_path, [create, said("Made.")], **MAY_KEEP) as p:
        assert "in any session of this folder" in results(await p.turn("go"))
    file = tmp_path / "state" / "schedules.json"
    assert file.stat().st_mode & 0o77 == 0

    wall.set("2026-03-27T08:59")
    replies = [said(each) for each in ("Hello.", "One.", "Two.")]
    async with peer(tmp_path, replies) as a, peer(tmp_path, replies) as b:
        await a.turn("hello")
        await b.turn("hello")
        wall.set("2026-03-27T09:00")
        while len(a.server.requests) + len(b.server.requests) < 3:
            await asyncio.sleep(0.01)
        started, other = (a, b) if len(a.server.requests) == 2 else (b, a)
        assert (await started.until("result"))[-1]["origin"] == {"kind": "schedule"}
        assert "Morning." in last_message(started)
        for each in (other, started):  # nothing comes before or between what is typed
            assert "origin" not in (await each.turn("and you?"))[-1]
            assert "and you?" in last_message(each)
    came = [json.dumps(request.body["messages"][-1]) for each in (a, b) for request in each.server.requests]
    assert sum("<scheduled-prompt" in each for each in came) == 1


async def test_what_was_missed_is_told_once_and_not_started(tmp_path: Path, wall: WallClock) -> None:
    create = calls("CronCreate", cron="0 9 * * *", prompt="Morning.", durable=True)
    async with peer(tmp_path, [create, said("Made.")], **MAY_KEEP) as p:
        await p.turn("go")

    wall.set("2026-03-29T12:00")
    warnings: list[str] = []
    host = SessionHost(on_warning=warnings.append)
    async with peer(tmp_path, [said("Hello."), said("I know.")], host=host) as p:
        await p.turn("hello")
        while not warnings:
            await asyncio.sleep(0.01)
        await p.turn("what now?")
        sent = json.dumps(p.server.requests[-1].body["messages"])
    assert [line for line in warnings if "scheduled" in line] == warnings
    [told] = warnings
    assert "was due at 2026-03-29 09:00, the last of 3 times, when no session was open. It was not started." in told
    assert "It comes again: every day at 09:00. Its prompt: Morning." in told
    assert sent.count("when no session was open") == 1


async def test_a_durable_schedule_is_asked_about_and_one_of_a_session_that_ends_is_refused(
    tmp_path: Path, wall: WallClock
) -> None:
    create = calls("CronCreate", cron="0 9 * * *", prompt="Morning.", durable=True)
    async with peer(tmp_path, [create, said("No.")], options=EngineOptions()) as p:
        assert "it outlives this session" in results(await p.turn("go"))
    assert not (tmp_path / "state" / "schedules.json").exists()

    model = AgentsModel({
        "go": [
            [use("c", "CronCreate", cron="0 9 * * *", prompt="Morning.")],
            [use("w", "ScheduleWakeup", delaySeconds=60, reason="r", prompt="p")],
            [say("No.")],
        ]
    })  # fmt: skip
    async with open_agent(tmp_path, model) as agent:
        await agent.ask("go")
    assert model.texts("go").count("This session ends with its answer, so nothing could start a prompt later.") == 2


async def test_the_model_does_not_remove_a_durable_schedule_unasked(tmp_path: Path, wall: WallClock) -> None:
    create = calls("CronCreate", cron="0 9 * * *", prompt="Morning.", durable=True)
    async with peer(tmp_path, [create, said("Made.")], **MAY_KEEP) as p:
        await p.turn("go")
    [kept] = ScheduleStore(tmp_path / "state" / "schedules.json").read()

    async with peer(tmp_path, [calls("CronDelete", id=kept.id), said("No.")], options=EngineOptions()) as p:
        assert "it removes a schedule that outlives this session: every day at 09:00" in results(await p.turn("go"))
    assert ScheduleStore(tmp_path / "state" / "schedules.json").read() == (kept,)


async def test_a_damaged_file_is_named_once_and_the_session_goes_on(tmp_path: Path, wall: WallClock) -> None:
    (tmp_path / "state").mkdir(0o700)
    (tmp_path / "state" / "schedules.json").write_text('{"version": 1, "schedules": [{"id": 3}]}')
    warnings: list[str] = []
    async with peer(tmp_path, [said("a"), said("b")], host=SessionHost(on_warning=warnings.append)) as p:
        await p.turn("one")
        while not warnings:
            await asyncio.sleep(0.01)
        assert (await p.turn("two"))[-1]["result"] == "b"
    [told] = warnings
    assert "None of them is started. Repair the file, or move it away." in told
