"""
What looking at a session costs: python -m benchmarks.view_bench

    open     50 MB with 10,000 calls, beside reading and JSON-parsing the same file: at most 2 times
    follow   one look at a session to which nothing was added
    page     in a real browser, if there is one: from the data to the first rows (at most 1 s), and from a line in the
             file to the page (at most 100 ms)

Sides that are compared take turns; the lower quartile counts.
"""

import asyncio
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handrail.view.files import RunFiles, read_run
from handrail.view.follow import RunFollower

CALLS, ROUNDS, LINES = 10_000, 7, 12
RESULT = 'def total(items):\n    return sum(item.price for item in items)  # "as it was"\n' * 56
PAINTED = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
  const data = performance.getEntriesByType("resource").find((each) => each.name.includes("/api/run/"));
  done(performance.now() - data.responseEnd);
})))"""
SEEN = """(word) => new Promise((done) => {
  const list = document.querySelector(".vlist");
  const look = () => {
    list.scrollTop = list.scrollHeight;
    if (list.innerText.includes(word)) done(Date.now());
    else requestAnimationFrame(look);
  };
  look();
})"""


def quartile(values: list[float]) -> float:
    return statistics.quantiles(values, n=4)[0]


def timed(action: Callable[[], object]) -> float:
    gc.collect()
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def write_session(path: Path) -> None:
    """A session with a turn for every four calls."""
    path.parent.mkdir(parents=True, mode=0o700)
    stamp = {"timestamp": "2026-11-17T10:00:00.123Z", "sessionId": path.stem, "cwd": "/p"}
    with path.open("w") as file:

        def add(**line: Any) -> None:
            file.write(json.dumps({**line, **stamp}) + "\n")

        add(type="user", message={"content": "Do a lot."})
        for turn in range(CALLS // 4):
            add(type="handrail", event="requested", turn=turn, attempt=1, why="tool_results", model="m", prefix={})
            ids = [f"c{turn}-{number}" for number in range(4)]
            for each in ids:
                block: dict[str, Any] = {
                    "type": "tool_use",
                    "id": each,
                    "name": "Read",
                    "input": {"file_path": f"src/{each}.py"},
                }
                add(type="assistant", message={"model": "m", "content": [block]})
                add(type="handrail", event="began", id=each, name="Read")
            add(type="handrail", event="answered", model="m", usage={"input": 9, "output": 5}, dollars=0.01)
            for each in ids:
                block = {"type": "tool_result", "tool_use_id": each, "content": [{"type": "text", "text": RESULT}]}
                ending = {"status": "ok", "cause": "done", "micros": [1000, 50, 400, 20000, 100]}
                add(type="user", ending=ending, message={"content": [block]})
            add(type="handrail", event="settled", model="m", stop_reason="tool_use")


def parse(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


def opening(files: RunFiles) -> None:
    ours: list[float] = []
    plain: list[float] = []
    for _ in range(ROUNDS):
        plain.append(timed(lambda: parse(files.session)))
        ours.append(timed(lambda: read_run(files)))
    size = files.session.stat().st_size / 1e6
    read, bare = quartile(ours), quartile(plain)
    beside = f"{read / bare:.2f} times reading and parsing ({bare * 1e3:.0f} ms)"
    print(f"open     {size:.0f} MB in {read * 1e3:.0f} ms, {beside}")
    follower = RunFollower(files)
    follower.look()
    looks = [timed(follower.look) for _ in range(200)]
    print(f"follow   {quartile(looks) * 1e6:.0f} us for a look at a session that rests")


async def paging(files: RunFiles, chromium: str) -> None:
    from playwright.async_api import async_playwright  # only where there is a browser

    env = {**os.environ, "HANDRAIL_STATE_DIR": str(files.state)}
    command = (sys.executable, "-m", "handrail", "view", "--json", files.id)
    serving = await asyncio.create_subprocess_exec(*command, env=env, stdout=subprocess.PIPE)
    assert serving.stdout is not None
    url = json.loads(await serving.stdout.readline())["addresses"][0]["url"]
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await browser.new_page()
        await page.goto(url)
        await page.locator(".vrow").first.wait_for()
        painted: list[float] = []
        for _ in range(ROUNDS):
            await page.reload()
            await page.locator(".vrow").first.wait_for()
            painted.append(await page.evaluate(PAINTED))
        waits: list[float] = []
        for number in range(LINES):
            word = f"word {number} of now"
            looking = asyncio.ensure_future(page.evaluate(SEEN, word))
            await asyncio.sleep(0.3)
            line = {"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": word}]}}
            with files.session.open("a") as file:
                file.write(json.dumps(line) + "\n")
            written = time.time()
            waits.append(await looking - written * 1e3)
        await browser.close()
    serving.terminate()
    await serving.wait()
    line_seen = f"a new line is there after {quartile(waits):.0f} ms"
    print(f"page     first rows {quartile(painted):.0f} ms after the data; {line_seen}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = RunFiles(Path(folder, "sessions", "-p", "long.jsonl"), Path(folder))
        write_session(files.session)
        opening(files)
        if chromium := shutil.which("chromium"):
            asyncio.run(paging(files, chromium))


if __name__ == "__main__":
    main()
