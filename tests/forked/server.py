"""
A process that has imported all of handrail, and pytest, or a foreign library, and forks itself for each start, until
its standard input ends.

A fork has the arguments, variables, folder and standard streams of whoever asked. It is what a new process would be,
except for what was imported before and for what only the start of an interpreter reads: PYTHON* and the locale.
"""

import array
import gc
import io
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NoReturn

LATER = {
    "batch.cluster",  # dask need not be here
    "__main__",
    "testing.plugin",
    "adapters.langchain",
    "adapters.openai_agents",
    "adapters.pydantic_ai",
    "cli.serve_http",
    "cli.view_server",
    "remote.app",
    "serve.requests",
    "serve.server",
    "web.app",
}
"""What a fork imports itself: what it starts with, and what imports anyio, which pytest wants to import first."""


FOREIGN = ("anyio._backends._asyncio", "mcp.server.mcpserver", "mcp.types", "sse_starlette", "uvicorn")


def imported() -> None:
    import coverage
    import hypothesis  # noqa: F401  # for the forks
    import pytest  # noqa: F401  # for the forks

    import handrail

    for module in pkgutil.walk_packages(handrail.__path__, "handrail."):
        if module.name.removeprefix("handrail.") not in LATER:
            import_module(module.name)
    if (measuring := coverage.Coverage.current()) and measuring._inorout:
        measuring.save()  # what was seen until now is not for each fork to write again
        measuring._inorout.source_pkgs.clear()  # nor the list of all files, which takes most of the time


@dataclass(frozen=True, slots=True)
class Start:
    words: list[str]
    variables: dict[bytes, bytes]
    descriptors: list[int]  # the standard streams and the folder


def asked(link: socket.socket) -> Start | None:
    """What is to be started; None if whoever asked was killed in the middle of it."""
    size, control, _, _ = link.recvmsg(4, socket.CMSG_SPACE(16))
    whole = int.from_bytes(size, "big")
    words_and_variables = link.recv(whole, socket.MSG_WAITALL) if control else b""
    if not control or len(words_and_variables) < whole:
        return None
    count, *told = words_and_variables.split(b"\0")
    words = [os.fsdecode(word) for word in told[: int(count)]]
    variables = (each.partition(b"=") for each in told[int(count) :])
    return Start(words, {name: value for name, _, value in variables}, [*array.array("i", control[0][2])])


def streams() -> None:
    reading, *writing = (io.FileIO(number, mode, closefd=False) for number, mode in enumerate(("rb", "wb", "wb")))
    out, errors = map(io.BufferedWriter, writing)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(reading), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", line_buffering=os.isatty(1))
    sys.stderr = io.TextIOWrapper(errors, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def begin(start: Start) -> NoReturn:
    """What a process does from its start to its end."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.fchdir(start.descriptors[3])
    for target in range(3):
        os.dup2(start.descriptors[target], target)
    os.closerange(3, 256)
    os.environb.clear()
    os.environb.update(start.variables)
    sys.argv = start.words
    sys.path[0] = str(Path.cwd())
    streams()
    code = 1
    try:
        runpy.run_module(Path(sys.argv[0]).name, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:  # noqa: BLE001  # what no process survives is told as an interpreter tells it
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve(address: str) -> None:
    links: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        ended, ending = os.pipe()
        os.set_blocking(ended, False)
        os.set_blocking(ending, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(ending)
        for source in (0, ended, listener):
            selector.register(source, selectors.EVENT_READ)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            for key, _ in selector.select():
                if key.fd == 0:
                    for child in links:
                        os.kill(child, signal.SIGKILL)
                    return
                if key.fd == ended:
                    os.read(ended, 4096)
                    reap(links, selector)
                elif key.fileobj is listener:
                    link, _ = listener.accept()
                    if start := asked(link):
                        child = forked(start)
                        links[child] = link
                        selector.register(link, selectors.EVENT_READ, child)
                elif key.data in links and not passed_on(key.data, links[key.data]):
                    selector.unregister(key.fileobj)


def forked(start: Start) -> int:
    child = os.fork()
    if not child:
        begin(start)
    for descriptor in start.descriptors:
        os.close(descriptor)
    return child


def reap(links: dict[int, socket.socket], selector: selectors.BaseSelector) -> None:
    while links:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        with links.pop(child) as link, suppress(OSError, KeyError):
            selector.unregister(link)
            link.send(status.to_bytes(4, "big"))


def passed_on(child: int, link: socket.socket) -> bool:
    """A signal that came to whoever asked; when that one is gone, the fork is killed and False told."""
    numbers = link.recv(16)
    for number in numbers or [signal.SIGKILL]:
        os.kill(child, number)
    return bool(numbers)


if __name__ == "__main__":
    if sys.argv[2] == "own":
        imported()
    else:
        for name in FOREIGN:
            import_module(name)
    gc.collect()
    gc.freeze()
    serve(sys.argv[1])
