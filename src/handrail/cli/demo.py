"""`handrail demo`: an agent repairs a throw-away project, offline, and shows how its calls were run and judged."""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from handrail.app.agent import Agent
from handrail.cli.demo_project import DemoEdit, DemoShell, demo_gate, lay_out
from handrail.conversation.blocks import Json, Text, ToolUse
from handrail.conversation.plain import plain
from handrail.conversation.stream import MessageEnd
from handrail.dispatch.gate import Rails
from handrail.loop.events import BlockComplete, LoopEvent, RequestSent, RunEnded
from handrail.loop.setup import Model
from handrail.providers.cassette.opening import open_replayed_provider, open_replayer, surroundings_of
from handrail.providers.choose import Wishes
from handrail.tools.events import CallEvent, CallFinished, CallProgress, CallQueued, CallStarted
from handrail.tools.outcome import Outcome, Status
from handrail.tui.timeline import Row, Span, Talk, draw, spans

PROMPT = "The tests of this project fail. Find out why, repair it, and tidy up."
CASSETTE = "demo.jsonl"
ABOUT = (
    "An agent repairs a small project. The model's side is a cassette that we wrote ourselves; all else is real:\n"
    "the loop, the tools, the scheduling, the reading of shell commands, the refusals. No key, no network.\n"
)


def run(chosen: argparse.Namespace) -> int:
    """Make the project, let the agent work, show what happened, remove the project."""
    width = chosen.width or shutil.get_terminal_size((100, 24)).columns
    if not shutil.which("git"):
        sys.stderr.write("handrail: the demo needs the program git, and it is not here. Install it and try again.\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="handrail-demo-") as folder:
        project = Path(folder).resolve()
        make_project(project)
        print(f"{ABOUT}\nYou: {PROMPT}\n", flush=True)
        with resources.as_file(resources.files("handrail.cli") / CASSETTE) as cassette:
            replayer = open_replayer(cassette, surroundings_of(project, os.environ), speed=1.0, in_order=True)
            watched = asyncio.run(play(open_replayed_provider(replayer, Wishes()), project))
        print(f"\nWhen everything happened:\n\n{draw(watched.rows(), width)}")
        print(f"\nWho was asked, and why:\n\n{trace(watched.outcomes)}")
        print(f"\nWhat changed:\n\n{git(project, 'diff', '--no-color', '--no-ext-diff')}", end="")
    return 0 if watched.ended and not watched.ended.is_error else 1


IDENTITY = ("-c", "user.name=Demo", "-c", "user.email=demo@localhost")


def make_project(project: Path) -> None:
    """A repository with one commit, and a test that fails."""
    lay_out(project)
    git(project, "init", "--quiet")
    git(project, "add", ".")
    git(project, *IDENTITY, "commit", "--quiet", "--message", "A shop")


def git(project: Path, *arguments: str) -> str:
    """What git says in the demo project, whatever the user's own settings are."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    ran = subprocess.run(  # noqa: S603  # our own words
        ["git", "-C", str(project), *arguments],  # noqa: S607  # the user's git is what is wanted
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return ran.stdout


async def play(model: Model, project: Path) -> "Watch":
    """Let the agent work on the prompt; words and calls are printed as they come."""
    watched = Watch()
    agent = Agent(
        model,
        [DemoEdit(), DemoShell()],
        builtin_tools=["Glob", "Read"],
        system_prompt="You repair small projects.",
        cwd=project,
        rails=Rails(demo_gate()),
        model_name="demo",
    )
    async with agent:
        async for event in agent.run(PROMPT):
            watched.hear(event)
    return watched


class Watch:
    """Tells what happens, and remembers it for the pictures at the end."""

    def __init__(self) -> None:
        self._now = asyncio.get_running_loop().time
        self._turns: list[tuple[Talk, list[CallEvent]]] = []
        self._labels: dict[str, str] = {}
        self.outcomes: list[Outcome] = []
        self.ended: RunEnded | None = None

    def hear(self, event: LoopEvent) -> None:
        """One event of the run."""
        match event:
            case RequestSent():
                self._turns.append((Talk(self._now()), []))
            case MessageEnd():
                self._turns[-1][0].ended = self._now()
            case BlockComplete(block=Text(text)):
                say(f"Model: {text}")
            case BlockComplete(block=ToolUse() as use):
                self._labels[use.id] = label(use)
            case CallQueued() | CallStarted() | CallProgress():
                self._turns[-1][1].append(event)
            case CallFinished(outcome):
                self._turns[-1][1].append(event)
                self.outcomes.append(outcome)
                say(f"  {self._labels[outcome.use.id]}: {gist(outcome)}")
            case RunEnded():
                self.ended = event
            case _:
                pass

    def rows(self) -> list[Row]:
        """The whole run, answer by answer."""
        rows: list[Row] = []
        for talk, events in self._turns:
            calls: list[Span] = spans(events, self._labels)
            rows += [talk, *calls]
        return rows


def say(text: str) -> None:
    """A line, at once."""
    print(plain(text), flush=True)


def label(use: ToolUse) -> str:
    """The call as one would write it."""
    return f"{use.name} {first_value(use.input)}".strip()


def first_value(values: Json) -> str:
    return next((str(value) for value in values.values()), "")


def gist(outcome: Outcome) -> str:
    """A result in one line."""
    lines = outcome.result.text.splitlines() or [""]
    return lines[0][:100] + (f" (+{len(lines) - 1} lines)" if len(lines) > 1 else "")


def trace(outcomes: Iterable[Outcome]) -> str:
    """The decision on every call, with each opinion that was heard."""
    lines: list[str] = []
    for outcome in outcomes:
        decision = outcome.decision
        if decision is None:
            continue
        verdict = "refused" if outcome.status is Status.DENIED else "allowed"
        lines.append(f"{verdict}  {label(outcome.use)}")
        lines += [f"         {o.layer}: {o.verdict.value}, {o.reason}" for o in decision.opinions]
    return "\n".join(lines)
