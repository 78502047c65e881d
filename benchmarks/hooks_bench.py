"""
What hooks add to a call: python benchmarks/hooks_bench.py

    none       rails without hooks, and with hooks for other moments: the same call, no more than 5 microseconds more
    looking    a gate that looks at settings files, alone and with a session's place for hooks that may come: the same
    command    a PreToolUse command hook, against a bare spawn of the same command in the same run: no more than 3 ms
    analysis   of a command line, which comes before its hooks because their conditions need it
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from handrail import CarefulGate, Hooks, Rails, ResultStore, RunContext, ToolExecutor, ToolUse, tool
from handrail.config.flags import NO_FLAGS_GIVEN
from handrail.dispatch.call_hooks import CallHooks
from handrail.dispatch.gate import WithoutPolicy
from handrail.hooks.environment import HookEnvironment
from handrail.permissions.facts import Evidence
from handrail.session.hooks import follow_settings, open_hooks
from handrail.session.settings.session_settings import SessionSettings, open_settings
from handrail.shell.analysis import analyse
from handrail.tools.permission import Decision
from handrail.tools.pool import Ingredients, Pool, assemble
from handrail.tools.request import CallRequest

CALLS, SPAWNS, BLOCK = 200, 60, 20
COMMAND = "cat >/dev/null"
BODY = b'{"tool_name": "nothing"}' * 8


@tool(read_only=True, concurrency_safe=True)
async def nothing() -> str:
    """Does nothing."""
    return ""


class LookingGate(WithoutPolicy):
    """Looks whether settings have changed, as sessions do, and lets pass what only reads."""

    def __init__(self, live: SessionSettings) -> None:
        self._live = live
        self._gate = CarefulGate()

    async def decide(self, request: CallRequest, evidence: Evidence) -> Decision:
        self._live.policy()
        return await self._gate.decide(request, evidence)


POOL = assemble(Ingredients(custom=(nothing,)))


def hooks(event: str, *lines: str) -> Hooks:
    section = {event: [{"hooks": [{"type": "command", "command": line} for line in lines]}]}
    return Hooks(section, environment=HookEnvironment(dict(os.environ)))


async def call(pool: Pool, rails: Rails, folder: Path) -> None:
    async with ToolExecutor(pool, RunContext(folder), ResultStore(folder), rails=rails) as executor:
        executor.add(ToolUse("1", "nothing", {}))
        await anext(executor.rest())


async def bare() -> None:
    """The same command, as plain asyncio starts it."""
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        COMMAND,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    await process.communicate(BODY)


async def alternating(count: int, breath: float, **actions: Callable[[], Awaitable[None]]) -> dict[str, float]:
    """
    Milliseconds, the lower quartile of each action; they take turns, so that a busy moment hits all of them.

    `breath` seconds lie between two of them: calls come one by one, with a model that thinks in between.
    """
    samples: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(count):
        for name, action in actions.items():
            await asyncio.sleep(breath)
            started = time.perf_counter()
            await action()
            samples[name].append((time.perf_counter() - started) * 1_000)
    return {name: statistics.quantiles(found, n=4)[0] for name, found in samples.items()}


def analysis_time() -> float:
    """Milliseconds to analyse a command line that was never seen, the median."""
    samples = []
    for number in range(CALLS):
        line = f"cd src && grep -rn 'name{number}' --include='*.py' . | head -20; git status --short > out{number}.txt"
        started = time.perf_counter()
        analyse(line)
        samples.append((time.perf_counter() - started) * 1_000)
    return statistics.median(samples)


async def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        plain = Rails(CarefulGate())
        elsewhere = Rails(CarefulGate(), CallHooks(hooks("PermissionRequest", COMMAND)))
        one = Rails(CarefulGate(), CallHooks(hooks("PreToolUse", COMMAND)))
        many = Rails(CarefulGate(), CallHooks(hooks("PreToolUse", *(f"{COMMAND}; true {n}" for n in range(5)))))

        live = open_settings(folder, {"HOME": made}, folder / "state", NO_FLAGS_GIVEN, print)
        live.policy()
        looking = Rails(LookingGate(live))
        late_hooks = open_hooks(live.loaded, folder, session_id="bench")
        follow_settings(late_hooks, live, print)
        late = Rails(LookingGate(live), CallHooks(late_hooks))

        async def block(rails: Rails) -> None:
            for _ in range(BLOCK):
                await call(POOL, rails, folder)

        quick = await alternating(
            CALLS,
            0,
            none=lambda: block(plain),
            again=lambda: block(plain),
            elsewhere=lambda: block(elsewhere),
            looking=lambda: block(looking),
            late=lambda: block(late),
        )
        for name, value in quick.items():
            more = (value - quick["looking" if name == "late" else "none"]) / BLOCK * 1_000
            print(f"call, hooks {name:10} {value / BLOCK * 1_000:8.1f} microseconds  {more:+6.1f}")

        slow = await alternating(
            SPAWNS,
            0.02,
            bare=bare,
            call=lambda: call(POOL, plain, folder),
            hooked=lambda: call(POOL, one, folder),
            five=lambda: call(POOL, many, folder),
        )
        own = slow["hooked"] - slow["call"] - slow["bare"]
        print(f"bare spawn of the command   {slow['bare']:8.2f} ms")
        print(f"call with it as a hook      {slow['hooked']:8.2f} ms   {own:+.2f} ms beside command and call (bar: 3)")
        print(f"call with five hooks        {slow['five']:8.2f} ms")
        print(f"analysis of a new line      {analysis_time():8.2f} ms   all that hooks beside it could save")


if __name__ == "__main__":
    asyncio.run(main())
