"""Files as servers and answers need them: whole texts, and single lines."""

import os
import stat
from collections.abc import Callable

from handrail.errors import LspError, ToolError
from handrail.files.paths import FileKind, Place, open_decided, resolve
from handrail.files.text import detect_encoding
from handrail.lsp.positions import split_text

MAX_FILE = 8 * 1024 * 1024


def read_text(place: Place) -> str:
    """The text of the file that was decided on; LspError if it cannot be had."""
    not_a_file = LspError(f"{place.spelling!r} is not a file. Give a file of the project as file_path.")
    if place.kind is not FileKind.FILE:
        raise not_a_file
    try:
        descriptor = open_decided(place)
    except (OSError, ToolError) as error:
        raise LspError(f"{place.spelling!r} cannot be read: {getattr(error, 'strerror', '') or error}") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise not_a_file
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise LspError(f"{place.spelling!r} has more than {MAX_FILE:,} bytes, which is too much for a language server.")
    encoding = detect_encoding([data])
    if encoding is None:
        raise LspError(f"{place.spelling!r} is a binary file. Language servers know text only.")
    return encoding.decode(data[len(encoding.mark) :])


def real_path(path: str) -> str:
    """The path with its links followed."""
    return os.path.realpath(path)


def text_now(path: str) -> str | None:
    """The text of a file as it is now; None if it is gone, or not text."""
    try:
        return read_text(resolve(path, "/", "/"))
    except LspError:
        return None


class SourceLines:
    """The lines of the files that an answer names, each file read once."""

    def __init__(self, shows: Callable[[str], bool]) -> None:
        self._shows = shows
        self._known: dict[str, list[str] | None] = {}
        self._names: dict[str, str] = {}

    def real(self, path: str) -> str:
        """The real path of a file that may be shown; empty if it may not."""
        if path not in self._names:
            place = resolve(path or "/", "/", "/")
            may = place.kind is FileKind.FILE and self._shows(place.real)
            self._names[path] = place.real if may else ""
        return self._names[path]

    def lines(self, real: str) -> list[str] | None:
        """The lines of a file; None if it cannot be read, or may not be shown."""
        if real not in self._known:
            place = resolve(real, "/", "/")
            try:
                self._known[real] = split_text(read_text(place)) if self._shows(place.real) else None
            except LspError:
                self._known[real] = None
        return self._known[real]
