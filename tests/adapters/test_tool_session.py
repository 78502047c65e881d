"""A session of tools without a model: when it can be used, from where, and what is said when it cannot."""

import asyncio
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from handrail import HandrailError, tool
from handrail.adapters import ToolSession, tool_session
from handrail.tools.outcome import Status
from tests.forked import reference_server

NAMED = {"pattern": "*.txt"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("a", "utf-8")
    return tmp_path


@pytest.mark.anyio
async def test_the_usual_tools_need_no_model(folder: Path) -> None:
    async with ToolSession(cwd=folder) as session:
        names = [each.name for each in session.definitions]

    assert names == sorted(tool_session.USUAL_TOOLS)


@pytest.mark.anyio
async def test_a_tool_that_rules_deny_as_a_whole_is_not_offered(folder: Path) -> None:
    async with ToolSession(cwd=folder, deny=["Bash"]) as session:
        assert "Bash" not in [each.name for each in session.definitions]
        refused = await session.call("Bash", {"command": "ls"})

    assert refused.result.is_error


@pytest.mark.anyio
async def test_tools_of_mcp_servers_are_offered_once_the_session_is_open(folder: Path) -> None:
    servers = {"ref": reference_server()}
    session = ToolSession(cwd=folder, builtin_tools=False, mcp_servers=servers, allow=["mcp__ref__add"])
    async with session:
        assert "mcp__ref__add" in [each.name for each in session.definitions]
        outcome = await session.call("mcp__ref__add", {"a": 1, "b": 2})

    assert "3" in outcome.result.text


@pytest.mark.anyio
async def test_what_a_call_has_read_the_next_may_change_and_undo_knows_it(folder: Path) -> None:
    edit = {"file_path": "a.txt", "old_string": "a", "new_string": "b"}
    async with ToolSession(cwd=folder, mode="acceptEdits") as session:
        unread = await session.call("Edit", edit)
        await session.call("Read", {"file_path": "a.txt"})
        changed = await session.call("Edit", edit)

    assert (unread.status, changed.status) == (Status.ERROR, Status.OK)
    assert (folder / "a.txt").read_text("utf-8") == "b"


@pytest.mark.anyio
async def test_a_deny_rule_that_is_written_while_the_session_is_open_counts_at_the_next_call(folder: Path) -> None:
    settings = folder / ".handrail" / "settings.json"
    settings.parent.mkdir()
    async with ToolSession(cwd=folder, settings=True, state_dir=folder / "state") as session:
        before = await session.call("Bash", {"command": "echo hi"})
        settings.write_text('{"permissions": {"deny": ["Bash(echo *)"]}}', "utf-8")
        after = await session.call("Bash", {"command": "echo hi"})

    assert (before.status, after.status) == (Status.OK, Status.DENIED)


@pytest.mark.anyio
async def test_calls_that_run_when_the_session_is_closed_are_stopped(folder: Path) -> None:
    began = asyncio.Event()

    @tool(read_only=True)
    async def wait() -> str:
        """Wait."""
        began.set()
        await asyncio.get_running_loop().create_future()
        return ""

    async with ToolSession([wait], cwd=folder) as session:
        running = asyncio.create_task(session.call("wait", {}))
        await began.wait()

    assert (await running).status is Status.CANCELLED


@pytest.mark.anyio
async def test_a_session_is_opened_before_it_is_used_and_only_once(folder: Path) -> None:
    session = ToolSession(cwd=folder)
    with pytest.raises(HandrailError, match="Glob was called before its ToolSession was opened"):
        await session.call("Glob", NAMED)
    with pytest.raises(HandrailError, match="Use `async with`"), session:
        pass

    async with session:
        assert (await session.call("Glob", NAMED)).result.text
    with pytest.raises(HandrailError, match="opened before"):
        await session.__aenter__()


# Threads and loops


@pytest.mark.anyio
async def test_calls_come_from_other_threads_and_from_loops_of_other_threads(folder: Path) -> None:
    async with ToolSession(cwd=folder) as session:
        blocking = await asyncio.to_thread(session.call_sync, "Glob", NAMED)
        other_loop = await asyncio.to_thread(lambda: asyncio.run(session.call("Glob", NAMED)))

    assert "a.txt" in blocking.result.text
    assert "a.txt" in other_loop.result.text


@pytest.mark.anyio
async def test_a_blocking_call_that_its_own_loop_waits_for_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_session, "LOOP_PATIENCE", 0.01)
    problems: list[str] = []

    def blocking(session: ToolSession) -> None:
        try:
            session.call_sync("Glob", NAMED)
        except HandrailError as error:
            problems.append(str(error))

    async with ToolSession(cwd=folder) as session:
        blocking(session)
        thread = threading.Thread(target=blocking, args=(session,))
        thread.start()
        thread.join()  # as a framework does that waits for its own threads
        assert (await session.call("Glob", NAMED)).status is Status.OK

    assert len(problems) == 2
    assert all("Run the agent with its async methods, or open the session with `with`" in each for each in problems)


def test_cancelling_a_call_from_another_loop_stops_it(folder: Path) -> None:
    began, ended = threading.Event(), threading.Event()

    @tool(read_only=True)
    async def wait() -> str:
        """Wait."""
        began.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()
        return ""

    async def cancel(session: ToolSession) -> None:
        running = asyncio.create_task(session.call("wait", {}))
        assert await asyncio.to_thread(began.wait, 10)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    with ToolSession([wait], cwd=folder) as session:
        asyncio.run(cancel(session))
        assert ended.wait(10)


def test_a_thread_that_waits_for_a_call_goes_on_when_the_session_is_closed(folder: Path) -> None:
    began = threading.Event()
    statuses: list[Status] = []

    @tool(read_only=True)
    async def wait() -> str:
        """Wait."""
        began.set()
        await asyncio.get_running_loop().create_future()
        return ""

    with ToolSession([wait], cwd=folder) as session:
        thread = threading.Thread(target=lambda: statuses.append(session.call_sync("wait", {}).status))
        thread.start()
        assert began.wait(10)
    thread.join(10)

    assert statuses == [Status.CANCELLED]


def test_a_call_that_comes_in_the_moment_of_closing_is_told_so(folder: Path) -> None:
    submitted, problems = threading.Event(), list[str]()

    class Loop(asyncio.SelectorEventLoop):
        def call_soon_threadsafe(self, *args: Any, **options: Any) -> asyncio.Handle:  # type: ignore[override]
            handle = super().call_soon_threadsafe(*args, **options)
            submitted.set()
            return handle

    def call(session: ToolSession) -> None:
        try:
            session.call_sync("Glob", NAMED)
        except HandrailError as error:
            problems.append(str(error))

    async def close() -> threading.Thread:
        async with ToolSession(cwd=folder) as session:
            submitted.clear()
            thread = threading.Thread(target=call, args=[session], daemon=True)
            thread.start()
            assert submitted.wait(10)
        return thread

    loop = Loop()
    thread = loop.run_until_complete(close())
    loop.close()
    thread.join(5)

    assert problems == ["Glob was not run: its session was closed. Close the session after its calls."]


# What it is given, and what it imports


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param({"can_use_tool": "yes"}, "can_use_tool is 'yes'. Give a function", id="no function"),
        pytest.param({"allow": ["Bash("]}, "allow holds 'Bash('", id="a rule that is not understood"),
        pytest.param({"builtin_tools": ["Reed"]}, "There is no built-in tool 'Reed'", id="an unknown tool"),
    ],
)
def test_wrong_arguments_are_refused_at_once(arguments: dict[str, Any], problem: str, folder: Path) -> None:
    with pytest.raises(HandrailError) as raised:
        ToolSession(cwd=folder, **arguments)

    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("module", "framework", "package"),
    [
        ("langchain", "langchain_core.messages", "langchain-core"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai-slim"),
        ("openai_agents", "agents", "openai-agents"),
    ],
)
def test_an_adapter_without_its_framework_says_what_to_install(
    module: str, framework: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, framework, None)  # how Python marks what is not there
    monkeypatch.delitem(sys.modules, f"handrail.adapters.{module}", raising=False)

    with pytest.raises(ModuleNotFoundError, match=f"This adapter needs {package}>=.*: pip install '{package}>="):
        import_module(f"handrail.adapters.{module}")


def test_the_adapters_import_no_framework() -> None:
    program = (
        "import sys, handrail.adapters\n"
        "print(sorted({'agents', 'langchain_core', 'openai', 'pydantic_ai'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
