"""Takes the picture of docs/view.md: the demo's run on the page, in a real browser."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from contextlib import aclosing
from importlib import resources
from pathlib import Path

from playwright.sync_api import ViewportSize, sync_playwright

from handrail.cli.demo import CASSETTE, PROMPT, TOOLS
from handrail.cli.demo_project import Ground, lay_out
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.providers.cassette.opening import open_replayed_provider, open_replayer, session_normalizer
from handrail.providers.choose import ModelOptions
from handrail.session.build import open_session
from handrail.session.spec import PromptOptions, SessionHost, SessionSpec, ToolOptions
from handrail.session.transcript import TranscriptOptions
from handrail.tools.pool import NO_DEFERRAL

ROOT = Path(__file__).resolve().parents[1]
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
        page.screenshot(path=ROOT / "docs" / "pictures" / "timeline.png")
        browser.close()


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


if __name__ == "__main__":
    main()
