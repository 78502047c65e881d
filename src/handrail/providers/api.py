"""A wire format as one value: how requests are written and answers are read."""

import re
from collections.abc import Callable, Collection
from hashlib import sha1
from operator import is_
from typing import Protocol

from handrail.conversation.request import Encoded, Request, ToolDefinition
from handrail.lazy import lazy_pattern
from handrail.providers.quirks import Quirks
from handrail.providers.reader import AnswerReader
from handrail.records import record

Headers = tuple[tuple[str, str], ...]

BAD_NAME_CHARACTER = lazy_pattern(r"[^a-zA-Z0-9_-]")


class RequestWriter(Protocol):
    """Turns requests into bytes. Pure: the same request gives the same bytes."""

    def body(self, request: Request, stream: bool) -> bytes:
        """The request's body."""
        ...

    def headers(self, request: Request) -> Headers:
        """What this request needs beyond the endpoint's own headers."""
        ...


@record
class Api:
    """`path` is added to the base URL; `auth` names the header a plain key goes into."""

    name: str
    path: str
    auth: str
    headers: Headers
    writer: Callable[[Quirks], RequestWriter]
    reader: Callable[[Collection[str], Collection[str]], AnswerReader]
    """Makes the reader of an answer, given the call ids that are taken and the names of the tools."""


class SharedPrefix:
    """The tools and the system prompt, written once for all turns of a run: their requests share the objects."""

    def __init__(self, write: Callable[[Request], bytes]) -> None:
        self._write = write
        self._parts: tuple[object, ...] = (None,) * 4
        self._bytes = b""

    def of(self, request: Request) -> bytes:
        """What `write` makes of this request."""
        parts = (request.tools, request.system, request.activated, request.last_builtin)
        if not all(map(is_, self._parts, parts)):
            self._bytes = self._write(request)
            self._parts = parts
        return self._bytes


def wire_id(call_id: str, pattern: re.Pattern[str]) -> str:
    """`call_id`, or a stable replacement if this provider refuses its shape (it may come from another provider)."""
    if pattern.fullmatch(call_id):
        return call_id
    digest = sha1(call_id.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    long = f"call_{digest[:24]}"
    return long if pattern.fullmatch(long) else digest[:9]


def wire_name(name: str, longest: int = 64) -> str:
    """The tool name without characters that apis refuse: a model may have made it up, and it stays in the history."""
    fits = name.isascii() and name.isidentifier()
    return (name if fits else BAD_NAME_CHARACTER.sub("_", name))[:longest] or "unnamed"


def loaded_tools(request: Request) -> list[ToolDefinition]:
    """The tools to send to an api without deferred tools; those that the model has found come last."""
    deferred = {tool.name: tool for tool in request.tools if tool.deferred}
    loaded = [tool for tool in request.tools if not tool.deferred]
    return loaded + [deferred[name] for name in dict.fromkeys(request.activated) if name in deferred]


def insert_marks(encoded: Encoded, mark: bytes) -> list[bytes | memoryview]:
    """The history with `mark` inserted at its two newest places, as pieces for one join; nothing is copied here."""
    settled, turn = memoryview(encoded.settled), memoryview(encoded.turn)
    comma = b"," if settled and turn else b""
    return [*_with_mark(settled, encoded.settled_mark, mark), comma, *_with_mark(turn, encoded.turn_mark, mark)]


def _with_mark(piece: memoryview, at: int, mark: bytes) -> list[bytes | memoryview]:
    return [piece[:at], mark, piece[at:]] if mark and at >= 0 else [piece]
