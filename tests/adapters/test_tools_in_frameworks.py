"""handrail's tools in the agent loops of other frameworks: governed as in a session of our own."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Allow, Deny, Image, Output, Text, ToolError, tool
from handrail.adapters import ToolSession
from tests.adapters.frameworks import FRAMEWORKS, Calls, Framework, Told

pytestmark = pytest.mark.anyio

each_framework = pytest.mark.parametrize("framework", FRAMEWORKS, ids=str)
KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


@tool(read_only=True)
async def fail(reason: str) -> str:
    """Fail."""
    raise ToolError(f"There is no {reason}.")


@tool
async def deploy(where: str) -> str:
    """Deploy the program."""
    return f"deployed to {where}"


@tool(read_only=True)
async def show(config: str, self: str, callbacks: int) -> str:
    """Has parameters with the names of those that frameworks have themselves."""
    return f"{config} {self} {callbacks}"


def refuse(*_question: Any) -> Deny:
    return Deny("not on a Friday")


async def consent(*_question: Any) -> Allow:
    return Allow()


def in_folder(folder: Path, **options: Any) -> ToolSession:
    (folder / "notes.txt").write_text("remember the milk\n", "utf-8")
    (folder / "keys.txt").write_text(f"ANTHROPIC_API_KEY={KEY}\n", "utf-8")
    return ToolSession([fail, deploy, show], cwd=folder, **options)


@pytest.mark.proves("R3", "R12")
@each_framework
@pytest.mark.parametrize(
    ("call", "options", "text", "is_error"),
    [
        pytest.param(("Read", {"file_path": "notes.txt"}), {}, "remember the milk", False, id="allowed"),
        pytest.param(
            ("Read", {"file_path": "notes.txt"}),
            {"deny": ["Read(notes.txt)"]},
            "was refused: the rule Read(notes.txt) matches",
            True,
            id="denied by a rule",
        ),
        pytest.param(("deploy", {"where": "prod"}), {}, "there is no one to ask", True, id="asked, and no one there"),
        pytest.param(
            ("deploy", {"where": "prod"}), {"can_use_tool": refuse}, "not on a Friday", True, id="asked and refused"
        ),
        pytest.param(
            ("deploy", {"where": "prod"}), {"can_use_tool": consent}, "deployed to prod", False, id="asked and allowed"
        ),
        pytest.param(
            ("deploy", {"where": "prod"}), {"allow": ["deploy"]}, "deployed to prod", False, id="allowed by a rule"
        ),
        pytest.param(("fail", {"reason": "paper"}), {}, "There is no paper.", True, id="a tool fails"),
        pytest.param(("Read", {}), {}, "The required field 'file_path' is missing.", True, id="wrong input"),
        pytest.param(("Read", {"file_path": "keys.txt"}), {}, "[redacted:", False, id="a secret in a result"),
        pytest.param(
            ("Edit", {"file_path": "notes.txt", "old_string": "milk", "new_string": "tea"}),
            {"mode": "acceptEdits"},
            "read",
            True,
            id="a change of a file that was not read",
        ),
        pytest.param(("show", {"config": "a", "self": "b", "callbacks": 3}), {}, "a b 3", False, id="names that clash"),
    ],
)
async def test_a_call_ends_as_in_a_session_of_ours_and_the_run_goes_on(
    framework: Framework, call: Any, options: dict[str, Any], text: str, is_error: bool, tmp_path: Path
) -> None:
    async with in_folder(tmp_path, **options) as session:
        [told] = await framework.run(session, [call])

    assert text in told.text
    assert told.is_error == (is_error and framework.marks_errors)
    assert KEY not in told.text
    assert "tool_use_error" not in told.text


@pytest.mark.parametrize("framework", FRAMEWORKS[1:], ids=str)  # LangChain itself refuses such an answer
@pytest.mark.parametrize("arguments", ["[1]", '"notes.txt"', '{"file_path": '])
async def test_arguments_that_are_no_object_are_told_to_the_model_and_the_run_goes_on(
    framework: Framework, arguments: str, tmp_path: Path
) -> None:
    async with in_folder(tmp_path) as session:
        [told] = await framework.run(session, [("Read", arguments)])

    assert "object" in str(told.content) or "JSON" in str(told.content)


@pytest.mark.proves("R4")
@each_framework
async def test_calls_of_one_answer_have_the_effect_of_running_them_in_order(
    framework: Framework, tmp_path: Path
) -> None:
    async with in_folder(tmp_path, mode="acceptEdits") as session:
        read, *edits = await framework.run(
            session,
            [
                ("Read", {"file_path": "notes.txt"}),
                ("Edit", {"file_path": "notes.txt", "old_string": "milk", "new_string": "tea"}),
                ("Edit", {"file_path": "notes.txt", "old_string": "tea", "new_string": "coffee"}),
                ("Write", {"file_path": "new.txt", "content": "new"}),
            ],
        )

    assert "milk" in read.text
    assert [each.is_error for each in edits] == [False, False, False]
    assert (tmp_path / "notes.txt").read_text("utf-8") == "remember the coffee\n"
    assert (tmp_path / "new.txt").read_text("utf-8") == "new"


@pytest.mark.proves("R4")
@each_framework
async def test_calls_in_conflict_wait_and_the_others_run_beside_each_other(
    framework: Framework, tmp_path: Path
) -> None:
    log: list[str] = []
    both = asyncio.Barrier(2)

    @tool(writes="path")
    async def append(path: str, text: str) -> str:
        """Append a text to a file, slowly."""
        log.append(f"begin {text}")
        await asyncio.sleep(0)
        if text in ("one", "other"):
            await both.wait()
        log.append(f"end {text}")
        return text

    session = ToolSession([append], cwd=tmp_path, builtin_tools=False, allow=["append"])
    with anyio.fail_after(30):
        async with session:
            told: list[Told] = await framework.run(
                session,
                [
                    ("append", {"path": "a", "text": "one"}),
                    ("append", {"path": "a", "text": "two"}),
                    ("append", {"path": "b", "text": "other"}),
                ],
            )

    assert [each.text for each in told] == ["one", "two", "other"]
    assert log.index("begin two") > log.index("end one")


@each_framework
async def test_cancelling_the_agent_stops_its_call(framework: Framework, tmp_path: Path) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        began.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()
        return ""

    with anyio.fail_after(30):
        async with ToolSession([wait], cwd=tmp_path, allow=["wait"]) as session:
            running = asyncio.create_task(framework.run(session, [("wait", {})]))
            await began.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await ended.wait()

            told = await framework.run(session, [("Glob", {"pattern": "*"})])
    assert not told[0].is_error


@each_framework
async def test_a_call_after_the_end_of_the_session_is_a_mistake_of_the_program(
    framework: Framework, tmp_path: Path
) -> None:
    async with in_folder(tmp_path) as session:
        pass

    with pytest.raises(Exception, match="Glob was called after its ToolSession was closed"):
        await framework.run(session, [("Glob", {"pattern": "*"})])


@pytest.fixture
def blocking_loop() -> Iterator[None]:
    """The loop that blocking methods of frameworks use; left to themselves they make one that they never close."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@each_framework
@pytest.mark.usefixtures("blocking_loop")
def test_a_program_without_an_event_loop_uses_the_session_with_a_plain_with(
    framework: Framework, tmp_path: Path
) -> None:
    with in_folder(tmp_path, allow=["Bash(cat *)"]) as session:
        told = framework.run_sync(session, [("Bash", {"command": "cat notes.txt"}), ("deploy", {"where": "prod"})])

    assert "remember the milk" in told[0].text
    assert "there is no one to ask" in told[1].text


async def test_agents_of_three_frameworks_work_in_one_process_at_the_same_time(tmp_path: Path) -> None:
    calls: Calls = [("Read", {"file_path": "notes.txt"}), ("deploy", {"where": "prod"})]

    async def run(framework: Framework) -> list[Told]:
        folder = tmp_path / framework.name
        folder.mkdir()
        async with in_folder(folder) as session:
            found: list[Told] = await framework.run(session, calls)
            return found

    for read, refused in await asyncio.gather(*map(run, FRAMEWORKS)):
        assert "remember the milk" in read.text
        assert "was refused" in refused.text


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@each_framework
async def test_a_picture_reaches_the_framework_as_a_picture(framework: Framework, tmp_path: Path) -> None:
    @tool(read_only=True)
    async def look() -> Output:
        """Look out of the window."""
        return Output(blocks=(Text("the view"), Image(PNG, "image/png")))

    async with ToolSession([look], cwd=tmp_path, builtin_tools=False, allow=["look"]) as session:
        [told] = await framework.run(session, [("look", {})])

    as_text = str([getattr(part, "base64", part) for part in told.content])
    assert "the view" in as_text
    assert PNG in as_text


async def run_hooks(framework: Framework, folder: Path, hook: Callable[..., Awaitable[Any]]) -> Told:
    async with in_folder(folder, hooks={"PreToolUse": hook}, state_dir=folder / "state") as session:
        [told] = await framework.run(session, [("Read", {"file_path": "notes.txt"})])
    found: Told = told
    return found


@each_framework
async def test_hooks_are_asked_and_every_decision_is_in_the_audit_log(framework: Framework, tmp_path: Path) -> None:
    async def veto(fields: Any, *_rest: object) -> Any:
        decision = {"permissionDecision": "deny", "permissionDecisionReason": f"no {fields['tool_name']} today"}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}

    told = await run_hooks(framework, tmp_path, veto)

    assert "no Read today" in told.text
    logged = "".join(path.read_text("utf-8") for path in (tmp_path / "state").rglob("*.jsonl"))
    assert "no Read today" in logged
