"""Prepares the output of a command for the model: bounded and readable."""

import base64
import binascii
import os
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

from handrail.builtin.support.media_types import media_type
from handrail.conversation.blocks import Image
from handrail.conversation.plain import plain
from handrail.lazy import lazy_pattern
from handrail.records import record
from handrail.tools.wording import how_to_read

DEFAULT_CHARS = 30_000
MOST_CHARS = 150_000
MAX_IMAGE_BYTES = 3_750_000
MAX_COUNTED_BYTES = 200_000_000
"""Counting the lines of larger output would take too long."""
ESCAPES = lazy_pattern(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])")
DATA_URI = lazy_pattern(r"data:(image/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/=\s]+)\Z")


@record
class ShownOutput:
    """The output as the model gets it. `cut`: only a part is shown; `size` and `lines` are of the whole output."""

    text: str
    cut: bool = False
    image: Image | None = None
    size: int = 0
    lines: int = 0

    def notice(self, path: str, tools: Collection[str]) -> str:
        """The notice above a part of the output: how much there is, and how to read on with the tools of the run."""
        counted = f"{self.size:,} bytes in {self.lines:,} lines" if self.lines else f"{self.size:,} bytes"
        return (
            f"The output is too large: {counted}. All of it is in {path}. {how_to_read(tools)} "
            "These are its beginning and its end:"
        )


def output_limit(value: str) -> int:
    """The limit in characters, from a setting."""
    return min(int(value), MOST_CHARS) if value.isdecimal() and int(value) else DEFAULT_CHARS


def read_output(path: Path, size: int, whole: int, part: int) -> ShownOutput:
    """Read `size` bytes: up to `whole` characters in full, otherwise `part` of the beginning and the end."""
    with path.open("rb") as file:
        if size <= 4 * whole:
            data = file.read(4 * whole)
            if image := as_image(data):
                return ShownOutput("", image=image)
            text = readable(data.decode("utf-8", "replace"))
            if len(text) <= whole:
                return ShownOutput(text)
            return ShownOutput(head_and_tail(text, text, part, size), cut=True, size=size, lines=data.count(b"\n"))
        head = file.read(4 * part)
        if size <= MAX_IMAGE_BYTES and media_type(head):
            return ShownOutput("", image=as_image(head + file.read()))
        file.seek(-min(4 * part, size), os.SEEK_END)
        tail = file.read().lstrip(bytes(range(0x80, 0xC0)))  # the rest of a character that was cut in two
        lines = count_lines(file) if size <= MAX_COUNTED_BYTES else 0
    first, last = (readable(data.decode("utf-8", "replace")) for data in (head, tail))
    return ShownOutput(head_and_tail(first, last, part, size), cut=True, size=size, lines=lines)


def count_lines(file: BinaryIO) -> int:
    """How many lines a file has."""
    file.seek(0)
    return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def head_and_tail(first: str, last: str, chars: int, size: int) -> str:
    """The beginning of one text and the end of the other."""
    half = chars // 2
    return f"{first[:half]}\n[... of {size:,} bytes the middle is left out ...]\n{last[len(last) - half :]}"


def readable(text: str) -> str:
    """The text without terminal escapes and without overwritten parts of lines."""
    if text.isprintable():
        return text
    text = ESCAPES.sub("", text).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return plain(text)


def as_image(data: bytes) -> Image | None:
    """The output as an image, if it is one."""
    if kind := media_type(data):
        return Image(base64.b64encode(data).decode(), kind) if len(data) <= MAX_IMAGE_BYTES else None
    if not data.startswith(b"data:image/"):
        return None
    found = DATA_URI.match(data.decode("ascii", "replace").strip())
    try:
        return Image(base64.b64encode(base64.b64decode(found[2])).decode(), found[1]) if found else None
    except binascii.Error:
        return None
