"""Reads the Markdown files with front matter in which people define commands and agents."""

import os
from collections.abc import Iterator
from pathlib import Path

from handrail.extensions.places import ConfigFolder, reaches_out
from handrail.files.frontmatter import MarkdownFile, parse_frontmatter
from handrail.records import record

MAX_BYTES = 200_000
MAX_FILES = 1_000
MAX_DEPTH = 8


@record
class DefinitionFile:
    """One file. `name` is its path without the ending, with colons: `front:build` for `front/build.md`."""

    name: str
    path: Path
    shown: str
    source: str
    """project, user, policy or plugin."""
    content: MarkdownFile
    kind: str = ""
    """The folder that it is found in, such as `commands`."""
    text: str = ""
    """The whole file."""
    root: str = ""
    """The folder of the plugin that brings it."""


@record
class UnreadFile:
    """A file that is not read, and why."""

    shown: str
    why: str

    def __str__(self) -> str:
        return f"{self.shown}: {self.why}"


def read_definitions(folder: ConfigFolder, kind: str) -> Iterator[DefinitionFile | UnreadFile]:
    """The files of a kind, such as `commands`, in the order of their names."""
    top = folder.holder(kind)
    if top is None:
        return
    lead = folder.shown if folder.kind else f"{folder.shown}/{kind}"
    files = (path for path in _files_below(top) if folder.only in ("", str(path.relative_to(top))))
    for number, path in enumerate(files):
        below = path.relative_to(top)
        shown = f"{lead}/{below}"
        if number == MAX_FILES:
            yield UnreadFile(lead, f"it holds more than {MAX_FILES:,} files; the rest is not read")
            return
        if path.suffix != ".md":
            yield UnreadFile(shown, "it is not read, because its name does not end with .md")
            continue
        try:
            if not path.is_file():  # a pipe would be waited for
                yield UnreadFile(shown, "it is not a regular file")
            elif folder.tree is not None and reaches_out(path, folder.tree):
                yield UnreadFile(shown, "it leads out of the project, or to what may hold secrets, and is not read")
            elif path.stat().st_size > MAX_BYTES:
                yield UnreadFile(shown, f"it is larger than {MAX_BYTES:,} bytes, and is not read")
            else:
                text = path.read_text("utf-8", "replace")
                name = folder.full_name(":".join(below.with_suffix("").parts))
                yield DefinitionFile(name, path, shown, folder.source, parse_frontmatter(text), kind, text, folder.root)
        except OSError as error:
            yield UnreadFile(shown, f"it cannot be read: {error.strerror}")


def definition_marks(folder: ConfigFolder, kind: str) -> Iterator[tuple[str, int, int]]:
    """What changes when a file of a kind is written, added or removed."""
    top = folder.holder(kind)
    for path in _files_below(top) if top is not None else ():
        if folder.only and folder.only != path.name:
            continue
        try:
            status = path.stat()
        except OSError:  # a link to nothing
            yield str(path), 0, 0
        else:
            yield str(path), status.st_mtime_ns, status.st_size


def _files_below(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Links to folders are not followed, and names that begin with a dot are left out."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < MAX_DEPTH:
                yield from _files_below(Path(entry.path), depth + 1)
        elif not entry.is_dir():
            yield Path(entry.path)
