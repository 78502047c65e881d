"""The server of `handrail view`. Needs the extra `serve`."""

import socket
from pathlib import Path
from typing import cast

from handrail.serve.guard import App, Door
from handrail.serve.listen import BindAddress
from handrail.serve.server import serve, until_signal
from handrail.web.app import PUBLIC, PageParts, make_app
from handrail.web.library import SessionLibrary
from handrail.web.live import live_sessions

__all__ = ["PUBLIC", "SessionLibrary", "serve_page"]


async def serve_page(
    library: SessionLibrary, door: Door, endpoint: BindAddress, listener: socket.socket, live: Path | None
) -> None:
    """Answer the page until a signal comes. `live` is the state folder whose running sessions may ask."""
    assert door.tokens is not None
    async with live_sessions(live) as sessions:
        page = PageParts(library, door.tokens, door.cookie, sessions, endpoint.tls)
        async with serve(cast("App", make_app(page)), door, endpoint, listener):
            await until_signal()
