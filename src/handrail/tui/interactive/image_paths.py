"""Paths of images in a prompt, typed or dropped onto the terminal: each becomes a mention, so that it is read."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

KINDS = r"\.(?:png|jpe?g|gif|webp)"
IMAGE = re.compile(
    rf"(?<![^\s(])(?:'(?P<single>[^'\n]+{KINDS})'|\"(?P<double>[^\"\n]+{KINDS})\""
    rf"|(?P<bare>(?:[^\s\\'\"@]|\\[^\n])(?:[^\s\\]|\\[^\n])*?{KINDS}))(?![^\s).,;:!?])",
    re.IGNORECASE,
)
"""A path in quotes, or one in which a backslash stands before each blank, as terminals write what is dropped there."""


def mention_images(text: str, folder: Path) -> str:
    """The prompt with an at sign before each path of an image that is there; the folder is the working one."""

    def mention(found: re.Match[str]) -> str:
        quoted = found["single"] or found["double"]
        path = quoted or re.sub(r"\\(.)", r"\1", found["bare"])
        if path.lower().startswith("file://"):
            path = unquote(urlsplit(path).path)
        return f"@{escape(path)}" if is_file(folder / Path(path).expanduser()) else found[0]

    return IMAGE.sub(mention, text)


def escape(path: str) -> str:
    """The path as a mention takes it."""
    return re.sub(r"([\s\\])", r"\\\1", path)


def is_file(path: Path) -> bool:
    """Whether it is a file; a name that cannot be one is not."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
