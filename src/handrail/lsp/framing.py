"""Messages of the language server protocol as bytes: a header with a length, then JSON."""

import asyncio
import json
from typing import Any, TypeAlias

from handrail.errors import LspError

LspMessage: TypeAlias = dict[str, Any]

MAX_BODY = 32 * 1024 * 1024
MAX_LINE = 64 * 1024
MAX_NOISE = 1_000
"""Lines without a meaning that may stand between messages: some servers print there what they should log."""


def frame(message: LspMessage) -> bytes:
    """A message as it is sent."""
    body = json.dumps(message, separators=(",", ":"), ensure_ascii=True).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def read_body(reader: asyncio.StreamReader) -> bytes | None:
    """The JSON of the next message; None at the end. Raises LspError for what cannot be a message."""
    length, noise = None, 0
    while True:
        try:
            line = await reader.readline()
        except ValueError as error:
            raise LspError(f"it sent a line of more than {MAX_LINE:,} bytes") from error
        if not line:
            return None
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = _length(value)
        elif line.strip() == b"" and length is not None:
            break
        elif name.strip().lower() != b"content-type":
            noise += 1
            if noise > MAX_NOISE:
                raise LspError(f"it sent {noise:,} lines that belong to no message")
    try:
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError:
        return None


def _length(value: bytes) -> int:
    text = value.strip()
    if not text.isdigit() or len(text) > 12:
        raise LspError(f"it sent a message of the length {text[:20]!r}")
    length = int(text)
    if length > MAX_BODY:
        raise LspError(f"it sent a message of {length:,} bytes, and {MAX_BODY:,} are the most")
    return length


def parse_body(body: bytes) -> LspMessage | None:
    """The message; None if it is none. Raises LspError if it is nested too deeply: a question may wait for it."""
    try:
        message = json.loads(body)
    except ValueError:
        return None
    except RecursionError as error:
        raise LspError("it sent a message that is nested too deeply") from error
    return message if isinstance(message, dict) else None
