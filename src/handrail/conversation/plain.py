"""Text that is safe to show on a terminal: what models, files and servers say must not steer it."""

import json
import re
from typing import Any

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """The text with control and direction-changing characters and lone surrogates made visible; lines and tabs stay."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def plain_json(value: Any, *, indent: int | None = None) -> str:
    """A value as JSON that is safe to show: the same characters are written as JSON escapes them."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
