"""Bounds and escapes the texts of hooks: long ones go to a file, and none can close the frame around it."""

import os
import re
from hashlib import sha256
from pathlib import Path

from handrail.files.private_folder import make_private_folder

MAX_TEXT = 10_000

# compiled when first used: many programs have no hooks
_FRAMES = r"(?i)<(?=\s*/?\s*(?:system-reminder|tool_use_error|environment|memory|memory-file)\b)"


def escape_frames(text: str) -> str:
    """Escape the tags with which the program addresses the model."""
    return re.sub(_FRAMES, "&lt;", text) if "<" in text else text


def reminder(text: str) -> str:
    """A text in the frame that tells the model that it comes from the program."""
    return f"<system-reminder>\n{escape_frames(text)}\n</system-reminder>"


def bound_text(text: str, folder: Path | None) -> str:
    """At most 10,000 characters of a text. A longer one is saved to a file, which the end names."""
    if len(text) <= MAX_TEXT:
        return text
    note = f"\n[{len(text):,} characters, cut. {_save(text, folder)}]"
    return text[: MAX_TEXT - len(note)] + note


def _save(text: str, folder: Path | None) -> str:
    if folder is None:
        return "The rest is lost."
    data = text.encode("utf-8", "backslashreplace")
    path = folder / f"hook-{sha256(data).hexdigest()[:16]}.txt"
    try:
        make_private_folder(folder)
        path.unlink(missing_ok=True)  # a planted link must not redirect the text
        with open(path, "xb", opener=_owner_only) as file:
            file.write(data)
    except OSError as error:
        return f"The rest is lost: writing it to disk failed ({error.strerror})."
    return f"The whole text is in {path}."


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
