"""The interface between file changes and the undo journal."""

import os
from typing import Protocol

from handrail.records import record


@record
class FileState:
    """The content of a file by hash, and its permission bits."""

    digest: str
    size: int
    mode: int


@record
class Note:
    """Who changes a file: a tool and its call, or a command of the user."""

    tool: str = ""
    call: str = ""


@record
class WriteResult:
    """A file after it was written, and a notice for the user."""

    stat: os.stat_result
    digest: str
    notice: str = ""


class UndoJournal(Protocol):
    """Keeps old content before a change happens. Its methods raise OSError on failure."""

    def begin(self, path: str, old: FileState | None, source: int | None, temp: str, note: Note) -> tuple[str, str]:
        """
        Record a change and keep the old content; returns the key of the change and a notice for the user.

        Without a source, `take` brings the content later: the old file has the name `temp` after the change.
        """

    def keep(self, old: FileState, source: int) -> str:
        """Keep content by copying it; returns a notice for the user."""

    def takes(self, old: FileState, device: int) -> bool:
        """Whether the journal can take over the file on this device instead of copying it."""

    def take(self, old: FileState, folder: int, name: str) -> None:
        """Take over the file of this name, which has the old content."""

    def ready(self, key: str, new: FileState | None, *, in_place: bool = False) -> None:
        """The new content is complete and the change follows. None = the file is removed."""

    def finish(self, key: str) -> None:
        """A change in place is complete."""

    def void(self, key: str) -> None:
        """The change did not happen."""

    def folder_changed(self, path: str, note: Note, *, made: bool) -> None:
        """A folder is about to be created or removed."""

    def spool(self) -> int:
        """A nameless temporary file."""

    def open_content(self, digest: str) -> int:
        """Open kept content."""
