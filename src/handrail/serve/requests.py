"""Reads the JSON object of a request, bounded. Needs the extra `serve`."""

import json
from typing import Any

from starlette.requests import Request

from handrail.errors import HttpRefusalError

MAX_BODY = 1_000_000


async def read_object(request: Request, most: int = MAX_BODY, *, empty: bool = False) -> dict[str, Any]:
    """
    The JSON object of a request; HttpRefusalError if there is none. With `empty`, no body means no fields.

    Forms of other pages cannot send the type that is asked for.
    """
    data, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        data += chunk if size <= most else b""
        if size > 2 * most:  # who sends a little too much is heard out, for who still sends reads no answer
            break
    if size > most:
        raise HttpRefusalError(413, f"Send at most {most:,} bytes.")
    if empty and not data:
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HttpRefusalError(415, "Send a JSON object with the content type application/json.")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise HttpRefusalError(400, "Send a JSON object.")
    return value
