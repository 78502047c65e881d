"""What background tasks have written."""

import os
from pathlib import Path


def read_end(file: str, most: int) -> str:
    """The end of what a task wrote."""
    try:
        with Path(file).open("rb") as source:
            source.seek(max(0, os.fstat(source.fileno()).st_size - most))
            return source.read().decode("utf-8", "replace") or "(no output yet)"
    except OSError as error:
        return f"Its output cannot be read: {error}."
