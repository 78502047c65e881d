"""
Serves the protocol of `handrail --input-format stream-json` from another program, over any pair of streams.

    await serve(StreamLines(reader), StreamOut(writer), SessionSpec(cwd=folder))

One process may serve several conversations at once, each with its own streams and session.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from handrail.errors import ClosedError
from handrail.headless.engine import EngineOptions, open_engine
from handrail.headless.serve import PLAIN_SERVING, Service, Serving
from handrail.session.spec import NO_HOST, SessionHost, SessionSpec
from handrail.stdio.streams import LineSource, Out, line_bytes

ASK_CLIENT = EngineOptions(ask="stdio")


class StreamLines:
    """Lines from an asyncio stream. A line longer than the stream's limit ends the conversation."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def next(self) -> bytes | None:
        try:
            line = await self._reader.readline()
        except (ValueError, OSError):
            return None
        return line.removesuffix(b"\n") if line else None


class StreamOut:
    """Lines to an asyncio stream, each written at once; waits for a slow reader."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, line: Mapping[str, Any]) -> None:
        try:
            self._writer.write(line_bytes(line))
            await self._writer.drain()
        except OSError as error:
            raise ClosedError(f"The output cannot be written: {error}.") from error


async def serve(
    lines: LineSource,
    out: Out,
    spec: SessionSpec,
    *,
    env: Mapping[str, str] | None = None,
    host: SessionHost = NO_HOST,
    options: EngineOptions = ASK_CLIENT,
    serving: Serving = PLAIN_SERVING,
) -> int:
    """
    Serve one conversation until its input ends. Returns 0, or 1 if its last result was an error.

    `env` holds keys, HOME and HANDRAIL_STATE_DIR (default: this process's). By default the other side is asked for
    permission.
    """
    variables = os.environ if env is None else env
    service = Service(
        out, lambda client, control: open_engine(spec, variables, host, client, control, options=options), serving
    )
    return await service.serve(lines)
