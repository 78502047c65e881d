"""
What the sandbox costs: python -m benchmarks.sandbox_bench

Bash calls through the executor and the gate of a folder, as a model's are: `true`, and eight `sleep 0.2` in one answer,
confined and not, in turns. Figures are medians, the lower quartile and the quietest moment.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.folder_gate import folder_gate

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import Rails
from handrail.dispatch.results import ResultStore
from handrail.processes.sandbox.choose import MethodTrial, try_methods
from handrail.processes.sandbox.confine import CommandSandbox
from handrail.processes.sandbox.settings import read_settings
from handrail.session.services import default_services
from handrail.session.settings.confinement import protected_names
from handrail.session.tools import make_catalog
from handrail.tools.context import RunContext

ROUNDS, SLEEPS = 40, 8


class Session:
    """The tools of a session in a folder, with or without a sandbox."""

    def __init__(self, project: Path, state: Path, sandbox: CommandSandbox | None) -> None:
        env = {**os.environ, "HANDRAIL_STATE_DIR": str(state)}
        services = replace(default_services(env, project), sandbox=sandbox)
        self.project = project
        self.catalog = make_catalog(variables=env, services=lambda: services)
        self.rails = Rails(folder_gate(project, env))
        self.store = ResultStore(state / "results")

    async def calls(self, *commands: str) -> None:
        run = RunContext(self.project)
        async with ToolExecutor(self.catalog.pool, run, self.store, rails=self.rails) as executor:
            for at, command in enumerate(commands):
                executor.add(ToolUse(f"c{at}", "Bash", {"command": command}))
            outcomes = [outcome async for outcome in executor.rest()]
        assert not any(outcome.result.is_error for outcome in outcomes), outcomes


def confining(method: MethodTrial, project: Path, state: Path) -> CommandSandbox:
    home = os.path.realpath(Path.home())
    return CommandSandbox(
        read_settings({"enabled": True}, folder=str(project), home=home),
        home=home,
        working_dirs=lambda: (str(project),),
        state=state / method.method.value,
        protected=protected_names(),
        own=(str(state),),
        method=method,
    )


async def in_turns(rounds: int, *actions: Callable[[], Awaitable[None]]) -> list[list[float]]:
    """Milliseconds of each, taken in turns so that a busy moment hits all alike."""
    samples: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for kept, action in zip(samples, actions, strict=True):
            started = time.perf_counter()
            await action()
            kept.append((time.perf_counter() - started) * 1000)
    return samples


def shown(values: list[float]) -> str:
    quarter = statistics.quantiles(values, n=4)[0]
    return f"{statistics.median(values):6.1f} {quarter:6.1f} {min(values):6.1f}"


async def measure(project: Path, state: Path, methods: list[MethodTrial]) -> None:
    sandboxes = [confining(method, project, state) for method in methods]
    sessions = [Session(project, state, None), *(Session(project, state, sandbox) for sandbox in sandboxes)]
    names = ["bare", *(method.method.value for method in methods)]
    for session in sessions:
        await session.calls("true")
        await session.calls(*["true"] * SLEEPS)  # as many reapers as will be needed
    trues = await in_turns(ROUNDS, *(partial(session.calls, "true") for session in sessions))
    print("Bash true, ms                         median  quart.    best")
    for name, values in zip(names, trues, strict=True):
        print(f"  {name:34} {shown(values)}")
    for name, values in zip(names[1:], trues[1:], strict=True):
        more = [boxed - bare for boxed, bare in zip(sorted(values), sorted(trues[0]), strict=True)]
        print(f"  {name + ', more than bare (bar 15)':34} {shown(more)}")
    sleeps = await in_turns(8, *(partial(session.calls, *["sleep 0.2"] * SLEEPS) for session in sessions))
    print("eight sleeps of 200 ms (bar 225 bare, 300 confined)")
    for name, values in zip(names, sleeps, strict=True):
        print(f"  {name:34} {shown(values)}")
    for sandbox in sandboxes:
        wraps = [own_part(sandbox, project) for _ in range(ROUNDS)]
        print(f"  {sandbox.method.method.value + ', wrap and close':34} {shown(wraps)}")
        sandbox.close()


def own_part(sandbox: CommandSandbox, project: Path) -> float:
    """Milliseconds of what handrail itself does for a confined command."""
    started = time.perf_counter()
    sandbox.wrap(["true"], str(project)).close()
    return (time.perf_counter() - started) * 1000


def main() -> int:
    for method in try_methods():
        if not method.works:
            print(f"{method.method.value}: not measured, {method.reason}")
    with tempfile.TemporaryDirectory() as folder:
        project, state = Path(folder).resolve() / "project", Path(folder).resolve() / "state"
        project.mkdir()
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        asyncio.run(measure(project, state, [method for method in try_methods() if method.works]))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
