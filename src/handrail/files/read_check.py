"""The read-before-write check: a file is changed only as its agent has read it."""

from pathlib import Path

from handrail.errors import ToolError
from handrail.files.diff import format_patch, make_hunks, split_lines
from handrail.files.memory import FileMemory
from handrail.files.replace import TargetFile
from handrail.files.text import Encoding

MAX_COMPARED_BYTES = 1024 * 1024
MAX_NEWS_LINES = 20


def not_read(spelling: str) -> str:
    """The message about a file that has not been read."""
    return f"{spelling!r} has not been read yet. Read it first, then change it."


def known_digest(target: TargetFile, files: FileMemory) -> str:
    """
    The hash of the present content, which this agent has read.

    Raises:
        ToolError: it was not read, or has changed since.
    """
    path = Path(target.place.real)
    assert target.stat is not None
    known = files.get(path)
    if known is None:
        raise ToolError(not_read(target.shown))
    if files.is_unchanged(path, target.stat):
        return known.digest
    digest = target.digest()
    if files.confirm(path, target.stat, digest):
        return digest
    raise ToolError(
        f"{target.shown!r} has changed since you read it, and was left as it is. Read it again, then repeat the change."
        + _news(target, files.content(path))
    )


def _news(target: TargetFile, before: bytes | None) -> str:
    """The changes since the last read, if they are known and short."""
    source = target.source
    if before is None or max(source.size, len(before)) > MAX_COMPARED_BYTES:
        return ""
    encoding = Encoding()
    news = make_hunks(split_lines(encoding.decode(before)), split_lines(encoding.decode(source.read(0, source.size))))
    lines = format_patch(news).split("\n")
    return "\n".join(["\nWhat changed:", *lines]) if len(lines) <= MAX_NEWS_LINES else ""
