"""
Resolves paths: the only module that asks the file system about a path before permission is decided.

A `Place` holds the path as spelled and the path with every link followed; permission checks look at both.
`open_decided` opens the resolved path and refuses links, so the decided file is the one opened.
"""

import errno
import os
import posixpath
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Protocol

from handrail.errors import ToolError
from handrail.files.credentials import holds_credentials
from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.records import record


class FileKind(Enum):
    """What a path leads to after all links."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"  # broken
    DEVICE = "device"
    PIPE = "pipe"
    SOCKET = "socket"
    MISSING = "missing"

    __hash__ = object.__hash__  # fast: every decision looks kinds up


@record
class Place:
    """A path as spelled and as resolved. `problem` says why the spelling is probably not a literal path."""

    spelling: str
    absolute: str
    """Home and working folder filled in, `.` and `..` removed textually; links are kept."""
    real: str
    """All links followed, in parents too; the last part may not exist."""
    exists: bool = True
    kind: FileKind = FileKind.FILE
    problem: str = ""
    links: int = 1
    """How many hard links the file has; with more than one, another path is the same file."""
    credentials: bool = False
    """Whether it has an ordinary name and a password or token in it."""
    by_process: bool = False
    """Whether each process finds another file there: the way goes through its folder, its root or its open files."""


MAX_MATCHES = 1_000
MAX_BENEATH = 50_000

URL = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]+:/")
DRIVE = lazy_pattern(r"[A-Za-z]:(?:[\\/]|\Z)")
UNUSUAL = frozenset("*?{}\\")
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# What each process finds in another place: its folder and its root, and what lies behind its open files.
OF_PROCESS = lazy_pattern(r"/proc/[^/]+/(?:task/[^/]+/)?(?:cwd|root|((?:fd|map_files)/[^/]+))\Z")
MAX_LINKS = 40
"""As many as Linux follows."""
O_PATH = getattr(os, "O_PATH", 0)
"""Opens a path without opening its file; only Linux has it."""
KINDS = {stat.S_IFDIR: FileKind.FOLDER, stat.S_IFIFO: FileKind.PIPE, stat.S_IFSOCK: FileKind.SOCKET}


def resolve(spelling: str, cwd: str, home: str) -> Place:
    """Resolve a path that a file tool was given, from `cwd`. Works for every text; never raises."""
    place = locate(home + spelling[1:] if spelling == "~" or spelling.startswith("~/") else spelling, cwd)
    problem = path_problem(spelling) or place.problem
    if not problem and not place.exists and not UNUSUAL.isdisjoint(spelling):
        odd = next(char for char in spelling if char in UNUSUAL)
        problem = f"{odd!r} is taken literally here, and there is no file of that name"
    if problem == place.problem and place.spelling == spelling:
        return place
    return replace(place, spelling=spelling, problem=problem)


def locate(path: str, cwd: str) -> Place:
    """Resolve a text that is certainly a path, taken literally. Never raises."""
    text = path if path.startswith("/") else f"{cwd}/{path}"
    real = absolute = normalize(text)
    status = stat_unless_linked(text, absolute)
    if status is not None:
        kind, links = kind_of(status)
    else:
        try:
            real = normalize(os.path.realpath(text))
            kind, links = stat_kind(text, real)
        except (OSError, ValueError) as error:
            problem = f"cannot be looked at: {error}"
            by_process = passes_process(text)
            return Place(path, absolute, absolute, False, FileKind.MISSING, problem, 0, by_process=by_process)
    linked = real != absolute
    is_secret = kind is FileKind.FILE and (holds_credentials(real) or (linked and holds_credentials(absolute)))
    is_there = kind not in (FileKind.MISSING, FileKind.LINK)
    by_process = (linked or "/../" in text) and status is None and passes_process(text)
    return Place(path, absolute, real, is_there, kind, "", links, is_secret, by_process)


def passes_process(path: str) -> bool:
    """Whether the way to an absolute path goes through what each process finds in another place: `/dev/fd/../cwd/x`."""
    here, left, links = "", path.split("/")[::-1], 0
    while left and links <= MAX_LINKS:
        name = left.pop()
        if name in ("", "."):
            continue
        here = here.rpartition("/")[0] if name == ".." else f"{here}/{name}"
        found = OF_PROCESS.match(here) if here.startswith("/proc/") else None
        if found and (not found[1] or any(left)):
            return True
        if target := read_link(here):
            links += 1
            here = "" if target.startswith("/") else here.rpartition("/")[0]
            left += target.split("/")[::-1]
    return False


def exists(path: str, cwd: str) -> bool:
    """Whether anything has that name, even a broken link. Much cheaper than `locate`."""
    return os.path.lexists(posixpath.join(cwd, path))


class PatternMatcher(Protocol):
    """Tells which names one part of a pattern may match."""

    def may_match(self, name: str) -> bool: ...


def match_files(parts: Sequence[str | PatternMatcher], folder: str) -> tuple[str, ...] | None:
    """The paths that a pattern may match, seen from a folder: part by part a name or a Matcher; None = too many."""
    found = tuple(islice(matches(parts, folder if parts[0] else "/"), MAX_MATCHES + 1))
    return None if len(found) > MAX_MATCHES else found


def matches(parts: Sequence[str | PatternMatcher], folder: str) -> Iterator[str]:
    if not parts:
        yield folder
        return
    first, *rest = parts
    if isinstance(first, str):  # an empty part is a doubled slash, or a slash at the end: a folder only
        path = posixpath.join(folder, first)
        if os.path.lexists(path) if first else posixpath.isdir(path):
            yield from matches(rest, path)
        return
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if first.may_match(entry.name)]
    except (OSError, ValueError):
        return  # bash cannot list it either
    for name in names:
        path = posixpath.join(folder, name)
        if not rest or posixpath.isdir(path):
            yield from matches(rest, path)


def read_link(path: str) -> str:
    """The text of a link; empty for anything else."""
    try:
        return str(Path(path).readlink())
    except (OSError, ValueError):
        return ""


class FolderContents(NamedTuple):
    """The paths in a folder, at any depth, relative to it."""

    paths: tuple[str, ...]
    links: tuple[str, ...]
    """The paths that are links. Their targets are not listed."""


def list_folder(folder: str, hidden: bool = True) -> FolderContents | None:
    """List all paths in a folder, without `hidden` none that begins with a dot; None if there are too many."""
    paths: list[str] = []
    links: list[str] = []
    inner = [""]
    while inner:
        start = inner.pop()
        try:
            with os.scandir(posixpath.join(folder, start)) as entries:
                for entry in entries:
                    if not hidden and entry.name.startswith("."):
                        continue
                    path = start + entry.name
                    paths.append(path)
                    if entry.is_symlink():
                        links.append(path)
                    elif entry.is_dir(follow_symlinks=False):
                        inner.append(f"{path}/")
        except OSError:
            continue  # a command of this user cannot list it either
        if len(paths) > MAX_BENEATH:
            return None
    return FolderContents(tuple(paths), tuple(links))


def normalize(path: str) -> str:
    """Normalize a path textually: no `.`, `..`, doubled or trailing slashes."""
    return "/" + posixpath.normpath(path).lstrip("/")


def stat_unless_linked(text: str, absolute: str) -> os.stat_result | None:
    """
    The status of a path on which there is no link, so that it is its own real path; None if that is not certain.

    `realpath` asks about each folder on the way, which takes three times as long.
    """
    if not O_PATH:
        return None
    try:
        file = os.open(text, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(file)
        return status if not stat.S_ISLNK(status.st_mode) and path_of(file) == absolute else None
    except OSError:
        return None
    finally:
        os.close(file)


def path_of(descriptor: int) -> str:
    """The path of what is open, without any link on the way: Linux knows it. Empty if it is not known."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - one of the hottest lines
    except OSError:
        return ""


def stat_kind(text: str, real: str) -> tuple[FileKind, int]:
    """What a resolved path is, and how many hard links it has."""
    try:
        return kind_of(os.stat(real))  # noqa: PTH116 - Path costs more than the call
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return (FileKind.LINK if posixpath.islink(text) else FileKind.MISSING), 0
        raise


def kind_of(status: os.stat_result) -> tuple[FileKind, int]:
    if stat.S_ISREG(status.st_mode):
        return FileKind.FILE, status.st_nlink
    return KINDS.get(stat.S_IFMT(status.st_mode), FileKind.DEVICE), 1


def real_path(cwd: Path, path: str) -> Path:
    """The absolute path with every link followed as far as it exists; as spelled if that fails. Never raises."""
    joined = os.path.join(cwd, path)  # noqa: PTH118  # Path.resolve raises for loops of links before Python 3.13
    try:
        return Path(os.path.realpath(joined))
    except (OSError, ValueError):
        return Path(os.path.abspath(joined))  # noqa: PTH100


def path_problem(spelling: str) -> str:
    """Why a spelling is probably not a literal path, and what to write instead; empty if it may be one."""
    if not spelling:
        return "the path is empty; name a file or folder"
    if spelling != spelling.strip():
        return "the path begins or ends with a blank; leave it out"
    has_colon = ":" in spelling
    if has_colon and URL.match(spelling):
        return "this is a URL, not a path; name a file of this machine"
    if has_colon and DRIVE.match(spelling):
        return "this is a path with a drive letter; write it from / or from the working folder"
    if spelling.startswith(("//", "\\\\")):
        return "this is a path on another machine; one of this machine begins with a single /"
    if spelling.startswith("~") and spelling[1:2] not in ("", "/"):
        return "the home folder of another user is not looked up; write its whole path"
    if "$" in spelling or "`" in spelling:
        return "variables and substitutions are not expanded in paths; write the path itself"
    if not spelling.isprintable() and any(unicodedata.category(char) in INVISIBLE for char in spelling):
        return "the path holds characters that cannot be seen; write it without them"
    return ""


def open_decided(place: Place, flags: int = os.O_RDONLY) -> int:
    """
    Open exactly the file that was decided on.

    No link is followed on the way, so a folder or file that was swapped for a link since the decision is refused.
    `flags` are those of `os.open`. Opening never waits, not even for a pipe that took the place of a file.

    Raises:
        ToolError: it is no longer what was decided on.
        OSError: it cannot be opened.
    """
    folder = decided_folder(place)
    try:
        name = place.real.rpartition("/")[2] or "."
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        raise swapped_error(place, error) from error
    finally:
        os.close(folder)


def decided_folder(place: Place) -> int:
    """Open the folder that holds the place, without following any link."""
    if O_PATH and (folder := open_unless_linked(place.real.rpartition("/")[0] or "/")) is not None:
        return folder
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in filter(None, place.real.split("/")[1:-1]):
        try:
            inner = open_subfolder(folder, name)
        except OSError as error:
            raise swapped_error(place, error) from error
        finally:
            os.close(folder)
        folder = inner
    return folder


def open_unless_linked(path: str) -> int | None:
    """A descriptor of a folder, if there is no link on its path; None if that is not certain."""
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    if path_of(folder) == path:
        return folder
    os.close(folder)
    return None


def open_subfolder(folder: int, name: str | bytes) -> int:
    """A descriptor of a folder inside an open one. A link is not followed."""
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def swapped_error(place: Place, error: OSError) -> Exception:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        text = f"{place.spelling!r} led to {place.real!r} when it was approved and is a link now. Try the call again."
        return ToolError(text)
    return error
