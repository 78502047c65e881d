"""
What starting and leaving costs.

    python -m benchmarks.start_bench [--json]

`handrail --version` beside a bare interpreter in CPU time; `handrail -p` from its start to the first request that a
model server on loopback gets, beside a floor program with httpx2, in wall time; then the time from the last byte of
output to the end of the process, and its memory. Bytecode is compiled first, as an installed package has it.
"""

import argparse
import asyncio
import compileall
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import handrail
from handrail.conversation.blocks import Text
from handrail.testing.model_server import ModelServer, Reply

RUNS, STARTS = 25, 9
HANDRAIL = str(Path(sys.executable).with_name("handrail"))
FLOOR = """
import asyncio, sys
import httpx2

async def main():
    body = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    async with httpx2.AsyncClient() as client, client.stream("POST", sys.argv[1] + "/v1/messages", json=body) as answer:
        async for line in answer.aiter_lines():
            pass

asyncio.run(main())
"""


def cpu(command: list[str]) -> float:
    """Milliseconds of CPU that a command takes, at the first quartile of several runs."""
    spent: list[float] = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return sorted(spent)[RUNS // 4] * 1000


async def started(*command: str) -> tuple[float, float]:
    """Milliseconds from the start to the first request, and from the last output to the end."""
    async with ModelServer([Reply((Text("Hello"),))]) as server:
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *(word.replace("URL", server.url) for word in command),
            env={**os.environ, "ANTHROPIC_BASE_URL": server.url},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        while not server.requests:  # noqa: ASYNC110  # the server keeps requests, it does not announce them
            await asyncio.sleep(0.001)
        asked = time.perf_counter() - began
        assert process.stdout is not None
        await process.stdout.readline()
        spoken = time.perf_counter()
        await process.wait()
        return asked * 1000, (time.perf_counter() - spoken) * 1000


async def starts() -> dict[str, float]:
    """Ours and the floor take turns; the figures are those of the first quartile."""
    floor: list[float] = []
    ours: list[tuple[float, float]] = []
    for _ in range(STARTS):
        floor.append((await started(sys.executable, "-c", FLOOR, "URL"))[0])
        ours.append(await started(HANDRAIL, "-p", "hi"))
    base = sorted(floor)[STARTS // 4]
    mine = sorted(first for first, _ in ours)[STARTS // 4]
    return {
        "floor, start to first request (ms)": base,
        "handrail -p, start to first request (ms)": mine,
        "handrail -p / floor": mine / base,
        "last output to end of process (ms)": sorted(last for _, last in ours)[STARTS // 4],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    compileall.compile_dir(Path(handrail.__file__).parent, quiet=2)
    bare, version = cpu([sys.executable, "-c", "pass"]), cpu([HANDRAIL, "--version"])
    figures = {"bare interpreter (ms)": bare, "handrail --version (ms)": version, "version / bare": version / bare}
    figures |= asyncio.run(starts())
    figures["largest child (MB resident)"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    if chosen.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:<44} {value:10.2f}")


if __name__ == "__main__":
    main()
