"""Takes the pictures of the page in a real browser: the demo's run, and a question of a running session."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from contextlib import aclosing
from functools import partial
from importlib import resources
from pathlib import Path

from playwright.async_api import async_playwright
from playwright.sync_api import ViewportSize, sync_playwright

from handrail.cli.demo import CASSETTE, PROMPT, TOOLS
from handrail.cli.demo_project import Ground, lay_out
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.messages import UserMessage
from handrail.providers.cassette.opening import open_replayed_provider, open_replayer, session_normalizer
from handrail.providers.choose import ModelOptions
from handrail.session.build import open_session
from handrail.session.spec import PromptOptions, SessionHost, SessionSpec, ToolOptions
from handrail.session.transcript import TranscriptOptions
from handrail.testing.model_server import ModelServer, Reply
from handrail.tools.pool import NO_DEFERRAL

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
CHROMIUM = "/usr/bin/chromium"
SIZE = ViewportSize(width=1120, height=640)


async def keep_demo(ground: Ground) -> str:
    """Let the demo's agent work, and return the id of its session."""
    with resources.as_file(resources.files("handrail.cli") / CASSETTE) as cassette:
        replayer = open_replayer(cassette, session_normalizer(ground.project, ground.env), speed=1.0, in_order=True)
        spec = SessionSpec(
            cwd=ground.project,
            model=ModelOptions(model="demo"),
            prompt=PromptOptions("You repair small projects.", context=False),
            tools=ToolOptions(builtin=TOOLS, deferral=NO_DEFERRAL),
            flags=SettingsFlags(trust=True, managed_policy=False),
            transcript=TranscriptOptions(),
        )
        host = SessionHost(model=open_replayed_provider(replayer, ModelOptions()))
        session = open_session(spec, ground.env, host)
        async with aclosing(session.drive(UserMessage((Text(PROMPT),)))) as events:
            async for _ in events:
                pass
        await session.aclose()
        return session.id


def take(url: str) -> None:
    """Take the picture of the timeline."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(url)
        page.get_by_role("link", name="Timeline").click()
        page.locator(".track").last.wait_for()
        page.mouse.move(0, 0)
        page.screenshot(path=PICTURES / "timeline.png")
        browser.close()


async def take_question(folder: Path) -> None:
    """Take the picture of a question of a running session."""
    (folder / "shop").mkdir()
    (folder / "state").mkdir(mode=0o700)
    command = {"command": "npm run build && npm publish", "description": "Publish the release"}
    env = {**os.environ, "HOME": str(folder), "HANDRAIL_STATE_DIR": str(folder / "state"), "ANTHROPIC_API_KEY": "key"}
    async with ModelServer([Reply((ToolUse("c1", "Bash", command),)), Reply((Text("Then not."),))]) as model:
        env["ANTHROPIC_BASE_URL"] = model.url
        pipe = asyncio.subprocess.PIPE
        start = partial(asyncio.create_subprocess_exec, sys.executable, "-m", "handrail", env=env, stdout=pipe)
        serving = await start("view", "--live", "--json")
        assert serving.stdout is not None
        url = json.loads(await serving.stdout.readline())["addresses"][0]["url"]
        async with async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = await browser.new_page(viewport={**SIZE, "height": 1000}, color_scheme="dark")
            await page.goto(url)
            running = await start("-p", "Publish the release.", "--live", cwd=folder / "shop")
            question = page.locator(".question")
            await question.get_by_role("button", name="Yes, this once").click(trial=True)
            await question.screenshot(path=PICTURES / "question.png")
            await question.get_by_role("button", name="No, and stop here").click()
            await running.communicate()
            await browser.close()
        serving.terminate()
        await serving.communicate()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ground = lay_out(Path(folder).resolve())
        session = asyncio.run(keep_demo(ground))
        env = {**os.environ, **ground.env}
        command = [sys.executable, "-m", "handrail", "view", "--json", session]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as serving:
            assert serving.stdout is not None
            take(json.loads(serving.stdout.readline())["addresses"][0]["url"])
            serving.terminate()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(take_question(Path(folder).resolve()))


if __name__ == "__main__":
    main()
