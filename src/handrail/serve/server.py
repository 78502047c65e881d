"""
Run an application behind its door until it is told to stop. Needs the extra `serve`.
"""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import uvicorn

from handrail.serve.guard import App, Door, Guard, is_everywhere, own_names
from handrail.serve.listen import BindAddress

GRACE_SECONDS = 2


class _Server(uvicorn.Server):
    """Leaves the signals to the program, and tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


@asynccontextmanager
async def serve(app: App, door: Door, endpoint: BindAddress, listener: socket.socket) -> AsyncIterator[None]:
    """Answer requests on the socket while the block runs; afterwards open answers have two seconds to end."""
    config = uvicorn.Config(
        Guard(app, door, partial(own_names, tls=endpoint.tls) if is_everywhere(endpoint.host) else None),
        ssl_certfile=endpoint.certificate,
        ssl_keyfile=endpoint.key,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ws="none",
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve([listener]))
    ready = asyncio.create_task(server.listens.wait())
    try:
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield
    finally:
        ready.cancel()
        server.should_exit = True
        await asyncio.wait({task}, timeout=GRACE_SECONDS + 3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        listener.close()


async def until_signal() -> None:
    """Wait for SIGINT, SIGTERM or SIGHUP, by which people and service managers end a server."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stopped.set)
    try:
        await stopped.wait()
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
