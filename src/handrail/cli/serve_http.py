"""The server of `handrail serve`. Needs the extra `serve`."""

import asyncio
import os
import resource
import socket
import time
from pathlib import Path
from typing import cast

from handrail.cli.run import plain_log
from handrail.cli.signals import on_signals
from handrail.conversation.plain import plain, plain_json
from handrail.remote.app import error_json, make_app
from handrail.remote.config import ServeConfig
from handrail.remote.service import open_service
from handrail.serve.guard import App, Door
from handrail.serve.listen import BindAddress, address_of, with_names
from handrail.serve.server import serve

FILES = 16_384
"""How many files and connections it may have open, if the system lets it; two hundred runs need a thousand."""


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def serve_runs(
    config: ServeConfig, endpoint: BindAddress, listener: socket.socket, state: Path, token: str, *, as_json: bool
) -> int:
    """Start runs for clients until a signal comes; the exit code is 0, because that is how it is meant to end."""

    def greet() -> None:
        if as_json:
            print(
                plain_json({"type": "listening", "url": address.url} | ({"token": token} if token else {})), flush=True
            )
            return
        print(f"handrail serves runs at {plain(address.url)}", flush=True)
        if token:
            print(f"Clients send this header: Authorization: Bearer {token}", flush=True)
            print("The token is new at each start; --config keeps those of several clients.", flush=True)

    def tell(text: str) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        print(
            plain_json({"type": "log", "time": moment, "text": text}) if as_json else plain(f"{moment} {text}"),
            flush=True,
        )

    plain_log()
    _raise_file_limit()
    address = address_of(endpoint, listener)
    named = with_names(address, config.listen.names)
    door = Door(named.hosts, named.origins, config.tokens, error=error_json)
    stop = asyncio.Event()
    on_signals(stop.set)
    async with (
        open_service(config, state, os.environ, tell, greet) as service,
        serve(cast("App", make_app(service)), door, endpoint, listener),
    ):
        await stop.wait()
        await service.runs.aclose()  # first, so that the readers of their lines see the end
    return 0
