"""What tools say of themselves, and what they did with files, as a whole run shows it."""

from pathlib import Path
from typing import Any

import pytest

from handrail import Agent, Allow, Deny, Outcome, Question, Status, tool
from handrail.testing import ScriptedModel, say, use
from handrail.tools.events import CallFinished
from tests.forked import reference_server

pytestmark = pytest.mark.anyio


async def outcomes(model: ScriptedModel, folder: Path, *tools: Any, **options: Any) -> list[Outcome]:
    """The outcomes of a run's calls."""
    async with Agent(model, tools, cwd=folder, state_dir=folder.parent / "state", **options) as agent:
        return [event.outcome async for event in agent.run("Go.") if isinstance(event, CallFinished)]


def conversation(model: ScriptedModel, number: int) -> str:
    """The conversation that a request belongs to."""
    request: Any = model.requests[number]
    return "\n".join(str(block) for message in request.history.messages for block in message.content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (made := tmp_path / "project").mkdir()
    return made


# Files


@pytest.mark.proves("J3")
async def test_a_read_counts_for_every_spelling_of_the_path(folder: Path) -> None:
    (folder / "f").write_text("one")
    (folder / "link").symlink_to("f")
    model = ScriptedModel(
        [
            [use("1", "Read", file_path="link")],
            [use("2", "Edit", file_path=str(folder / "." / "f"), old_string="one", new_string="two")],
            [say("Done.")],
        ]
    )

    done = await outcomes(model, folder, allow=["Edit"])

    assert [outcome.status for outcome in done] == [Status.OK, Status.OK]


@pytest.mark.proves("J3")
async def test_what_the_main_agent_has_read_counts_for_a_sub_agent_and_not_the_other_way_round(
    folder: Path,
) -> None:
    for name in ("f", "g"):
        (folder / name).write_text("one")
    change = {"old_string": "one", "new_string": "two"}
    model = ScriptedModel(
        [
            [use("1", "Read", file_path="f")],
            [use("2", "Agent", description="Edit", prompt="Edit it.", subagent_type="general-purpose")],
            [use("3", "Edit", file_path="f", **change), use("4", "Read", file_path="g")],
            [say("Edited.")],
            [use("5", "Edit", file_path="g", **change), use("6", "Edit", file_path="f", **change)],
            [say("Done.")],
        ]
    )

    done = {outcome.use.id: outcome for outcome in await outcomes(model, folder, allow=["Edit"])}

    assert (folder / "f").read_text() == "two"  # the sub-agent has edited it without reading it again
    assert "'g' has not been read yet" in done["5"].result.text
    assert "changed" in done["6"].result.text


@pytest.mark.proves("J11")
async def test_the_model_gets_the_diff_of_an_edit_and_hears_of_adapted_quotes(folder: Path) -> None:
    (folder / "f").write_text("He said “no”.\nkept\n")
    model = ScriptedModel(
        [
            [use("1", "Read", file_path="f")],
            [use("2", "Edit", file_path="f", old_string='"no"', new_string='"yes"')],
            [say("Done.")],
        ]
    )

    await outcomes(model, folder, allow=["Edit"])

    sent = conversation(model, 2)
    assert "-He said “no”.\\n+He said “yes”.\\n kept" in sent
    assert "its own shapes were kept" in sent


# Flags


@pytest.mark.proves("A15", "G43")
async def test_a_person_is_told_what_cannot_be_undone_and_is_not_asked_about_what_only_reads(folder: Path) -> None:
    @tool(reads=(), destructive=True)
    async def wipe() -> str:
        """Destroy it."""
        return "gone"

    @tool(reads=(), subject="what")
    async def change(what: str) -> str:
        """Change it."""
        return "changed"

    @tool(reads=(), read_only=True)
    async def look() -> str:
        """Look at it."""
        return "seen"

    asked: dict[str, tuple[str, tuple[str, ...]]] = {}

    async def answer(name: str, _input: Any, question: Question) -> Allow | Deny:
        asked[name] = (question.risk.level.name, question.risk.reasons)
        return Deny()

    model = ScriptedModel([[use("1", "wipe"), use("2", "change", what="x"), use("3", "look")], [say("Done.")]])

    done = await outcomes(model, folder, wipe, change, look, can_use_tool=answer)

    assert [outcome.status for outcome in done] == [Status.DENIED, Status.DENIED, Status.OK]
    assert asked == {
        "wipe": ("HIGH", ("the tool calls it destructive",)),
        "change": ("MEDIUM", ("it changes something",)),
    }


# MCP


@pytest.mark.proves("A24", "A35")
async def test_a_tool_of_a_server_has_its_names_and_what_the_server_sends_beside_the_content_is_kept(
    folder: Path,
) -> None:
    reasons: list[str] = []

    async def answer(_name: str, _input: Any, question: Question) -> Allow | Deny:
        reasons.append(question.reason)
        return Allow()

    model = ScriptedModel([[use("1", "mcp__my_ref__note", text="x")], [say("Done.")]])
    options = {"mcp_servers": {"my.ref": reference_server()}, "mode": "plan", "can_use_tool": answer}

    [outcome] = await outcomes(model, folder, **options)

    assert reasons == ["plan mode does not rely on what the server 'my.ref' says of its tool"]
    assert outcome.output is not None
    assert outcome.output.mcp is not None
    assert outcome.output.mcp.structured_content == {"noted": "x"}
    assert outcome.output.mcp.meta["trace"] == "t1"
