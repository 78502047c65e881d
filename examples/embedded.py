"""The protocol that programs speak with handrail, served over a socket by a program of your own."""

import asyncio
import json
from pathlib import Path

from handrail.headless.embed import StreamLines, StreamOut, serve
from handrail.session.spec import SessionSpec


async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Each connection is a conversation of its own."""
    await serve(StreamLines(reader), StreamOut(writer), SessionSpec(cwd=Path.cwd()))
    writer.close()


async def main() -> None:
    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        prompt = {"type": "user", "message": {"role": "user", "content": "Which files are here?"}}
        writer.write(json.dumps(prompt).encode() + b"\n")
        writer.write_eof()
        async for line in reader:
            message = json.loads(line)
            if message["type"] == "result":
                print(message["subtype"], "-", message["result"])
        writer.close()


if __name__ == "__main__":
    asyncio.run(main())
