"""
Encodings of text files: detecting, decoding and encoding.

Nothing here re-encodes a whole file. An edit replaces spans of bytes; all other bytes stay as they are, even those that
are invalid in the encoding.
"""

import codecs
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail.errors import ToolError
from handrail.lazy import lazy
from handrail.records import record

if TYPE_CHECKING:
    from handrail.files import guess_encoding as guess
else:
    guess = lazy("handrail.files.guess_encoding")  # only for what is neither UTF-8 nor marked

BINARY_SAMPLE = 8 * 1024
UTF16_SAMPLE = 64 * 1024
PIECE = 256 * 1024
"""Bytes decoded at once to check validity: the text of a whole window would not fit in the processor's cache."""
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
UNITS = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
EAST_ASIAN = frozenset({"cp932", "euc_jp", "gbk", "gb18030", "cp949"})
SHOWN_NAMES = {
    "utf-8": "UTF-8", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "utf-32-le": "UTF-32", "utf-32-be": "UTF-32",
    "cp932": "Shift-JIS", "euc_jp": "EUC-JP", "gbk": "GBK", "cp949": "EUC-KR", "iso8859_1": "Latin-1",
}  # fmt: skip


@record
class Encoding:
    """A Python codec and the byte order mark of the file."""

    name: str = "utf-8"
    mark: bytes = b""

    @property
    def direct(self) -> bool:
        """Whether looking for bytes is looking for text: no character's bytes can begin inside another's."""
        return self.name not in EAST_ASIAN and self.name not in UNITS

    @property
    def shown(self) -> str:
        """The name people know it by."""
        return SHOWN_NAMES.get(self.name, self.name)

    def decode(self, data: bytes) -> str:
        """Decode bytes without a mark. Invalid bytes become lone surrogates; incomplete units are dropped."""
        unit = UNITS.get(self.name, 0)
        if unit:
            return data[: len(data) - len(data) % unit].decode(self.name, "surrogatepass")
        return data.decode(self.name, "surrogateescape")

    def encode(self, text: str, file: str) -> bytes:
        """The bytes of a text."""
        try:
            return text.encode(self.name)
        except UnicodeEncodeError as error:
            char = text[error.start]
            name = unicodedata.name(char, "a lone surrogate" if "\ud800" <= char <= "\udfff" else "no name")
            line = text.count("\n", 0, error.start) + 1
            sign = ascii(char) if "\ud800" <= char <= "\udfff" else repr(char)
            raise ToolError(
                f"{sign} (U+{ord(char):04X}, {name}; line {line} of the new text) cannot be written to {file!r}: the "
                f"file is in {self.shown}, which does not have it. Nothing was changed. Use other characters, or ask "
                "the user whether the file should be in UTF-8."
            ) from error

    def has(self, text: str) -> bool:
        """Whether the encoding can represent the text."""
        try:
            text.encode(self.name)
        except UnicodeEncodeError:
            return False
        return True


UTF8 = Encoding()


def detect_encoding(windows: Iterable[bytes]) -> Encoding | None:
    """The encoding: by its mark, UTF-16, UTF-8 even with a few broken bytes, or a guess; None = it is not text."""
    decoder = None
    for number, window in enumerate(windows):
        is_ascii = window.isascii()
        if number == 0:
            for mark, name in () if is_ascii else MARKS:
                if window.startswith(mark):
                    return Encoding(name, mark) if _valid(window, name) else None
            if b"\0" in window[:BINARY_SAMPLE]:
                return _unmarked_utf16(window)
        if is_ascii and (decoder is None or not decoder.getstate()[0]):
            continue
        decoder = decoder or codecs.getincrementaldecoder("utf-8")()
        view = memoryview(window)
        try:
            for start in range(0, len(view), PIECE):
                decoder.decode(view[start : start + PIECE])
        except UnicodeDecodeError:
            return UTF8 if _nearly_utf8(window) else Encoding(guess.guess_encoding(window))
    return UTF8


def _valid(window: bytes, name: str) -> bool:
    """Whether a marked text is valid; only UTF-32 cannot preserve invalid bytes."""
    if not name.startswith("utf-32"):
        return True
    try:
        window[: len(window) & ~3].decode(name)
    except UnicodeDecodeError:
        return False
    return len(window) % 4 == 0


def _unmarked_utf16(window: bytes) -> Encoding | None:
    """UTF-16 if in one byte order nearly all characters are common ones, despite the zero bytes."""
    sample = window[: UTF16_SAMPLE if len(window) > UTF16_SAMPLE else len(window) & ~1]
    texts = {name: sample.decode(name, "surrogatepass") for name in ("utf-16-le", "utf-16-be")}
    best = max(texts, key=lambda name: guess.written_share(texts[name]))
    return Encoding(best) if guess.written_share(texts[best]) >= guess.LIKELY and _explains_zeros(texts[best]) else None


def _explains_zeros(text: str) -> bool:
    """Whether nearly all zero bytes belong to letters and signs of Western Europe, or to a common character."""
    halves = [char for char in text if char <= "\xff" or not ord(char) & 0xFF]
    return 50 * sum(char <= "\xff" or char in guess.ALL_COMMON for char in halves) >= 49 * len(halves)


def _nearly_utf8(window: bytes) -> bool:
    """Whether most of the text beyond ASCII is valid UTF-8: in other encodings that happens only by chance."""
    start = guess.first_high(window)
    text = window[start : start + UTF16_SAMPLE].decode("utf-8", "surrogateescape")
    broken = sum("\udc80" <= char <= "\udcff" for char in text)
    good = sum(char > "\x7f" for char in text) - broken
    return good >= 4 * broken
