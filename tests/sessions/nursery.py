"""
A process that has loaded handrail and forks a child for each run: real processes, without the start of an interpreter.

Each line of its input is a job, each line of its output how the child ended. With `cut`, the child's writes to session
files go wrong at a record: see `Cut`. `program` is a file to start handrail with that is such a child as well.
"""

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
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


CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
end = socket.socket(socket.AF_UNIX)
end.connect({socket!r})
job = json.dumps({{"arguments": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}}).encode()
socket.send_fds(end, [len(job).to_bytes(4)], [0, 1, 2])
end.sendall(job)
child = int(end.recv(16))
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, _: os.kill(child, number))
for each in (0, 1, 2):
    os.close(each)
os._exit(int(end.recv(16) or 1) & 255)
"""


@cache
def program() -> Path:
    """What starts handrail as a child of a process that has loaded it."""
    folder = Path(tempfile.mkdtemp(prefix="handrail-nursery-"))
    parent = subprocess.Popen([sys.executable, __file__, str(folder / "socket")], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    parent.stdout.readline()  # it listens

    def close() -> None:
        parent.kill()
        parent.communicate()
        shutil.rmtree(folder)

    atexit.register(close)
    made = folder / "handrail"
    made.write_text(CLIENT.format(python=sys.executable, socket=str(folder / "socket")))
    made.chmod(0o700)
    return made


# The parent itself


def listen(place: str) -> None:
    load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those who wait for children are children themselves
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(place)
        end.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            caller, _ = end.accept()
            with caller:
                if os.fork() == 0:
                    end.close()
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    attend(caller)


def attend(caller: socket.socket) -> NoReturn:
    size, descriptors, _, _ = socket.recv_fds(caller, 4, 3)
    job = b""
    while len(job) < int.from_bytes(size):
        job += caller.recv(1 << 20)
    child = os.fork()
    if child == 0:
        caller.close()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        become(json.loads(job))
    for descriptor in (0, 1, 2, *descriptors):
        os.close(descriptor)
    caller.sendall(str(child).encode())
    _, status = os.waitpid(child, 0)
    caller.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def load() -> None:
    for module in LOADED:
        import_module(module)


def serve() -> None:
    load()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            play(json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def play(job: dict[str, Any]) -> NoReturn:
    for number, place in ((0, "/dev/null"), (1, job["out"]), (2, job["out"] + ".err")):
        file = os.open(place, os.O_RDWR | (os.O_CREAT if number else 0), 0o600)
        os.dup2(file, number)
        os.close(file)
    if job["cut"]:
        break_writing(Cut(**job["cut"]))
    become(job)


def become(job: dict[str, Any]) -> NoReturn:
    os.environ.clear()
    os.environ.update(job["env"])
    os.chdir(job["cwd"])
    signal.alarm(60)  # whatever happens, nobody waits forever
    # the streams of the parent are not the child's
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    sys.argv = ["handrail", *job["arguments"]]
    main: Callable[[], NoReturn] = import_module("handrail.__main__").program
    main()


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
    listen(sys.argv[1]) if sys.argv[1:] else serve()
