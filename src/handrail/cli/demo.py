"""`handrail demo`: real calls through the real executor while a scripted model is still talking."""

import argparse
import asyncio
import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from handrail.app.state import result_store
from handrail.app.tools import make_catalog
from handrail.conversation.blocks import ToolUse
from handrail.conversation.stream import BlockEnd
from handrail.dispatch.channel import Channel
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import CarefulGate, Rails
from handrail.testing.model import ScriptedModel, Step, pause, say, use
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.events import CallEvent
from handrail.tools.function import tool
from handrail.tools.outcome import Outcome
from handrail.tools.pool import Deferral
from handrail.tui.timeline import draw, spans

TITLE = "Ten calls of one answer, scheduled while the model was still talking:"


def run(chosen: argparse.Namespace) -> int:
    """Make a throw-away project, play the answer, draw what happened."""
    with tempfile.TemporaryDirectory(prefix="handrail-demo-") as folder:
        project = Path(folder)
        for name in ("app.py", "test_app.py", "README.md"):
            (project / name).write_text(f"# {name} of the demo\n" * 40)
        print(asyncio.run(play(project, chosen.width or shutil.get_terminal_size((100, 24)).columns)))
    return 0


@tool(access=lambda file, text: Access.of(writes=[file]), timeout=5)  # noqa: ARG005
async def append(file: str, text: str, ctx: ToolContext) -> str:
    """Append a line to a file of the demo project."""
    await asyncio.sleep(0.12)
    with (ctx.cwd / file).open("a") as target:
        target.write(text + "\n")
    return f"added a line to {file}"


@tool
async def check(ctx: ToolContext) -> str:
    """Count the lines of the demo project; nothing else may run meanwhile."""
    await asyncio.sleep(0.1)
    return f"{sum(len(path.read_text().splitlines()) for path in ctx.cwd.glob('*'))} lines"


def answer(project: Path) -> tuple[Step, ...]:
    """What the model says: words, ten calls, and silences in between."""
    app, test = str(project / "app.py"), str(project / "test_app.py")
    return (
        say("I look at the project, change two files side by side, and check the result."),
        use("1", "Glob", pattern="**/*"),
        use("2", "Read", file_path=app),
        pause(0.05),
        use("3", "Read", file_path=test),
        use("4", "Sleep", seconds=0.25),
        pause(0.05),
        use("5", "append", file=app, text="x = 1"),
        use("6", "append", file=test, text="assert x == 1"),
        use("7", "append", file=app, text="x = 2"),
        pause(0.05),
        use("8", "Read", file_path=str(project / "missing.py")),
        use("9", "check"),
        use("10", "Read", file_path=app, limit=3),
        pause(0.1),
    )


async def play(project: Path, width: int) -> str:
    """The answer is streamed; calls start as their blocks complete and the rule lets them."""
    catalog = make_catalog(variables=os.environ, custom=(append, check), deferral=Deferral(mode="off"))
    script = answer(project)
    now = asyncio.get_running_loop().time
    begin = now()
    rails = Rails(CarefulGate(trusting=True))
    async with ToolExecutor(catalog.pool, RunContext(project), result_store(os.environ), rails=rails) as executor:
        watching = asyncio.create_task(watch(executor.events))
        async with contextlib.aclosing(ScriptedModel([script]).stream({})) as stream:
            async for event in stream:
                if isinstance(event, BlockEnd) and isinstance(event.block, ToolUse):
                    executor.add(event.block)
        streamed = now()
        outcomes = [outcome async for outcome in executor.rest()]
    labels = {step.id: label(step) for step in script if isinstance(step, ToolUse)}
    picture = draw(spans(await watching, labels), (begin, streamed), width)
    results = "\n".join(f"{o.use.id:>4} {o.status.value:<6} {first_line(o)}" for o in outcomes)
    return f"{TITLE}\n\n{picture}\n\nResults, in the order they were asked for:\n\n{results}"


async def watch(events: Channel[CallEvent]) -> list[CallEvent]:
    """Everything that happens, until the executor is left."""
    return [event async for event in events]


def label(step: ToolUse) -> str:
    """The call as one would write it."""
    return f"{step.id:>2} {step.name} {' '.join(Path(str(value)).name for value in step.input.values())}"


def first_line(outcome: Outcome) -> str:
    """The beginning of a result."""
    return outcome.result.text.partition("\n")[0][:90]
