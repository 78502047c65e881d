"""
A process that has loaded handrail and forks a child for each run: real processes, without the start of an interpreter.

Each line of its input is a job, each line of its output how the child ended. With `cut`, the child's writes to session
files go wrong at a record: see `Cut`.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

LOADED = (
    "handrail.cli.main", "handrail.cli.run", "handrail.cli.flags", "handrail.app.work", "handrail.app.delegation",
    "handrail.app.hooks", "handrail.app.prompts", "handrail.app.servers", "handrail.app.tidying",
    "handrail.providers.http", "handrail.headless.engine", "handrail.headless.serve", "handrail.builtin.bash.tool",
    "handrail.builtin.read", "handrail.builtin.agent", "handrail.app.gate", "handrail.files.undo", "pydantic",
)  # fmt: skip


@dataclass(frozen=True)
class Cut:
    """
    Where writing goes wrong: at the record of that number, after so many thousandths of it.

    `how`: `kill`, and the process ends there as with kill -9; or `full`, and no more fits on the disk from there on.
    """

    record: int
    part: int
    how: str


class Nursery:
    """The parent, as tests use it. One job at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._turn = threading.Lock()

    def run(self, arguments: list[str], cwd: Path, env: dict[str, str], out: Path, cut: Cut | None = None) -> int:
        """The exit code of a run, negative for a signal. What it prints is in `out` and `out.err`."""
        job = {"arguments": arguments, "cwd": str(cwd), "env": env, "out": str(out), "cut": cut and asdict(cut)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@cache
def nursery() -> Nursery:
    made = Nursery()
    atexit.register(made.close)
    return made


# The parent itself


def serve() -> None:
    for module in LOADED:
        import_module(module)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            play(json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def play(job: dict[str, Any]) -> NoReturn:
    os.environ.clear()
    os.environ.update(job["env"])
    os.chdir(job["cwd"])
    for number, place in ((0, "/dev/null"), (1, job["out"]), (2, job["out"] + ".err")):
        file = os.open(place, os.O_RDWR | (os.O_CREAT if number else 0), 0o600)
        os.dup2(file, number)
        os.close(file)
    signal.alarm(60)  # whatever happens, nobody waits forever
    sys.stdin = open(0)  # noqa: SIM115  # the input of the parent is not the child's
    sys.argv = ["handrail", *job["arguments"]]
    if job["cut"]:
        break_writing(Cut(**job["cut"]))
    program: Callable[[], NoReturn] = import_module("handrail.__main__").program
    program()


def break_writing(cut: Cut) -> None:
    whole = os.write
    records = 0

    def write(file: int, data: bytes) -> int:
        nonlocal records
        place = Path(f"/proc/self/fd/{file}").readlink()
        if place.suffix != ".jsonl" or "sessions" not in place.parts:
            return whole(file, data)
        records += 1
        if records < cut.record:
            return whole(file, data)
        fits = len(data) * cut.part // 1000 if records == cut.record else 0
        done = whole(file, data[:fits])
        if cut.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    os.write = write  # type: ignore[assignment]  # only bytes are ever given to it


if __name__ == "__main__":
    serve()
