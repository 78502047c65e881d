"""
Searches and starts in a git tree of more than 30,000 files, as whole turns of real sessions.

    python -m benchmarks.session_search_bench [--json]

`handrail -p` runs in the tree against a model server on loopback. A turn is the time from the model's call to the next
request. After each turn ripgrep does the same search alone, so that both are measured in one run and the ratio counts.
Then starts to the first request, in the tree and in an empty folder, in turns; and starts and first calls with 10,000
rules and with ten.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.permissions_bench import FORMS
from benchmarks.search_bench import grow

from handrail.builtin.support.ripgrep import packaged_rg
from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply

HANDRAIL = str(Path(sys.executable).with_name("handrail"))
ROUNDS, STARTS, THINKING = 9, 7, 0.8
RARE = "def _decompression_bomb_check"
LISTING = ("--files", "--hidden", "--no-ignore", "--glob=!.git")
SEARCHES: dict[str, tuple[str, dict[str, str], tuple[str, ...], float]] = {
    "Glob **/*.py": ("Glob", {"pattern": "**/*.py"}, (*LISTING, "--glob=*.py"), 1.5),
    "Glob **/*": ("Glob", {"pattern": "**/*"}, LISTING, 3.0),
    "Grep, a rare literal": ("Grep", {"pattern": RARE}, ("-l", "--hidden", "--glob=!.git", RARE), 1.08),
    "Grep, its lines": ("Grep", {"pattern": RARE, "output_mode": "content"}, ("-n", "--hidden", RARE), 1.08),
}
Rows = dict[str, dict[str, float]]
Place = tuple[Path, Path]
"""The folder of a session, and its home."""
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.looseCompression=0", "-c", "gc.auto=0")


class Session:
    """A process of `handrail -p` that makes one call after the other."""

    def __init__(self, folder: Path, home: Path, calls: Sequence[ToolUse]) -> None:
        self._folder, self._home = folder, home
        self._gates = [asyncio.Event() for _ in calls]
        answers = [Reply((call,), gates={0: gate}) for call, gate in zip(calls, self._gates, strict=True)]
        self._server = ModelServer([*answers, Reply((Text("Done."),))])

    async def start(self) -> float:
        """Seconds from the start of the process to its first request."""
        await self._server.__aenter__()
        own = {"HOME": str(self._home), "HANDRAIL_STATE_DIR": str(self._home / "state"), "ANTHROPIC_API_KEY": "k"}
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        began = time.perf_counter()
        self._process = await asyncio.create_subprocess_exec(
            *(HANDRAIL, "-p", "go"),
            cwd=self._folder,
            env={**env, **own, "ANTHROPIC_BASE_URL": self._server.url},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        return await self._request(1) - began

    async def turn(self, number: int) -> float:
        """Seconds from the call with that number, counted from 0, to the next request."""
        began = time.perf_counter()
        self._gates[number].set()
        return await self._request(number + 2) - began

    async def end(self) -> None:
        """Let it answer and leave."""
        for gate in self._gates:
            gate.set()
        await self._process.wait()
        await self._server.__aexit__(None, None, None)

    async def _request(self, number: int) -> float:
        while len(self._server.requests) < number:
            if self._process.returncode is not None:
                raise SystemExit(f"handrail ended with {self._process.returncode} before it made request {number}")
            await asyncio.sleep(0.0005)  # the server keeps requests, it does not announce them
        return time.perf_counter()


def quartile(times: Sequence[float]) -> float:
    """The first quartile in milliseconds: other programs on the machine only ever add time."""
    return sorted(times)[len(times) // 4] * 1000


async def searches(tree: Path, home: Path) -> Rows:
    """Every search in turns with ripgrep; the first of each is left out, because it loads what it needs."""
    order = [name for _ in range(ROUNDS + 1) for name in SEARCHES]
    calls = [ToolUse(f"c{at}", *SEARCHES[name][:2]) for at, name in enumerate(order)]
    session = Session(tree, home, calls)
    seen: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in SEARCHES}
    await session.start()
    await asyncio.sleep(THINKING)
    for at, name in enumerate(order):
        seen[name][0].append(await session.turn(at))
        began = time.perf_counter()
        command = [packaged_rg(), "--no-config", *SEARCHES[name][2], "./"]
        subprocess.run(command, cwd=tree, capture_output=True, check=False)  # noqa: ASYNC221  # nothing else runs now
        seen[name][1].append(time.perf_counter() - began)
    await session.end()
    return {
        f"{name}, whole turn": {"ms": quartile(ours[1:]), "base": quartile(rg[1:]), "bar": SEARCHES[name][3]}
        for name, (ours, rg) in seen.items()
    }


async def beside(what: str, one: tuple[Path, Path], other: tuple[Path, Path], bar: float) -> Rows:
    """Starts, and first calls after a thought, in one folder and home beside another, in turns."""
    starts: tuple[list[float], list[float]] = ([], [])
    calls: tuple[list[float], list[float]] = ([], [])
    for _ in range(STARTS + 1):
        for side, (folder, home) in enumerate((one, other)):
            session = Session(folder, home, [ToolUse("c", "Read", {"file_path": "missing.txt"})])
            starts[side].append(await session.start())
            await asyncio.sleep(THINKING)
            calls[side].append(await session.turn(0))
            await session.end()
    return {
        f"start {what}": {"ms": quartile(starts[0][1:]), "base": quartile(starts[1][1:]), "bar": bar},
        f"first call {what}": {"ms": quartile(calls[0][1:]), "base": quartile(calls[1][1:]), "bar": 2.0},
    }


def home_with_rules(root: Path, count: int) -> Path:
    """A home folder whose settings hold so many rules, a third of each kind."""
    texts = [FORMS[at % len(FORMS)].format(at) for at in range(count)]
    kinds = {kind: texts[at::3] for at, kind in enumerate(("allow", "ask", "deny"))}
    folder = root / f"home{count}" / ".handrail"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({"permissions": kinds}, indent=1))
    return folder.parent


async def measure(root: Path) -> Rows:
    """Every row, measured in folders below the root."""
    tree, empty, home = (root / name for name in ("tree", "empty", "home"))
    for folder in (tree, empty, home):
        folder.mkdir()
    grow(tree)
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all")):
        subprocess.run([*GIT, *words], cwd=tree, check=True, capture_output=True)  # noqa: ASYNC221
    rows = await searches(tree, home)
    rows |= await beside("in a git tree of 31,000 files", (tree, home), (empty, home), 1.3)
    few, many = home_with_rules(root, 10), home_with_rules(root, 10_000)
    return rows | await beside("with 10,000 rules", (empty, many), (empty, few), 1.3)


def lines(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The rows for people."""
    found = []
    for name, row in rows.items():
        ratio = row["ms"] / row["base"]
        verdict = "ok" if ratio <= row["bar"] else "TOO SLOW"
        figures = f"{row['ms']:8.1f} ms  against {row['base']:8.1f}  ratio {ratio:5.2f}"
        found.append(f"{name:<44} {figures}  (at most {row['bar']})  {verdict}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        rows = asyncio.run(measure(Path(made).resolve()))
    print(json.dumps(rows) if chosen.json else "\n".join(lines(rows)))


if __name__ == "__main__":
    main()
