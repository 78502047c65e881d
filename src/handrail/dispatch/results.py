"""Stores results that are too big for the conversation on disk, and shows the model a part."""

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from hashlib import sha256
from pathlib import Path

from handrail.conversation.blocks import Document, Image, ResultBlock, Text
from handrail.files.private_folder import make_private_folder
from handrail.records import record
from handrail.tools.wording import how_to_read

HEAD_CHARS, TAIL_CHARS = 1_200, 800
MAX_MEDIA_CHARS = 32 * 1024 * 1024
"""Of the images and documents of a result together, in base64: a request cannot hold more."""
MAX_MEDIA = 100
DAY = 86_400


@record
class ResultLimits:
    """How much of big results is stored, for how long, and how much the model sees."""

    quota_bytes: int = 2_000_000_000
    retention_days: int = 30
    max_chars: int | None = None
    """The most characters of any result in the conversation. None = the tool's own limit."""
    max_chars_by_tool: Mapping[str, int] = field(default_factory=dict)
    """The same for single tools, in place of their own limits."""


DEFAULT_LIMITS = ResultLimits()


class ResultStore:
    """
    The folder of a run for big results, readable by its owner only.

    It is created with the first big result. A replaced result keeps its replacement, so that later requests carry
    identical bytes. Thread-safe.
    """

    def __init__(
        self, folder: Path, limits: ResultLimits = DEFAULT_LIMITS, now: Callable[[], float] = time.time
    ) -> None:
        self.folder = folder
        self._limits = limits
        self._now = now
        self._lock = threading.Lock()
        self._by_name: dict[str, str] = {}
        self._by_call: dict[str, str] = {}

    def limit_of(self, tool: str, own: int | None) -> int | None:
        """How many characters of a result stay in the conversation; `own` is the tool's limit, None = no limit."""
        limits = self._limits
        if limits is DEFAULT_LIMITS:
            return own
        if tool in limits.max_chars_by_tool:
            return limits.max_chars_by_tool[tool]
        return own if own is None or limits.max_chars is None else min(own, limits.max_chars)

    @property
    def replaced(self) -> dict[str, str]:
        """The replacements of big results, by call id."""
        return dict(self._by_call)

    def fit(
        self, call_id: str, blocks: tuple[ResultBlock, ...], limit: int, tools: Collection[str] = ()
    ) -> tuple[ResultBlock, ...]:
        """
        The blocks if their text is within the limit, else the replacement and the other blocks.

        `tools`: the names of the tools that may read the whole text; empty = not known.
        """
        if text_size(blocks) <= limit:
            return blocks
        texts = [block.text for block in blocks if isinstance(block, Text)]
        preview = self._preview(call_id, "\n".join(texts), limit, tools)
        return (Text(preview), *(block for block in blocks if not isinstance(block, Text)))

    def _preview(self, call_id: str, text: str, limit: int, tools: Collection[str]) -> str:
        data = text.encode("utf-8", "surrogatepass")
        name = f"{safe_name(call_id, data)}.txt"
        with self._lock:  # the quota is for all of them together
            if name not in self._by_name:
                self._by_name[name] = replacement(text, *self._save(name, data), limit, tools)
            self._by_call[call_id] = self._by_name[name]
            return self._by_name[name]

    def _save(self, name: str, data: bytes) -> tuple[Path | None, str]:
        """The file that holds the text, or why it could not be written."""
        path = self.folder / name
        try:
            make_private_folder(self.folder)
            self.folder.chmod(0o700)  # an existing folder may be open to other users
            used = self._tidy()
            if used + len(data) > self._limits.quota_bytes:
                return None, f"the folder for big results is full ({used:,} of {self._limits.quota_bytes:,} bytes)"
            path.unlink(missing_ok=True)  # a link planted here must not lead the text elsewhere
            with open(path, "xb", opener=_owner_only) as file:
                file.write(data)
        except OSError as error:
            with suppress(OSError):
                path.unlink()
            return None, f"writing it to disk failed ({error.strerror})"
        return path, ""

    def _tidy(self) -> int:
        """Remove expired results; returns the bytes left in the folders of all runs."""
        oldest = self._now() - self._limits.retention_days * DAY
        used = 0
        for path in self.folder.parent.glob("*/*.txt"):
            with suppress(FileNotFoundError):  # another run tidies up as well
                stat = path.lstat()
                if stat.st_mtime < oldest:
                    path.unlink()
                else:
                    used += stat.st_size
        return used


def text_size(blocks: Sequence[ResultBlock]) -> int:
    """How many characters the text of a result has, each block on a line of its own."""
    size = -1
    for block in blocks:
        if isinstance(block, Text):
            size += len(block.text) + 1
    return size


def without_excess_media(blocks: tuple[ResultBlock, ...]) -> tuple[ResultBlock, ...]:
    """The blocks with notes in the place of images and documents that are more than a request can hold."""
    if len(blocks) == 1 and isinstance(blocks[0], Text):
        return blocks
    sizes = [media_size(block) for block in blocks]
    if sum(sizes) <= MAX_MEDIA_CHARS and sum(map(bool, sizes)) <= MAX_MEDIA:
        return blocks
    room, places, shown, left_out = MAX_MEDIA_CHARS, MAX_MEDIA, list[ResultBlock](), list[int]()
    for block, size in zip(blocks, sizes, strict=True):
        if size and (size > room or not places):
            left_out.append(size)
        else:
            shown.append(block)
            room, places = room - size, places - bool(size)
    note = f"[{len(left_out):,} images or documents are left out: {sum(left_out):,} characters in base64 are too much]"
    return (*shown, Text(note))


def media_size(block: ResultBlock) -> int:
    """How many characters an image or a document has; 0 for other blocks."""
    match block:
        case Image(data, kind):
            return len(data) + len(kind) + 1
        case Document(data, kind, title):
            return len(data) + len(kind) + len(title) + 1
        case _:
            return 0


def replacement(text: str, path: Path | None, problem: str, limit: int, tools: Collection[str] = ()) -> str:
    """What the model sees of a big result: the notice first, then head and tail."""
    lines = text.count("\n") + 1
    where = (
        f"The whole text is in {path}. {how_to_read(tools)}"
        if path
        else f"The rest is lost: {problem}. Repeat the call with a narrower question."
    )
    return (
        f"<persisted-output>\nThe result is too large: {len(text):,} characters in {lines:,} lines. {where}\n"
        f"{ends(text, limit)}\n</persisted-output>"
    )


def ends(text: str, limit: int) -> str:
    """Head and tail of a text that is longer than the limit, and how much lies between."""
    head, tail = min(HEAD_CHARS, limit // 2), min(TAIL_CHARS, limit // 3)
    return (
        f"First {head:,} characters:\n{text[:head]}\n"
        f"[{len(text) - head - tail:,} characters left out]\n"
        f"Last {tail:,} characters:\n{text[len(text) - tail :]}"
    )


def safe_name(call_id: str, data: bytes = b"") -> str:
    """A file name for a result. Ids come from the model, may contain anything, and may repeat."""
    return sha256(call_id.encode("utf-8", "surrogatepass") + data).hexdigest()[:24]


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
