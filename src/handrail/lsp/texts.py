"""Texts of servers as they may be shown to a model and a person."""

import re

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that move a terminal's cursor, change its colours, or turn the direction of text."""


def clean_text(text: str) -> str:
    """The text without lone surrogates and control characters; tabs and line ends stay."""
    clean = text.replace("\r\n", "\n")
    clean = clean if clean.isascii() else clean.encode("utf-8", "replace").decode()
    return CONTROLS.sub("\ufffd", clean)


def one_line(text: str, most: int) -> str:
    """The text in one line of at most so many characters."""
    line = " ".join(clean_text(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
