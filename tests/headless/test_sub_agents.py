"""What sub-agents say and use belongs to the session and to the bill, however they end."""

from pathlib import Path
from typing import Any

import pytest

from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text, ToolUse
from handrail.headless.engine import EngineOptions
from handrail.session.transcript import TranscriptOptions
from handrail.testing.model_server import Reply
from handrail.transcripts.log import read
from handrail.transcripts.rebuild import rebuild
from tests.headless.in_process import of, peer

pytestmark = pytest.mark.anyio

LOOKING = {"description": "Look", "prompt": "Look around", "subagent_type": "Explore"}
TASK = ToolUse("t1", "Agent", {**LOOKING, "run_in_background": False})
LOOK = Reply((Text("I look."), ToolUse("s1", "Glob", {"pattern": "*"})), input_tokens=100, output_tokens=20)


async def test_what_a_stopped_sub_agent_used_is_on_the_bill_and_what_it_said_is_kept(tmp_path: Path) -> None:
    stalled = Reply((Text("I see."), Text("Many things")), stall_after=5, input_tokens=1000)
    async with peer(tmp_path, [Reply((TASK,), input_tokens=10, output_tokens=2), LOOK, stalled]) as p:
        await p.ask("initialize", hooks=None, forwardSubagentText=True)
        p.prompt("go")
        while "I see." not in str(await p.until("assistant")):
            pass
        await p.ask("interrupt")
        end = (await p.until("result"))[-1]

    assert end["terminal_reason"] == "aborted_tools"
    assert end["usage"]["input_tokens"] == 10
    spent = end["modelUsage"].values()
    assert sum(each["inputTokens"] for each in spent) == 1110
    assert sum(each["outputTokens"] for each in spent) >= 22
    [file] = (tmp_path / "state" / "sessions").glob(f"*/{end['session_id']}/subagents/agent-*.jsonl")
    kept = rebuild(read(file))
    assert [type(each).__name__ for each in kept.messages][1:4] == ["UserMessage", "AssistantMessage", "UserMessage"]
    assert (kept.session_id, kept.problems) == (end["session_id"], ())
    assert file.stat().st_mode & 0o77 == 0


async def test_without_a_session_nothing_of_a_sub_agent_is_kept(tmp_path: Path) -> None:
    replies = [Reply((TASK,)), Reply((Text("Nothing."),)), Reply((Text("Done."),))]
    async with peer(tmp_path, replies, session=TranscriptOptions(keep=False)) as p:
        assert (await p.turn("go"))[-1]["result"] == "Done."

    assert [*(tmp_path / "state").rglob("agent-*")] == []


async def test_every_change_of_the_mode_is_told_and_the_usage_of_a_result_is_that_of_the_main_thread(
    tmp_path: Path,
) -> None:
    task = {"description": "d", "prompt": "inner task", "run_in_background": False}
    replies = [
        Reply((ToolUse("p", "EnterPlanMode", {}),), to="outer"),
        Reply((ToolUse("a", "Agent", task),), to="outer"),
        Reply((Text("Inner."),), to="inner task", input_tokens=1000),
        Reply((Text("Done."),), to="outer"),
    ]
    async with peer(tmp_path, replies, options=EngineOptions(ask="stdio")) as p:
        await p.ask("set_permission_mode", mode="acceptEdits")
        lines = await p.turn("outer")
        modes = [line["permissionMode"] for line in of(p.seen, "status")]

    assert modes == ["acceptEdits", "plan"]
    assert of(lines, "init")[0]["permissionMode"] == "acceptEdits"
    assert lines[-1]["usage"]["input_tokens"] == 30
    assert sum(each["inputTokens"] for each in lines[-1]["modelUsage"].values()) == 1030


@pytest.mark.proves("G24")
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Write", {"file_path": "made", "content": "x"}),
        ("Edit", {"file_path": "there.txt", "old_string": "one", "new_string": "two"}),
        ("Bash", {"command": "touch made"}),
    ],
)
async def test_what_plan_mode_refuses_stands_among_the_denials_of_the_result(
    tmp_path: Path, name: str, given: dict[str, Any]
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/there.txt").write_text("one")
    read = Reply((ToolUse("r", "Read", {"file_path": "there.txt"}),))
    replies = [read, Reply((ToolUse("t", name, given),)), Reply((Text("Ok."),))]
    flags = SettingsFlags(mode="plan", managed_policy=False)
    async with peer(tmp_path, replies, options=EngineOptions(), spec={"flags": flags}) as p:
        lines = await p.turn("go")

    [denial] = lines[-1]["permission_denials"]
    assert (denial["tool_name"], denial["tool_input"]) == (name, given)
    assert "plan mode refuses" in denial["decision_reason"]
    assert set(of(lines, "init")[0]["tools"]).isdisjoint({"Write", "Edit"})
    assert [path.read_text() for path in (tmp_path / "work").iterdir()] == ["one"]
