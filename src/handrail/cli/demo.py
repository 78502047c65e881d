"""`handrail demo`: an agent repairs a throw-away project, offline, and its calls and decisions are shown."""

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from importlib import resources
from pathlib import Path

from handrail.cli.demo_project import FILES, RULES, Ground, lay_out
from handrail.cli.demo_view import DemoView, wrap_text
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.loop.run_config import Model
from handrail.providers.cassette.opening import open_replayed_provider, open_replayer, session_normalizer
from handrail.providers.choose import ModelOptions
from handrail.session.build import open_session
from handrail.session.spec import PromptOptions, SessionHost, SessionSpec, ToolOptions
from handrail.tools.pool import NO_DEFERRAL
from handrail.tui.timeline import RUNNING, STREAMING, WAITING

PROMPT = "The tests of this project fail. Find out why, repair it, and tidy up."
CASSETTE = "demo.jsonl"
TOOLS = ("Bash", "Edit", "Glob", "Grep", "Read")
ABOUT = (
    "An agent repairs a small project. The model's side is a cassette that we wrote ourselves, no real model said it; "
    "all else is real: the loop, the tools, the scheduling, the reading of shell commands, the rules. No key, no "
    "network, and none of your settings: project, home and state folder are made for this run and removed after it."
)
WIDTH_OF_A_PIPE = 100
TERMINATED = 143


def run(chosen: argparse.Namespace) -> int:
    """Make the project, let the agent work, show what happened, remove the project."""
    if not shutil.which("git"):
        sys.stderr.write("handrail: the demo needs the program git, and it is not here. Install it and try again.\n")
        return 1
    width = chosen.width or shutil.get_terminal_size((WIDTH_OF_A_PIPE, 24)).columns
    with on_termination(partial(sys.exit, TERMINATED)), tempfile.TemporaryDirectory(prefix="handrail-demo-") as folder:
        ground = lay_out(Path(folder).resolve())
        say(wrap_text(ABOUT, width, ""))
        rules = "\n".join(f"  {number}  {line}" for number, line in enumerate(FILES[RULES].splitlines(), 1))
        say(f"\nThe rules of the project, {RULES}:\n\n{rules}\n")
        say(wrap_text(f"You: {PROMPT}", width, "     ") + "\n")
        with resources.as_file(resources.files("handrail.cli") / CASSETTE) as cassette:
            replayer = open_replayer(cassette, session_normalizer(ground.project, ground.env), speed=1.0, in_order=True)
            try:
                view = asyncio.run(play(open_replayed_provider(replayer, ModelOptions()), ground, width))
            except asyncio.CancelledError:
                return TERMINATED
        say(f"\nWhen everything happened:\n\n{drawable(view.timeline(), sys.stdout.encoding)}")
        say(f"\nWho decided, and why:\n\n{view.trace()}")
        say(f"\nWhat changed:\n\n{ground.git('diff', '--no-color').rstrip()}")
    return 0 if view.ended and not view.ended.is_error else 1


async def play(model: Model, ground: Ground, width: int) -> DemoView:
    """Let the agent work on the prompt; print text and calls as they come."""
    view = DemoView(say, width)
    spec = SessionSpec(
        cwd=ground.project,
        model=ModelOptions(model="demo"),
        prompt=PromptOptions("You repair small projects.", context=False),
        tools=ToolOptions(builtin=TOOLS, deferral=NO_DEFERRAL),
        flags=SettingsFlags(trust=True, managed_policy=False),
    )
    session = open_session(spec, ground.env, SessionHost(model=model))
    session.warm_up.load()  # what a longer run does while the model thinks
    working = asyncio.current_task()
    assert working
    with on_termination(partial(asyncio.get_running_loop().call_soon_threadsafe, working.cancel)):
        try:
            async with aclosing(session.drive(UserMessage((Text(PROMPT),)))) as events:
                async for event in events:
                    view.on_event(event)
        finally:
            await session.aclose()
    return view


@contextmanager
def on_termination(act: Callable[[], object]) -> Iterator[None]:
    """Act on SIGTERM while the block runs: the project is removed, as after Ctrl+C."""
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: act())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def drawable(drawing: str, encoding: str) -> str:
    """The drawing in characters that the terminal can show."""
    try:
        drawing.encode(encoding)
    except UnicodeEncodeError:
        return drawing.translate({ord(RUNNING): "#", ord(WAITING): ".", ord(STREAMING): "="})
    return drawing


def say(text: str) -> None:
    """Print a line and flush it."""
    print(text, flush=True)
