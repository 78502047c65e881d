"""Calls that clients make at the same time have the effect of calls one by one, in the order they came."""

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Access, HookCallback, Output, Progress, ProgressCallback, ToolContext, tool
from handrail.config.flags import SettingsFlags
from handrail.dispatch.gate import CarefulGate
from handrail.gateway import McpServer
from handrail.gateway.service import McpService
from handrail.gateway.stdio import LineConnection
from handrail.mcp.messages import Message
from handrail.session import overlapping_calls
from handrail.session.spec import SessionHost, ToolOptions
from handrail.testing import run_virtual
from handrail.tools.context import RunContext
from handrail.tools.schema import Input
from handrail.tools.tool import PromptView, Tool
from mcp import Client, StdioServerParameters, types
from tests.dispatch.world import Do, Step, World, programs
from tests.gateway.clients import ERAS, TOKENS, sdk_client, spec_in, text_of, url_of

in_both_eras = pytest.mark.parametrize("era", ERAS)


class Gates:
    """Calls that wait until the test lets them go on."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self._opened: dict[str, asyncio.Event] = {}
        self._reached: dict[str, asyncio.Event] = {}

    async def wait_at(self, name: str) -> None:
        """What a call does."""
        self.began.append(name)
        self._event(self._reached, name).set()
        await self._event(self._opened, name).wait()

    async def reached(self, name: str) -> None:
        """Until a call has begun."""
        await self._event(self._reached, name).wait()

    def open(self, *names: str) -> None:
        for name in names:
            self._event(self._opened, name).set()

    @staticmethod
    def _event(events: dict[str, asyncio.Event], name: str) -> asyncio.Event:
        return events.setdefault(name, asyncio.Event())


class NameInput(Input):
    name: str


class GatedWrite(Tool[NameInput]):
    """Declares one file, and waits at the gate of its caller."""

    name = "GatedWrite"
    input_model = NameInput

    def __init__(self, gates: Gates, file: str) -> None:
        self._gates = gates
        self._file = file

    def prompt(self, view: PromptView) -> str:
        return "Writes a file."

    def access(self, args: NameInput, run: RunContext) -> Access:
        return Access.of(writes=[self._file])

    async def call(self, args: NameInput, ctx: ToolContext) -> Output:
        await self._gates.wait_at(args.name)
        return Output(text=args.name)


def undeclared(gates: Gates) -> Any:
    """A tool that declares nothing, as most do: nothing may run beside its calls."""

    @tool(name="change")
    async def change(name: str, progress: ProgressCallback) -> str:
        """Changes something."""
        progress(Progress(f"{name} begins", 0.5))
        await gates.wait_at(name)
        return name

    return change


async def calls_that_arrive(client: Client, group: Any, *names: str, tool: str = "change") -> dict[str, str]:
    """Start calls, one after the other; the results, as they come."""
    results: dict[str, str] = {}

    async def call(name: str) -> None:
        results[name] = text_of(await client.call_tool(tool, {"name": name}))

    for name in names:
        group.start_soon(call, name)
        await client.list_tools(cache_mode="refresh")  # the server has taken in what was sent before
    return results


@pytest.mark.anyio
@pytest.mark.proves("R4")
@in_both_eras
async def test_calls_that_declare_nothing_run_alone_in_the_order_they_came(era: str, tmp_path: Path) -> None:
    gates = Gates()
    server = McpServer(tools=[undeclared(gates)], allow=["change"], cwd=tmp_path)
    with anyio.fail_after(60):
        async with url_of(server) as url, sdk_client(url, era) as client, anyio.create_task_group() as group:
            results = await calls_that_arrive(client, group, "a", "b", "c")
            await gates.reached("a")
            assert gates.began == ["a"]

            gates.open("c", "a")
            await gates.reached("b")
            assert gates.began == ["a", "b"]

            gates.open("b")
    assert (gates.began, results) == (["a", "b", "c"], {"a": "a", "b": "b", "c": "c"})


@pytest.mark.anyio
@in_both_eras
async def test_a_call_that_is_cancelled_while_it_waits_never_runs_and_the_next_one_does(
    era: str, tmp_path: Path
) -> None:
    gates = Gates()
    server = McpServer(tools=[undeclared(gates)], allow=["change"], cwd=tmp_path)
    with anyio.fail_after(60):
        async with url_of(server) as url, sdk_client(url, era) as client, anyio.create_task_group() as group:
            await calls_that_arrive(client, group, "a")
            async with anyio.create_task_group() as impatient:
                await calls_that_arrive(client, impatient, "b")
                impatient.cancel_scope.cancel()
            await calls_that_arrive(client, group, "c")
            gates.open("a", "c")
    assert gates.began == ["a", "c"]


@pytest.mark.anyio
@in_both_eras
async def test_a_cancelled_call_lets_the_next_one_run(era: str, tmp_path: Path) -> None:
    gates = Gates()
    server = McpServer(tools=[undeclared(gates)], allow=["change"], cwd=tmp_path)
    with anyio.fail_after(60):
        async with url_of(server) as url, sdk_client(url, era) as client, anyio.create_task_group() as group:
            async with anyio.create_task_group() as impatient:
                await calls_that_arrive(client, impatient, "a")
                await gates.reached("a")
                results = await calls_that_arrive(client, group, "b")
                impatient.cancel_scope.cancel()
            gates.open("b")
    assert results == {"b": "b"}


@pytest.mark.anyio
@in_both_eras
async def test_each_call_reports_its_own_progress(era: str, tmp_path: Path) -> None:
    gates = Gates()
    heard: dict[str, list[str | None]] = {}

    @tool(read_only=True, concurrency_safe=True)
    async def look(name: str, progress: ProgressCallback) -> str:
        """Looks at something."""
        progress(Progress(f"{name} begins", 0.5))
        await gates.wait_at(name)
        progress(Progress(f"{name} ends", 1))
        return name

    def listener(name: str) -> Any:
        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.setdefault(name, []).append(message)

        return hear

    async def call(client: Client, name: str) -> None:
        await client.call_tool("look", {"name": name}, progress_callback=listener(name))

    with anyio.fail_after(60):
        async with (
            url_of(McpServer(tools=[look], cwd=tmp_path)) as url,
            sdk_client(url, era) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(call, client, "a")
            group.start_soon(call, client, "b")
            await gates.reached("a")
            await gates.reached("b")
            gates.open("a", "b")
    assert heard == {name: [f"{name} begins", f"{name} ends"] for name in "ab"}


@pytest.mark.anyio
@in_both_eras
async def test_a_call_that_is_refused_or_fails_stops_no_other(era: str, tmp_path: Path) -> None:
    gates = Gates()

    @tool
    async def fail() -> str:
        """Fails."""
        raise RuntimeError("it broke")

    async def stop_all(*_given: object) -> dict[str, Any]:
        return {"continue": False, "stopReason": "enough"}

    spec = spec_in(
        tmp_path,
        tools=ToolOptions((undeclared(gates), fail), ()),
        flags=SettingsFlags(sources=(), allowed=("change", "fail")),
    )
    hooks = {"PreToolUse": (HookCallback(stop_all, matcher="fail"),)}
    server = McpServer.from_spec(spec, host=SessionHost(hooks=hooks))
    with anyio.fail_after(60):
        async with url_of(server) as url, sdk_client(url, era) as client, anyio.create_task_group() as group:
            results = await calls_that_arrive(client, group, "a")
            group.start_soon(client.call_tool, "fail", {})
            await client.list_tools(cache_mode="refresh")
            results |= await calls_that_arrive(client, group, "b")
            gates.open("a", "b")
            await gates.reached("b")
    assert gates.began == ["a", "b"]


@pytest.mark.anyio
@in_both_eras
async def test_a_tool_that_comes_while_a_call_runs_can_be_called_beside_it(era: str, tmp_path: Path) -> None:
    gates = Gates()

    @tool(read_only=True, concurrency_safe=True)
    async def look(name: str) -> str:
        """Looks at something."""
        await gates.wait_at(name)
        return name

    @tool(read_only=True, concurrency_safe=True)
    async def late() -> str:
        """Comes later."""
        return "here"

    server = McpServer(tools=[look], cwd=tmp_path)
    with anyio.fail_after(60):
        async with url_of(server) as url, sdk_client(url, era) as client, anyio.create_task_group() as group:
            await calls_that_arrive(client, group, "a", tool="look")
            await gates.reached("a")
            server.add_tool(late)
            assert text_of(await client.call_tool("late")) == "here"
            gates.open("a")


@pytest.mark.anyio
@in_both_eras
async def test_a_client_waits_for_another_only_where_both_name_the_same_file(era: str, tmp_path: Path) -> None:
    gates = Gates()
    tools = (undeclared(gates), GatedWrite(gates, "notes.txt"))
    allowed = SettingsFlags(sources=(), allowed=("change", "GatedWrite"))
    server = McpServer.from_spec(
        spec_in(tmp_path, tools=ToolOptions(tools, ()), flags=allowed),
        host=SessionHost(gate=CarefulGate(trusting=True)),
    )
    with anyio.fail_after(60):
        async with (
            url_of(server, TOKENS) as url,
            sdk_client(url, era, TOKENS["ann"]) as anns,
            sdk_client(url, era, TOKENS["ben"]) as bens,
        ):
            async with anyio.create_task_group() as group:
                await calls_that_arrive(anns, group, "ann-1")
                await calls_that_arrive(bens, group, "ben-1")
                await gates.reached("ann-1")
                await gates.reached("ben-1")
                gates.open("ann-1", "ben-1")
            async with anyio.create_task_group() as group:
                await calls_that_arrive(anns, group, "ann-2", tool="GatedWrite")
                await gates.reached("ann-2")
                await calls_that_arrive(bens, group, "ben-2", tool="GatedWrite")
                assert "ben-2" not in gates.began
                gates.open("ann-2", "ben-2")
    assert gates.began == ["ann-1", "ben-1", "ann-2", "ben-2"]


@pytest.mark.anyio
async def test_a_server_that_ends_stops_the_calls_that_run_and_those_that_wait(tmp_path: Path) -> None:
    gates = Gates()
    server = McpServer(tools=[undeclared(gates)], allow=["change"], cwd=tmp_path)
    answers: list[Message] = []
    with anyio.fail_after(60):
        service = McpService(server)
        connection = LineConnection(service, answers.append)
        greeting = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        send(connection, 0, "initialize", greeting)
        for number, name in enumerate("ab", 1):
            send(connection, number, "tools/call", {"name": "change", "arguments": {"name": name}})
        await connection.finish(0)
        while not answers:
            await asyncio.sleep(0)
        await gates.reached("a")

        await connection.aclose()
        await service.aclose()

    assert [answer["id"] for answer in answers] == [0]
    assert gates.began == ["a"]


LOGGING = '''
from pathlib import Path

from handrail import tool
from handrail.gateway import current_client


@tool
async def change(name: str) -> str:
    """Changes something."""
    with Path("log").open("a") as log:
        print(name, "begins", file=log, flush=True)
        await current_client().elicit(name, {"ok": {"type": "boolean"}}, key="ok")
        print(name, "ends", file=log, flush=True)
    return name
'''


@pytest.mark.anyio
@pytest.mark.proves("R4")
@in_both_eras
async def test_parallel_calls_of_a_client_that_started_us_run_one_by_one(era: str, tmp_path: Path) -> None:
    (tmp_path / "logging_tools.py").write_text(LOGGING)
    flags = ["-m", "handrail", "mcp", "serve", "--tools", "logging_tools", "--allowedTools", "change"]
    env = {**os.environ, "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    command = StdioServerParameters(command=sys.executable, args=flags, env=env, cwd=tmp_path)
    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:

            async def answer(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
                if params.message == "a":  # the second call comes while the first one waits for the person
                    group.start_soon(client.call_tool, "change", {"name": "b"})
                    await client.list_tools(cache_mode="refresh")
                    await client.list_tools(cache_mode="refresh")
                return types.ElicitResult(action="accept", content={"ok": True})

            async with Client(command, mode=era, elicitation_callback=answer) as client:
                await client.call_tool("change", {"name": "a"})
                await client.call_tool("change", {"name": "c"})
    log = (tmp_path / "log").read_text().split("\n")
    assert log == ["a begins", "a ends", "b begins", "b ends", "c begins", "c ends", ""]


# Random programs of calls, each sent as a line


def send(connection: LineConnection, number: int, method: str, params: dict[str, Any]) -> None:
    connection.take(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())


class LineClient:
    """A client that sends lines, and keeps the answers by the numbers of the requests."""

    def __init__(self, world: World) -> None:
        tools = tuple(Do(world, name) for name in ("Do", "Shell", "Timed", "Narrow"))
        gate = CarefulGate(trusting=True)
        spec = spec_in(Path("/"), tools=ToolOptions(tools, ()), flags=SettingsFlags(sources=()))
        self._service = McpService(McpServer.from_spec(spec, env={}, host=SessionHost(gate=gate)))
        self._connection = LineConnection(self._service, self._take)
        self._waiting: dict[int, asyncio.Future[Message]] = {}

    def _take(self, message: Message) -> None:
        self._waiting[message["id"]].set_result(message)

    def request(self, number: int, method: str, params: dict[str, Any]) -> "asyncio.Future[Message]":
        self._waiting[number] = asyncio.get_running_loop().create_future()
        send(self._connection, number, method, params)
        return self._waiting[number]

    def call(self, step: Step) -> "asyncio.Future[Message]":
        return self.request(step.key, "tools/call", {"name": step.tool, "arguments": {"key": step.key}})

    def cancel(self, step: Step) -> None:
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": step.key}}
        self._connection.take(json.dumps(message).encode())

    async def greet(self) -> None:
        await self.request(-1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})

    async def aclose(self) -> None:
        await self._connection.aclose()
        await self._service.aclose()


def calls_only(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(replace(step, kind="call", chdir="") for step in steps)


async def sent(steps: tuple[Step, ...], *, one_by_one: bool, cancelled: frozenset[int]) -> tuple[list[Any], World]:
    world = World({step.key: step for step in steps})
    client = LineClient(world)
    await client.greet()
    answers: list[asyncio.Future[Message]] = []
    for step in steps:
        await asyncio.sleep(step.gap)
        answers.append(client.call(step))
        if one_by_one:
            await answers[-1]
    for step in steps:
        if step.key in cancelled:
            client.cancel(step)
            await asyncio.sleep(step.gap)
    asked_for = [answer for step, answer in zip(steps, answers, strict=True) if step.key not in cancelled]
    results = [(await answer)["result"]["content"] for answer in asked_for]
    await client.aclose()
    return results, world


@pytest.mark.proves("R4")
@given(programs(most=6).map(calls_only), st.sampled_from([1, 2, 1_000]))
def test_results_and_effects_are_those_of_waiting_for_each_answer(steps: tuple[Step, ...], most: int) -> None:
    expected, serial_world = run_virtual(sent(steps, one_by_one=True, cancelled=frozenset()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlapping_calls, "MAX_CALLS", most)
        results, world = run_virtual(sent(steps, one_by_one=False, cancelled=frozenset()))

    assert results == expected
    assert world.leaves == serial_world.leaves
    assert world.overlaps == []


@pytest.mark.proves("R4", "R1")
@given(programs(most=6).map(calls_only), st.frozensets(st.integers(0, 5), min_size=1), st.sampled_from([1, 2, 1_000]))
def test_whichever_calls_a_client_cancels_the_others_are_answered_and_none_overlap_in_conflict(
    steps: tuple[Step, ...], cancelled: frozenset[int], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlapping_calls, "MAX_CALLS", most)
        _, world = run_virtual(sent(steps, one_by_one=False, cancelled=cancelled))

    assert world.overlaps == []
    assert world.active == {}
