"""Opens the file of a Read call, or says why it cannot be read."""

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self

from handrail.builtin.services import ToolServices
from handrail.builtin.support.places import place_of
from handrail.errors import ToolError
from handrail.files.copying import digest
from handrail.files.paths import FileKind, Place, open_decided
from handrail.files.source import FileSource
from handrail.lazy import lazy
from handrail.tools.context import ToolContext

if TYPE_CHECKING:
    import difflib
else:
    difflib = lazy("difflib")  # only for the name of a file that does not exist

MAX_SIZELESS = 8_000_000
MAX_NEIGHBOURS = 5_000
NO_FILE = {
    FileKind.FOLDER: "is a folder. List it with Glob: give it as path and no pattern.",
    FileKind.DEVICE: "is a pipe, socket or device. Read takes regular files only.",
    FileKind.PIPE: "is a pipe, socket or device. Read takes regular files only.",
    FileKind.SOCKET: "is a pipe, socket or device. Read takes regular files only.",
}


class OpenFile:
    """A regular file, held open, with its stat from before reading and its bytes."""

    def __init__(self, descriptor: int, place: Place) -> None:
        self._descriptor = descriptor
        self.name = place.spelling
        self.absolute = place.absolute
        self.path = Path(place.real)
        self.stat = os.fstat(descriptor)
        if not stat.S_ISREG(self.stat.st_mode):
            kind = FileKind.FOLDER if stat.S_ISDIR(self.stat.st_mode) else FileKind.DEVICE
            raise ToolError(f"{self.name!r} {NO_FILE[kind]}")
        self.source = FileSource(descriptor, self.stat.st_size) if self.stat.st_size else self._without_size()

    def _without_size(self) -> FileSource:
        """Read a file that reports no size, as files of the kernel do."""
        parts: list[bytes] = []
        while part := os.read(self._descriptor, 1 << 20):
            parts.append(part)
            if sum(map(len, parts)) > MAX_SIZELESS:
                raise ToolError(f"{self.name!r} does not end after {MAX_SIZELESS:,} bytes. Use a program.")
        return FileSource.of(b"".join(parts))

    @classmethod
    def of_call(cls, spelling: str, ctx: ToolContext, services: ToolServices) -> "OpenFile":
        """Open the file of a call."""
        if "\0" in spelling:
            raise ToolError(
                f"{spelling!r} cannot be a path: it holds what no file name can hold. Give the name of a file."
            )
        place = place_of(spelling, ctx, services)
        if place.kind is not FileKind.FILE:
            if place.kind in NO_FILE:
                raise ToolError(f"{spelling!r} {NO_FILE[place.kind]}")
            missing(place, services)
        try:
            descriptor = open_decided(place)
        except FileNotFoundError:
            missing(place, services)
        except OSError as error:
            raise unreadable(spelling, error.strerror or str(error)) from error
        try:
            return cls(descriptor, place)
        except OSError as error:
            os.close(descriptor)
            raise unreadable(spelling, error.strerror or str(error)) from error
        except ToolError:
            os.close(descriptor)
            raise

    def digest(self) -> str:
        """The hash of its content."""
        return digest(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def unreadable(spelling: str, problem: str) -> ToolError:
    return ToolError(f"{spelling!r} cannot be read: {problem}. Read another file, or ask the user.")


def missing(place: Place, services: ToolServices) -> NoReturn:
    """Raise that the file does not exist, with similar names."""
    if place.problem.startswith("cannot be looked at: "):
        raise unreadable(place.spelling, place.problem.partition("] ")[2].partition(": '")[0])
    folder = Path(place.real).parent
    near = difflib.get_close_matches(Path(place.real).name, _neighbours(folder, services), n=3, cutoff=0.6)
    hint = f" Did you mean {' or '.join(map(repr, near))} in the same folder?" if near else " Use Glob to find it."
    where = "" if folder.is_dir() else f" Its folder {str(folder)!r} does not exist either."
    raise ToolError(f"{place.spelling!r} does not exist.{where}{hint}")


def _neighbours(folder: Path, services: ToolServices) -> list[str]:
    """Names in a working folder that no rule hides; names of other folders stay secret."""
    if not any(folder == Path(inside) or folder.is_relative_to(inside) for inside in services.working_dirs()):
        return []
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(MAX_NEIGHBOURS), strict=False)]
    except OSError:
        return []
    return [name for name in names if not services.is_hidden(str(folder / name))]
