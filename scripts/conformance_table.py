"""
Run the scenarios that the conformance runner scores, and print a table: `scripts/conformance` calls it.

Each scenario is a process of its own with a time limit, so that one that hangs fails alone. The server to be tested is
`conformance_server.py`, which prints its address as its first line; without that file only the client is tested.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".conformance"
MODULES = TOOLS / "node_modules"
RUNNER = [str(MODULES / "node/bin/node"), str(MODULES / "@modelcontextprotocol/conformance/dist/index.js")]
CLIENT = f"{sys.executable} {ROOT / 'scripts/conformance_client.py'}"
SERVER = ROOT / "scripts/conformance_server.py"
REVISIONS = ("2025-11-25", "2026-07-28")
SIDES = ("client", "server")
TIME_LIMIT = 60.0
"""Seconds for one scenario; the runner itself gives up after 30."""
SHOWN_LINES = 12


@dataclass(frozen=True)
class Result:
    """How one scenario ended."""

    side: str
    revision: str
    scenario: str
    passed: bool
    checks: str
    seconds: float
    output: str


def scored(side: str, revision: str) -> tuple[str, ...]:
    """The scenarios that a revision requires of a client or a server."""
    listed = subprocess.run(
        [*RUNNER, "list", f"--{side}", "--requirements", revision],
        capture_output=True,
        text=True,
        check=True,
        cwd=TOOLS,
    ).stdout
    section = listed.partition(f"{side.capitalize()} scenarios")[2].partition("\n\n")[0]
    return tuple(re.findall(r"^\s+- (\S+)$", section, re.MULTILINE))


def run(side: str, revision: str, target: list[str], scenario: str) -> Result:
    """One scenario, by the runner; `target` says what is tested."""
    begun = time.monotonic()
    command = [*RUNNER, side, *target, "--spec-version", revision, "--scenario", scenario]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=TOOLS, start_new_session=True
    )
    try:
        output = process.communicate(timeout=TIME_LIMIT)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = f"{process.communicate()[0]}\nno end after {TIME_LIMIT:g} s"
    counts = re.findall(r"^Passed: (\d+/\d+)", output, re.MULTILINE)
    checks = counts[-1] if counts else "-"
    return Result(side, revision, scenario, process.returncode == 0, checks, time.monotonic() - begun, output)


@contextmanager
def tested(side: str) -> Iterator[list[str]]:
    """What is tested, as arguments of the runner; the server runs meanwhile."""
    if side == "client":
        yield ["--command", CLIENT]
        return
    with subprocess.Popen([sys.executable, str(SERVER)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield ["--url", process.stdout.readline().strip()]
        finally:
            process.terminate()


def show(result: Result) -> None:
    """One line of the table; of a failure also the end of what the runner printed."""
    word, seconds = "pass" if result.passed else "FAIL", f"{result.seconds:.1f} s"
    line = f"{result.side:<6}  {result.revision}  {result.scenario:<40} {result.checks:>6}  {seconds:>7}  {word}"
    print(line, flush=True)
    if not result.passed:
        print("\n".join(f"    {line}" for line in result.output.splitlines()[-SHOWN_LINES:]), flush=True)


def main(arguments: list[str]) -> int:
    """Exit code 1 if a scenario fails."""
    if len(arguments) == 3:
        side, revision, scenario = arguments
        with tested(side) as target:
            result = run(side, revision, [*target, "--verbose"], scenario)
        print(result.output)
        return 0 if result.passed else 1
    sides = arguments[:1] or [side for side in SIDES if side == "client" or SERVER.exists()]
    results: list[Result] = []
    for side in sides:
        for revision in arguments[1:2] or REVISIONS:
            scenarios = scored(side, revision)
            with tested(side) as target, ThreadPoolExecutor(2 if side == "client" else 1) as pool:
                for result in pool.map(partial(run, side, revision, target), scenarios):
                    show(result)
                    results.append(result)
    print()
    for side in sides:
        for revision in arguments[1:2] or REVISIONS:
            mine = [each for each in results if (each.side, each.revision) == (side, revision)]
            print(f"{side:<6}  {revision}  {sum(each.passed for each in mine)} of {len(mine)} scored scenarios pass")
    return 0 if results and all(each.passed for each in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
