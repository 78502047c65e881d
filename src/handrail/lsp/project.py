"""Looks into a project: which of its files a server could begin with."""

import os
from collections import Counter
from collections.abc import Callable, Collection

from handrail.errors import LspError
from handrail.files.paths import resolve
from handrail.lsp.source import read_text

MAX_ENTRIES = 5_000
SKIPPED = frozenset(("node_modules", "target", "vendor", "venv", "build", "dist", "__pycache__"))


def main_file(root: str, endings: Collection[str], shows: Callable[[str], bool]) -> tuple[str, str]:
    """A file of the most common language that a server is for, and its text; LspError if there is none."""
    found: dict[str, list[str]] = {}
    entries = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name[:1] != "." and name not in SKIPPED)
        for name in sorted(files):
            ending = os.path.splitext(name)[1].lower()  # noqa: PTH122  # costs less
            if ending in endings:
                found.setdefault(ending, []).append(f"{folder}/{name}")
        entries += len(folders) + len(files)
        if entries > MAX_ENTRIES:
            break
    for ending, _ in Counter({ending: len(paths) for ending, paths in found.items()}).most_common():
        for path in found[ending][:20]:
            place = resolve(path, "/", "/")
            if shows(place.real):
                try:
                    return place.real, read_text(place)
                except LspError:
                    continue
    raise LspError("The project has no file that an installed language server is for. Give a file as file_path.")
