"""What a change of a file is, and who keeps what it does away with."""

import os
from typing import Protocol

from handrail.records import record


@record
class FileState:
    """What a file holds, by hash, and its permission bits."""

    digest: str
    size: int
    mode: int


@record
class Note:
    """Who changes something: a tool and the call, or a command of a person."""

    tool: str = ""
    call: str = ""


@record
class WriteResult:
    """How a file is after it was written, and what people should know about it."""

    stat: os.stat_result
    digest: str
    notice: str = ""


class UndoJournal(Protocol):
    """Keeps what a change does away with, before the change happens. Its methods raise OSError when they cannot."""

    def begin(self, path: str, old: FileState | None, source: int | None, temp: str, note: Note) -> tuple[str, str]:
        """
        Keep the old content; the key of the change, and what people should know.

        Without a source the content comes with `take`: it will have the name `temp` when the change has happened.
        """

    def keep(self, old: FileState, source: int) -> str:
        """Keep content by copying it; what people should know."""

    def takes(self, old: FileState, device: int) -> bool:
        """Whether a file of this size on this device can be taken over instead of being copied."""

    def take(self, old: FileState, folder: int, name: str) -> None:
        """Take over the file of this name, with the content that a change did away with."""

    def ready(self, key: str, new: FileState | None, *, in_place: bool = False) -> None:
        """The new content is complete; what follows is the change itself. None = the file goes."""

    def finish(self, key: str) -> None:
        """A change that could have stopped half-way has not."""

    def void(self, key: str) -> None:
        """The change did not happen."""

    def folder_changed(self, path: str, note: Note, *, made: bool) -> None:
        """A folder is about to be made, or removed."""

    def spool(self) -> int:
        """A file without a name, for as long as its descriptor is open."""

    def open_content(self, digest: str) -> int:
        """A descriptor of kept content."""
