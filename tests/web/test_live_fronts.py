"""A page beside a running session, whatever drives it: what the model writes, and questions that either may answer."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import PermissionResultAllow, ResultMessage
from playwright.async_api import Browser, Locator, Page

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from tests.cli.test_run import variables
from tests.interactive import Conversing
from tests.scenarios.sdk.driving import call, calls, only, say, turn, world
from tests.web.test_live import asks, audit, first_call, pages, started

pytestmark = [pytest.mark.anyio, pytest.mark.needs("chromium")]


def question(page: Page) -> Locator:
    return page.get_by_role("region", name="Bash needs your permission")


async def test_the_page_shows_what_the_model_writes_and_then_the_record_of_it(
    chromium: Browser, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    more, rest = asyncio.Event(), asyncio.Event()
    reply = Reply((Text("The first words, then <b>others</b>, and the end."),), piece=8, gates={4: more, 6: rest})
    async with ModelServer([reply]) as server:
        run = started("-p", "Tell me.", "--live", state=tmp_path, **asks(server))
        async with pages(chromium, tmp_path, "Ada") as people, run as running:
            page = people["Ada"]
            await page.get_by_role("link", name="Tell me.").click()
            await page.get_by_text("The first words,").wait_for()
            assert "others" not in await page.locator("main").inner_text()
            more.set()
            await page.get_by_text("then <b>").wait_for()
            await page.get_by_text("writing").wait_for()
            rest.set()
            out, _ = await running.communicate()
            await page.get_by_text("Ended:").wait_for()
            await page.get_by_text("writing").wait_for(state="detached")
            shown = await page.locator("main").inner_text()
    assert out.decode().strip() == "The first words, then <b>others</b>, and the end."
    assert shown.count("The first words, then <b>others</b>, and the end.") == 1


async def test_the_page_shows_what_a_sub_agent_writes_from_the_moment_it_begins(
    chromium: Browser, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    more, rest = asyncio.Event(), asyncio.Event()
    task = {"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"}
    replies = [
        Reply((ToolUse("a1", "Agent", task),), to="Delegate"),
        Reply((Text("\U0001f600\U0001f600 seen. Then more."),), to="Look around", piece=8, gates={3: more, 4: rest}),
        Reply((Text("All done."),), to="Delegate"),
    ]
    async with ModelServer(replies) as server:
        run = started("-p", "Delegate it.", "--live", state=tmp_path, **asks(server))
        async with pages(chromium, tmp_path, "Ada") as people, run as running:
            page = people["Ada"]
            await page.get_by_role("link", name="Delegate it.").click()
            agents = page.get_by_label("Agent")
            await agents.wait_for()
            name = await agents.locator("option").nth(1).get_attribute("value")
            await agents.select_option(name)
            await page.get_by_text("\U0001f600\U0001f600 seen.", exact=True).wait_for()
            await page.get_by_text("writing").wait_for()
            more.set()
            await page.get_by_text("\U0001f600\U0001f600 seen. Then mo", exact=True).wait_for()
            rest.set()
            await running.communicate()
            await page.get_by_text("Ended:").wait_for()
            shown = await page.locator("main").inner_text()
    assert shown.count("\U0001f600\U0001f600 seen. Then more.") == 1
    assert "writing" not in shown


@pytest.mark.parametrize("where", ["page", "terminal"])
async def test_a_question_of_the_terminal_is_answered_there_or_on_the_page(
    chromium: Browser, tmp_path: Path, where: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    state = Path(f"{project}-state")
    state.mkdir(mode=0o700)
    async with (
        ModelServer(first_call("touch made"), strict=True) as server,
        pages(chromium, state, "Ada") as people,
        Conversing(project, variables(server, project), "--live", "Make it.") as terminal,
    ):
        await terminal.until("Yes, this once")
        asked = question(people["Ada"])
        await asked.wait_for()
        if where == "page":
            await asked.get_by_role("button", name="Yes, this once").click()
        else:
            await terminal.until_asked()
            terminal.type("1")
        await asked.wait_for(state="detached")
        await terminal.until("Done.")
        await terminal.until("Yes, this once", gone=True)
        terminal.type("/exit\r")
        assert await terminal.code() == 0
        terminal.check_frames()
    assert (project / "made").exists()
    assert audit(state)[-1]["by"] == ("person Ada" if where == "page" else "person")


@pytest.mark.parametrize("where", ["page", "program"])
async def test_a_question_of_the_sdk_is_answered_by_its_program_or_on_the_page(
    chromium: Browser, tmp_path: Path, where: str
) -> None:
    tmp_path.chmod(0o700)
    on_page = asyncio.Event()

    async def answer(_tool: str, _given: dict[str, Any], _context: object) -> PermissionResultAllow:
        if where == "page":
            await asyncio.Event().wait()
        await on_page.wait()
        return PermissionResultAllow()

    async with (
        world(tmp_path, calls(call(1, "Bash", command="touch made")), say("Done.")) as w,
        pages(chromium, tmp_path, "Ada") as people,
        w.client(can_use_tool=answer, env={"HANDRAIL_LIVE": "1", "HANDRAIL_STATE_DIR": str(tmp_path)}) as client,
    ):
        working = asyncio.ensure_future(turn(client, "Make it."))
        asked = question(people["Ada"])
        await asked.wait_for()
        on_page.set()
        if where == "page":
            await asked.get_by_role("button", name="Yes, this once").click()
        [result] = only(await working, ResultMessage)
        await asked.wait_for(state="detached")
    assert result.result == "Done."
    assert (w.cwd / "made").exists()
    assert (audit(tmp_path)[-1]["by"] == "person Ada") is (where == "page")
