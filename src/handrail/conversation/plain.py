"""Text that is safe to show on a terminal: what models, files and servers say must not steer it."""

import re

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """The text with control and direction-changing characters and lone surrogates made visible; lines and tabs stay."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))
