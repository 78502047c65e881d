"""
How fast the terminal is: to its first prompt, per delta, in completion, and from a key to its echo.

    python -m benchmarks.terminal_bench
"""

import asyncio
import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

from benchmarks import key_echo

from handrail.conversation.stream import BlockStart, Delta
from handrail.tui.interactive.file_index import FileIndex
from handrail.tui.interactive.frames import ScreenBlock
from handrail.tui.interactive.paint import THEMES
from handrail.tui.interactive.view import ConversationView

BARE = "from prompt_toolkit import prompt\nprompt('> ')"
PROMPT = b">"
RUNS = 7
PIECE = 4
"""Characters of a delta, as models send them."""


def first_prompt(argv: list[str], mark: bytes, env: dict[str, str]) -> float:
    """Seconds until a program on a terminal has drawn its prompt."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    started = time.perf_counter()
    process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True)
    os.close(theirs)
    seen = b""
    while mark not in seen and select.select([ours], [], [], 20)[0]:
        seen += os.read(ours, 65_536)
    took = time.perf_counter() - started
    process.kill()
    process.wait()
    os.close(ours)
    return took


def deltas(size: int) -> float:
    """Microseconds of CPU per delta of an answer that is drawn 15 times a second at 10,000 deltas a second."""
    blocks: list[ScreenBlock] = []
    view = ConversationView(blocks.append, time.monotonic, lambda: THEMES["dark"])
    view.on_event(BlockStart(0, "text"))
    words = ("word " * 11 + "end.\n\n") if size < 40_000 else "some words in a long paragraph "
    text = (words * (size // len(words) + 1))[:size]
    step = PIECE
    started = time.process_time()
    for at in range(0, size, step):
        view.on_event(Delta(0, text[at : at + step]))
        if (at // step) % 666 == 665:
            view.settle()
            view.live_lines(100, 10)
            for block in blocks:
                block.lines(100)
            blocks.clear()
    return (time.process_time() - started) / (size // step) * 1e6


async def completion() -> tuple[float, float]:
    """Milliseconds to the first results in 100,000 files, and the longest pause for keys meanwhile."""
    paths = [f"src/package_{at % 317}/module_{at}/handler_{at % 97}.py" for at in range(100_000)]

    async def listed() -> list[str]:
        return paths

    index = FileIndex(listed)
    await index.search("x")
    pauses: list[float] = []

    async def watch() -> None:
        before = time.perf_counter()
        while True:
            await asyncio.sleep(0)
            now = time.perf_counter()
            pauses.append(now - before)
            before = now

    watching = asyncio.ensure_future(watch())
    times: list[float] = []
    for query in ("handler", "mod", "pkghnd", "module_99999"):
        started = time.perf_counter()
        await index.search(query)
        times.append(time.perf_counter() - started)
    watching.cancel()
    return max(times) * 1e3, max(pauses) * 1e3


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **os.environ,
            "TERM": "xterm-256color",
            "HOME": folder,
            "HANDRAIL_STATE_DIR": f"{folder}/state",
        }
        env |= {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "none"}
        bare: list[float] = []
        ours: list[float] = []
        for _ in range(RUNS):
            bare.append(first_prompt([sys.executable, "-c", BARE], PROMPT, env))
            ours.append(first_prompt([sys.executable, "-m", "handrail"], PROMPT, env))
    one, other = statistics.median(bare), statistics.median(ours)
    print(
        f"first prompt: {other * 1e3:.0f} ms, a bare prompt_toolkit prompt {one * 1e3:.0f} ms, ratio {other / one:.2f}"
    )
    deltas(1_000)  # what is imported late is imported now
    for size in (1_000, 40_000, 400_000):
        print(f"CPU per delta of an answer of {size // 1000:,} kB: {deltas(size):.1f} us")
    first, pause = asyncio.run(completion())
    print(f"completion in 100,000 files: {first:.0f} ms, longest pause for keys {pause:.1f} ms")
    for line in key_echo.report():
        print(line)


if __name__ == "__main__":
    main()
