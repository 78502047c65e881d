"""Reads and checks one settings file. Each problem names the file, the line and the key."""

import codecs
import errno
import json
import os
import stat
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from handrail.config.check import check_values, text_problem
from handrail.config.json_paths import MAX_DEPTH, JsonPath, column_of, format_path, line_of
from handrail.config.places import SettingsFile
from handrail.config.problems import Problem
from handrail.config.watch import dead_link
from handrail.errors import JsonTextError, SettingsFileError
from handrail.lazy import lazy
from handrail.processes.sandbox.placeholder_marks import stands_in

if TYPE_CHECKING:
    from handrail.config import json_text
else:
    json_text = lazy("handrail.config.json_text")  # only broken files and line numbers need it

MAX_BYTES = 4_000_000
LOOK = "Look at the file, its owner and its mode."


class SettingsDocument:
    """The values of one file that can be used. `broken` says why there are none."""

    __slots__ = ("_root", "broken", "doubtful", "file", "problems", "text", "values")

    def __init__(self, file: SettingsFile, text: str, values: dict[str, Any], broken: Problem | None = None) -> None:
        self.file = file
        self.text = text
        self.broken = broken
        self._root: json_text.JsonNode | None = None
        self.values, found = check_values(values) if not broken else ({}, [])
        self.doubtful = broken is not None or any(each.doubt for each in found)
        """Whether it is unknown what the file forbids."""
        self.problems = tuple(self.problem(each.path, each.message, hint=each.hint) for each in found)
        if broken:
            self.problems = (broken,)

    def line(self, path: Iterable[str | int]) -> int:
        """The line that a value is written in. The text is only scanned on demand."""
        root = self._scan_once()
        return line_of(self.text, root.starts(tuple(path))) if root else 0

    def lines(self, path: Iterable[str | int]) -> list[int]:
        """The lines of the usable texts of a list."""
        root = self._scan_once()
        node = root.find(tuple(path)) if root else None
        if node is None:
            return []
        items = node.items if isinstance(node.value, list) else (node,)
        ends = list(accumulate(len(line) + 1 for line in self.text.split("\n")))
        usable = [item for item in items if isinstance(item.value, str) and not text_problem(item.value)]
        return [bisect_right(ends, item.start) + 1 for item in usable]

    def _scan_once(self) -> "json_text.JsonNode | None":
        if self._root is None and self.text and not self.broken:
            self._root = json_text.scan(self.text)
        return self._root

    def problem(self, path: JsonPath, message: str, *, hint: bool = False) -> Problem:
        """Something wrong with the value at the end of a path."""
        return Problem(self.file.source, self.file.shown, self.line(path), message, format_path(path), hint=hint)


def read_document(file: SettingsFile) -> SettingsDocument | None:
    """The document in a settings file; None if there is none. Never raises: what is wrong is in the document."""
    try:
        data = read_bytes(file.path)
    except SettingsFileError as error:
        return SettingsDocument(file, "", {}, Problem(file.source, file.shown, 0, error.message))
    return None if data is None else document_of(file, data)


def document_of(file: SettingsFile, data: bytes) -> SettingsDocument:
    """The document that these bytes hold."""
    text = ""
    try:
        text = decode_text(data)
        return SettingsDocument(file, text, parse_object(text))
    except SettingsFileError as error:
        line = 0 if error.offset is None else line_of(text, error.offset)
        column = 0 if error.offset is None else column_of(text, error.offset)
        key = f" (in {format_path(error.path)})" if error.path else ""
        message = f"{error.message}{key}. Nothing in this file takes effect until it is repaired."
        return SettingsDocument(file, text, {}, Problem(file.source, file.shown, line, message, column=column))


def read_bytes(path: Path) -> bytes | None:
    """
    The bytes of a regular file; None if it does not exist. Never waits for a pipe or a device.

    Raises:
        SettingsFileError: it is there and cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if link := dead_link(str(path)):
            its = "this" if link == str(path) else f"its folder {link!r}"
            raise SettingsFileError(f"{its} is a link to nothing. Repair or remove it.") from None
        return None
    except NotADirectoryError:
        return None
    except OSError as error:
        reason = "a loop of links" if error.errno == errno.ELOOP else error.strerror
        raise SettingsFileError(f"it cannot be read: {reason}. {LOOK}") from error
    try:
        mode = os.fstat(descriptor).st_mode
        if stands_in(mode):
            return None
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            raise SettingsFileError(f"this is {kind}, and a settings file is expected here. Move it away.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SettingsFileError(f"it cannot be read: {error.strerror}. {LOOK}") from error
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise SettingsFileError(f"it is larger than {MAX_BYTES:,} bytes. Shorten it.")
    return data


def decode_text(data: bytes) -> str:
    """The text of a file, without its byte order mark."""
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsFileError(
            f"it is not UTF-8 text ({error.reason} at byte {error.start}, line {line}). Save it as UTF-8"
        ) from error


def parse_object(text: str) -> dict[str, Any]:
    """The object that a text holds. Raises SettingsFileError if it is not strict JSON, or not an object."""
    try:
        values = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_refuse, parse_float=_finite)
        if text.count("{") + text.count("[") > MAX_DEPTH:
            json_text.scan(text)  # it could be nested too deeply
    except (ValueError, RecursionError) as error:
        raise _locate(text, error) from error
    if not isinstance(values, dict):
        raise SettingsFileError("it must hold an object: { ... }", 0)
    return values


def _locate(text: str, error: Exception) -> SettingsFileError:
    """The same error with its position, which the slower parser knows."""
    try:
        json_text.scan(text)
    except JsonTextError as found:
        return found
    return SettingsFileError(f"it is not strict JSON: {error}", 0)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("an object has the same key twice")
    return values


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise ValueError(f"{text} is too large")
    return number
