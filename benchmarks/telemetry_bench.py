"""
What telemetry costs a call, with spans and metrics sent to a receiver in another process.

    python -m benchmarks.telemetry_bench [--json]

Figures are CPU time of this process per call: in the thread that runs calls, and in all threads, which includes writing
and sending the spans. With and without telemetry take turns, and the quiet moments count (the first decile).
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

from benchmarks.engine_bench import POOL, RUN, STORE, quiet

from handrail.conversation.blocks import ToolUse
from handrail.conversation.redact import Redactor
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import CarefulGate, Rails
from handrail.telemetry.setup import open_telemetry

ROUNDS, CALLS = 60, 200
BAR = 60.0
RECEIVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


async def turn(rails: Rails) -> None:
    """One answer with many calls."""
    async with ToolExecutor(POOL, RUN, STORE, rails=rails) as executor:
        for number in range(CALLS):
            executor.add(ToolUse(str(number), "Trivial", {"left": 1, "right": number}))
        async for _ in executor.rest():
            pass


async def cost(clock: Callable[[], float], work: Callable[[], Awaitable[None]]) -> float:
    """Microseconds per call."""
    begin = clock()
    await work()
    return (clock() - begin) / CALLS * 1e6


async def measure() -> dict[str, float]:
    """The figures."""
    observer = open_telemetry(os.environ, Redactor(), print, version="0", session_id="bench", provider="none")
    assert observer is not None
    observer.run_begins(RUN)
    off, on = Rails(CarefulGate(trusting=True)), Rails(CarefulGate(trusting=True), observer=observer)
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, rails in (("off", off), ("on", on)):
            found.setdefault(name, []).append(await cost(time.thread_time, lambda rails=rails: turn(rails)))  # type: ignore[misc]
    begin = time.process_time()
    for _ in range(ROUNDS):
        await turn(off)
    middle = time.process_time()
    for _ in range(ROUNDS):
        await turn(on)
    await observer.aclose()
    whole = (time.process_time() - middle) - (middle - begin)
    return {
        "off": quiet(found["off"]),
        "on": quiet(found["on"]),
        "added": quiet(found["on"]) - quiet(found["off"]),
        "added_in_all_threads": whole / ROUNDS / CALLS * 1e6,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with subprocess.Popen([sys.executable, "-c", RECEIVER], stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{receiver.stdout.readline().strip()}"
        os.environ["NO_PROXY"] = "127.0.0.1"
        os.environ["OTEL_BSP_MAX_QUEUE_SIZE"] = "100000"
        try:
            figures = asyncio.run(measure())
        finally:
            receiver.terminate()
    if chosen.json:
        print(json.dumps(figures))
        return
    print(f"a trivial call without telemetry     {figures['off']:6.1f} us")
    print(f"the same with spans and metrics      {figures['on']:6.1f} us")
    print(f"added to a call                      {figures['added']:6.1f} us (bar: {BAR:.0f})")
    print(f"added in all threads, sending too    {figures['added_in_all_threads']:6.1f} us")


if __name__ == "__main__":
    main()
