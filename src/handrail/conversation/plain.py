"""Text that is safe to show on a terminal: what models, files and servers say must not steer it."""

import json
import re
from typing import Any

# texts, which `re` compiles when they are first used and keeps: most runs print nothing that they could match
CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"

UNSAFE = r"[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
"""Those of them that JSON leaves as they are."""


def plain(text: str) -> str:
    """The text with control and direction-changing characters and lone surrogates made visible; lines and tabs stay."""
    if text.replace("\n", "").replace("\t", "").isprintable():  # none of those is
        return text
    return re.sub(CONTROL, lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def plain_json(value: Any, *, indent: int | None = None, compact: bool = False, exact: bool = False) -> str:
    """
    The value as JSON that steers no terminal: such characters are escaped, which means the same to programs.

    Strict readers refuse half a character (a lone surrogate), so it becomes `?`; with `exact` it is escaped as well.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=(",", ":") if compact else None)
    return (
        text if text.isascii() and "\x7f" not in text else re.sub(UNSAFE, _escape_exactly if exact else _escape, text)
    )


def without_steering(text: str) -> str:
    """The text without C1 and direction-changing characters and lone surrogates, which no output of ours needs."""
    return text if text.isascii() else re.sub(UNSAFE, _escape, text)


def _escape(found: re.Match[str]) -> str:
    return "?" if "\ud800" <= found[0] <= "\udfff" else _escape_exactly(found)


def _escape_exactly(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
