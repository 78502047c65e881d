"""What works for the model beside the built-in tools: servers, sub-agents, background tasks; and how it stops."""

import asyncio
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    HookMatcher,
    ResultMessage,
    TaskNotificationMessage,
    TaskProgressMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    tool,
)
from mcp.types import ToolAnnotations

from handrail.conversation.blocks import ToolUse
from handrail.testing.model_server import Reply
from tests.forked import reference_server
from tests.processes.seen import read_pipe
from tests.scenarios.sdk.driving import call, calls, end, only, results, say, system, texts, turn, world

pytestmark = pytest.mark.anyio

READS = ToolAnnotations(readOnlyHint=True)


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


async def test_tools_of_the_program_are_tools_of_the_model(tmp_path: Path) -> None:
    together = asyncio.Barrier(2)
    image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}

    @tool("add", "Adds two numbers", {"a": int, "b": int})
    async def add(args: dict[str, Any]) -> dict[str, Any]:
        return text(str(args["a"] + args["b"]))

    @tool("fail", "Always fails", {})
    async def fail(_args: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("broken pencil")

    @tool("meet", "Waits for another call", {"n": int}, annotations=READS)
    async def meet(args: dict[str, Any]) -> dict[str, Any]:
        await together.wait()
        return {"content": [{"type": "text", "text": f"met {args['n']}"}, image]}

    server = create_sdk_mcp_server("own", tools=[add, fail, meet])
    names = [f"mcp__own__{name}" for name in ("add", "fail", "meet")]
    replies = (
        calls(call(0, "ToolSearch", query="select:" + ",".join(names))),
        calls(call(1, names[0], a=2, b=40), call(2, names[1])),
        calls(call(3, names[2], n=1), call(4, names[2], n=2)),
        calls(call(5, names[0], a="two", b=1)),
        say("Done."),
        calls(call(6, names[0], a=1, b=1)),
        say("Gone."),
    )
    options: dict[str, Any] = {"mcp_servers": {"own": server}, "allowed_tools": ["mcp__own"]}
    async with world(tmp_path, *replies) as w, w.client(**options) as client:
        status = (await client.get_mcp_status())["mcpServers"]
        first = await turn(client, "go")
        await client.toggle_mcp_server("own", enabled=False)
        off = (await client.get_mcp_status())["mcpServers"][0]["status"]
        second = await turn(client, "again")
        await client.toggle_mcp_server("own", enabled=True)
        await client.reconnect_mcp_server("own")
        on = (await client.get_mcp_status())["mcpServers"][0]["status"]

        assert [(each["name"], each["status"]) for each in status] == [("own", "connected")]
        assert [each["name"] for each in status[0]["tools"]] == ["add", "fail", "meet"]
        assert status[0]["tools"][2]["annotations"] == {"readOnly": True}
        assert {*names} <= {each["name"] for each in w.server.requests[1].body["tools"]}
    got = results(first)
    assert got["toolu_1"] == ("42", False)
    assert "broken pencil" in got["toolu_2"][0]
    assert got["toolu_2"][1]
    assert (got["toolu_3"][0].strip(), got["toolu_4"][0].strip()) == ("met 1", "met 2")
    assert got["toolu_5"][1]  # the schema is checked before the program is asked
    assert system(first, "init")[0]["mcp_servers"] == [{"name": "own", "status": "connected"}]
    assert (off, on) == ("disabled", "connected")
    assert results(second)["toolu_6"][1]
    assert system(second, "init")[0]["mcp_servers"] == [{"name": "own", "status": "disabled"}]


async def test_a_tool_of_the_program_may_decide_about_calls(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    @tool("decide", "Decides", {"tool_name": str, "input": dict, "tool_use_id": str})
    async def decide(args: dict[str, Any]) -> dict[str, Any]:
        asked.append(args)
        if "bad" in args["input"]["command"]:
            return text('{"behavior": "deny", "message": "a bad name"}')
        return text('{"behavior": "allow", "updatedInput": {"command": "touch better"}}')

    server = create_sdk_mcp_server("auth", tools=[decide])
    replies = (calls(call(1, "Bash", command="touch good")), calls(call(2, "Bash", command="touch bad")), say("Done."))
    async with world(tmp_path, *replies) as w:
        messages = await w.ask(
            "go", mcp_servers={"auth": server}, permission_prompt_tool_name="mcp__auth__decide", strict_mcp_config=True
        )
        assert {path.name for path in w.cwd.iterdir()} == {"better"}
    assert "a bad name" in results(messages)["toolu_2"][0]
    assert [each["tool_use_id"] for each in asked] == ["toolu_1", "toolu_2"]


async def test_servers_that_are_processes_work_and_broken_ones_are_reported(tmp_path: Path) -> None:
    servers: dict[str, Any] = {
        "ref": reference_server(),
        "none": {"command": str(tmp_path / "nothing-here")},
    }
    patient = {"HANDRAIL_MCP_WAIT_MS": "60000"}
    async with world(tmp_path, say("Done.")) as w, w.client(mcp_servers=servers, env=patient) as client:
        status = {each["name"]: each for each in (await client.get_mcp_status())["mcpServers"]}
        messages = await turn(client, "go")

    assert status["ref"]["status"] == "connected"
    assert status["ref"]["serverInfo"]["name"]
    assert (status["none"]["status"], "nothing-here" in status["none"]["error"]) == ("failed", True)
    assert end(messages).result == "Done."


REVIEW: dict[str, Any] = {"description": "Look at it", "prompt": "Review a.txt", "subagent_type": "reviewer"}
REVIEWER = AgentDefinition(description="Reviews", prompt="You review code.", tools=["Read", "Glob"])


@pytest.mark.parametrize("whole", [False, True], ids=["what it does", "also what it says"])
async def test_a_sub_agent_works_and_its_lines_name_the_call_it_works_for(tmp_path: Path, whole: bool) -> None:
    told: list[str] = []
    written: list[str] = []

    async def hook(given: Any, _id: Any, _context: Any) -> Any:
        told.append(f"{given['hook_event_name']} {given.get('agent_type')}")
        if path := given.get("agent_transcript_path"):
            written.append(await anyio.Path(path).read_text())
        return {}

    hooks = {event: [HookMatcher(hooks=[hook])] for event in ("SubagentStart", "PreToolUse", "SubagentStop")}
    replies = (
        calls(call(1, "Agent", **REVIEW, run_in_background=False)),
        Reply((*say("I read it.").content, call(2, "Read", file_path="a.txt"))),
        say("It is fine."),
        say("The reviewer is content."),
    )
    async with world(tmp_path, *replies) as w:
        (w.cwd / "a.txt").write_text("words\n")
        messages = await w.ask("go", agents={"reviewer": REVIEWER}, hooks=hooks, forward_subagent_text=whole)
        inner = w.server.requests[1].body

        assert "You review code." in str(inner["system"])
        assert {each["name"] for each in inner["tools"]} == {"Read", "Glob"}
        assert "It is fine." in w.said(3)
    nested = [m for m in only(messages, AssistantMessage) if m.parent_tool_use_id == "toolu_1"]
    assert [b.name for m in nested for b in m.content if isinstance(b, ToolUseBlock)] == ["Read"]
    assert texts(nested) == (["I read it.", "It is fine."] if whole else [])
    assert [m.parent_tool_use_id for m in only(messages, UserMessage)] == ["toolu_1", None]
    [started], [progress] = only(messages, TaskStartedMessage), only(messages, TaskProgressMessage)
    [updated], [over] = only(messages, TaskUpdatedMessage), only(messages, TaskNotificationMessage)
    assert (started.task_type, started.tool_use_id, started.description) == ("local_agent", "toolu_1", "Look at it")
    assert (progress.last_tool_name, progress.usage["tool_uses"]) == ("Read", 1)
    assert {started.task_id, progress.task_id, updated.task_id, over.task_id} == {started.task_id}
    assert (updated.status, over.status, over.usage is not None) == ("completed", "completed", True)
    assert told == [
        "PreToolUse None", "SubagentStart reviewer", "PreToolUse reviewer", "SubagentStop reviewer",
    ]  # fmt: skip
    usage, of_models = end(messages).usage, end(messages).model_usage
    assert usage == {
        "input_tokens": 20, "output_tokens": 10, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
    }  # fmt: skip  # of the main agent alone
    assert of_models is not None
    assert sum(used["inputTokens"] for used in of_models.values()) == 40
    assert "reviewer" in system(messages, "init")[0]["agents"]
    [kept] = written
    assert "It is fine." in kept


async def test_background_commands_are_told_as_tasks_and_can_be_stopped(tmp_path: Path) -> None:
    def start(number: int, command: str) -> Reply:
        return calls(call(number, "Bash", command=command, run_in_background=True, description=f"job {number}"))

    replies = (start(1, "echo hi"), say("A."), start(2, "sleep 600"), say("B."), say("C."), say("D."), say("E."))
    async with world(tmp_path, *replies) as w, w.client(allowed_tools=["Bash"]) as client:
        messages = client.receive_messages()

        async def until(kind: type[Any]) -> list[Any]:
            seen: list[Any] = []
            async for message in messages:
                seen.append(message)
                if isinstance(message, kind):
                    break
            return seen

        await client.query("one")
        [started] = only(await until(TaskStartedMessage), TaskStartedMessage)
        [over] = only(await until(TaskNotificationMessage), TaskNotificationMessage)
        await client.query("two")
        [second] = only(await until(TaskStartedMessage), TaskStartedMessage)
        await client.stop_task(second.task_id)
        [stopped] = only(await until(TaskNotificationMessage), TaskNotificationMessage)

    assert (started.task_type, started.description, started.tool_use_id) == ("local_bash", "job 1", "toolu_1")
    assert (over.task_id, over.status) == (started.task_id, "completed")
    assert Path(over.output_file).read_text() == "hi\n"
    assert (stopped.task_id, stopped.status) == (second.task_id, "stopped")


async def test_an_interrupt_ends_a_command_and_all_it_started(tmp_path: Path) -> None:
    command = "sleep 600 & echo $! > told; wait"
    async with world(tmp_path, calls(call(1, "Bash", command=command)), say("Back.")) as w:
        async with w.client(allowed_tools=["Bash"]) as client:
            os.mkfifo(w.cwd / "told")
            await client.query("go")
            pid = int(await anyio.to_thread.run_sync(read_pipe, w.cwd / "told"))
            await client.interrupt()
            stopped = [message async for message in client.receive_response()]
            after = await turn(client, "go on")

        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert (end(stopped).subtype, end(stopped).terminal_reason) == ("error_during_execution", "aborted_tools")
    assert results(stopped)["toolu_1"][1]
    assert end(after).result == "Back."


async def test_interrupts_while_the_model_speaks_a_question_is_open_or_nothing_goes_on(tmp_path: Path) -> None:
    waiting, left = anyio.Event(), anyio.Event()

    async def nobody_answers(_name: str, _given: Any, _context: Any) -> Any:
        waiting.set()
        try:
            await anyio.sleep_forever()
        finally:
            left.set()  # the question was taken back

    stalled = say("a long story", piece=2, stall_after=3)
    replies = (stalled, calls(call(1, "Bash", command="touch x")), say("Fine."))
    async with world(tmp_path, *replies) as w, w.client(can_use_tool=nobody_answers) as client:
        await client.interrupt()  # nothing goes on, and that is no problem
        await client.query("one")
        await w.server.stalled.wait()
        await client.interrupt()
        first = [message async for message in client.receive_response()]
        await client.query("two")
        await waiting.wait()
        await client.interrupt()
        second = [message async for message in client.receive_response()]
        await left.wait()
        third = await turn(client, "three")

        assert not (w.cwd / "x").exists()
    assert [end(each).terminal_reason for each in (first, second, third)] == [
        "aborted_streaming", "aborted_tools", "completed",
    ]  # fmt: skip


async def test_agents_in_the_background_are_tasks_that_can_be_stopped_and_their_end_begins_a_turn(
    tmp_path: Path,
) -> None:
    stopped: list[str] = []

    async def hook(given: Any, _id: Any, _context: Any) -> Any:
        stopped.append(given["agent_type"])
        return {}

    look: dict[str, Any] = {"description": "Look", "subagent_type": "reviewer"}
    both = (call(1, "Agent", prompt="quick task", **look), call(2, "Agent", prompt="slow task", **look))
    go = asyncio.Event()
    replies = (
        Reply(both, to="zeppelin"),
        say("Both began.", to="zeppelin"),
        say("All is fine.", to="quick task", gates={0: go}),
        say("a long story", to="slow task", piece=2, stall_after=3),
        say("I heard of the first.", to="zeppelin"),
        say("I heard of the second.", to="zeppelin"),
    )
    options: dict[str, Any] = {
        "agents": {"reviewer": REVIEWER},
        "hooks": {"SubagentStop": [HookMatcher(hooks=[hook])]},
    }
    async with world(tmp_path, *replies) as w, w.client(**options) as client:
        await client.query("zeppelin")
        seen: list[Any] = []
        started: dict[Any, str] = {}
        asked_to_stop = False
        async for message in client.receive_messages():
            seen.append(message)
            started |= {each.tool_use_id: each.task_id for each in only(seen, TaskStartedMessage)}
            if only(seen, ResultMessage):
                go.set()
            if "I heard of the first." in texts(seen) and not asked_to_stop:
                asked_to_stop = True
                await w.server.stalled.wait()
                await client.stop_task(started["toolu_2"])
            if [each.result for each in only(seen, ResultMessage)][-1:] == ["I heard of the second."]:
                break
    over = {each.task_id: each.status for each in only(seen, TaskNotificationMessage)}
    assert over == {started["toolu_1"]: "completed", started["toolu_2"]: "stopped"}
    assert [each.result for each in only(seen, ResultMessage)] == [
        "Both began.", "I heard of the first.", "I heard of the second.",
    ]  # fmt: skip
    assert stopped == ["reviewer"]


async def test_a_member_of_a_team_is_a_task_each_time_that_it_works(tmp_path: Path) -> None:
    member: dict[str, Any] = {"description": "Look", "prompt": "member task", "subagent_type": "reviewer"}
    replies = (
        Reply((call(1, "TeamCreate", team_name="crew"),), to="zeppelin"),
        Reply((ToolUse("toolu_2", "Agent", {**member, "name": "one", "team_name": "crew"}),), to="zeppelin"),
        say("Started.", to="zeppelin"),
        say("First look.", to="member task"),
        Reply((call(3, "SendMessage", to="one", message="look again"),), to="zeppelin"),
        say("I wrote to it.", to="zeppelin"),
        say("Second look.", to="member task"),
        say("Heard.", to="zeppelin"),
    )
    async with world(tmp_path, *replies) as w, w.client(agents={"reviewer": REVIEWER}) as client:
        await client.query("zeppelin")
        seen: list[Any] = []
        async for message in client.receive_messages():
            seen.append(message)
            if [each.result for each in only(seen, ResultMessage)][-1:] == ["Heard."]:
                break
        asked = [w.said(number) for number in range(len(w.server.requests))]
    started, over = only(seen, TaskStartedMessage), only(seen, TaskNotificationMessage)
    assert len(started) == len(over) == 2
    assert {each.task_id for each in started} | {each.task_id for each in over} == {started[0].task_id}
    assert {each.tool_use_id for each in started} == {"toolu_2"}
    assert [each.status for each in over] == ["completed", "completed"]
    assert [each.result for each in only(seen, ResultMessage)] == ["Started.", "I wrote to it.", "Heard."]
    assert any("look again" in each and "from=" in each for each in asked)
    assert any("is idle; SendMessage wakes it" in each for each in asked)
