"""
Finds the git repositories below a folder, and whether git would run something of theirs without being told to.

A repository runs programs by its configuration (a file monitor, filters, an external diff) and by its hooks, as soon as
git looks at it. What is not known to be harmless counts as such.
"""

import os
import posixpath
import stat
import time
from collections.abc import Iterator

from handrail.lazy import lazy_pattern
from handrail.processes.git_settings import HARMLESS
from handrail.records import record

MOST_FOLDERS = 50_000
MAX_CONFIG = 100_000
RACY = 1_000_000_000
"""Nanoseconds in which a folder may change twice with the same time stamp."""

SECTION = lazy_pattern(r'\[(?P<name>[a-z][a-z0-9.-]*)(?:[ \t]+"(?P<sub>(?:[^"\\]|\\["\\])*)")?\]')
SETTING = lazy_pattern(r"[ \t]*(?P<key>[a-z][a-z0-9-]*)[ \t]*=[ \t]*(?P<value>[^\\\"]*)")


@record
class Repository:
    """What git takes for a repository: `path` is its `.git`, or the `HEAD` of a bare one. `facts` change with it."""

    path: str
    facts: tuple[object, ...]
    runs: str
    """What it would run or follow; empty if nothing."""


class FolderWalk:
    """The folders below others. Those that have not changed since the last walk are not listed again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int, tuple[str, ...], tuple[str, ...]]] = {}
        self.complete = True
        """Whether the last walk saw all folders."""

    def repositories(self, roots: tuple[str, ...]) -> dict[str, Repository]:
        """The repositories in folders below the roots, by path; those of the roots themselves are left out."""
        seen: dict[str, tuple[int, int, tuple[str, ...], tuple[str, ...]]] = {}
        found: dict[str, Repository] = {}
        todo = list(roots)
        self.complete = True
        while todo:
            folder = todo.pop()
            if folder in seen:
                continue
            if len(seen) >= MOST_FOLDERS:
                self.complete = False
                break
            try:
                entry = self._list(folder)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:  # a command may have made it so
                if folder not in roots:
                    found[folder] = unlisted_repository(folder, error)
                continue
            seen[folder] = entry
            _, _, inside, marks = entry
            if folder not in roots:
                found |= {path: describe(path) for path in marks}
            todo += [path for path in inside if path not in marks]
        self._known = seen
        return found

    def _list(self, folder: str) -> tuple[int, int, tuple[str, ...], tuple[str, ...]]:
        """Inode, change time, the folders in it, and what makes it a repository. Raises OSError."""
        at = os.lstat(folder)
        known = self._known.get(folder)
        if known is not None and known[:2] == (at.st_ino, at.st_ctime_ns):
            return known
        with os.scandir(folder) as entries:
            names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        marks = [f"{folder}/{name}" for name in names if name.casefold() == ".git"]
        if "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names.keys()):
            marks.append(f"{folder}/HEAD")
        inside = tuple(f"{folder}/{name}" for name, is_folder in names.items() if is_folder)
        settled = time.time_ns() - at.st_ctime_ns > RACY
        return (at.st_ino if settled else -1, at.st_ctime_ns, inside, tuple(marks))


def unlisted_repository(folder: str, error: OSError) -> Repository:
    """A folder whose content is not known; there may be a repository in it."""
    try:
        at = os.lstat(folder)
        facts: tuple[object, ...] = (at.st_ino, at.st_mode, at.st_ctime_ns)
    except OSError:
        facts = ()
    return Repository(folder, (error.errno, *facts), f"what is in it cannot be listed: {error.strerror}")


def describe(path: str) -> Repository:
    """A repository as it is now."""
    folder = posixpath.dirname(path) if posixpath.basename(path) == "HEAD" else path
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return Repository(path, (), "")
    if stat.S_ISLNK(mode) or (stat.S_ISREG(mode) and folder == path):
        target = os.readlink(path) if stat.S_ISLNK(mode) else read_text(path)  # noqa: PTH115
        runs = "" if leads_to_guarded(path, target) else f"it leads to {target.strip()[:200]!r}"
        return Repository(path, (mode, target), runs)
    config = read_text(f"{folder}/config")
    hooks = tuple(sorted(active_hooks(f"{folder}/hooks")))
    led = tuple(name for name in ("commondir", "config.worktree", "modules", "worktrees") if holds(f"{folder}/{name}"))
    found = [f"its hook {name!r}" if name else "its hooks, which cannot be listed" for name, *_ in hooks]
    found += [f"its {name!r}" for name in led]
    return Repository(path, (config, hooks, led), ", ".join([*unknown_settings(config), *found][:3]))


def leads_to_guarded(path: str, target: str) -> bool:
    """Whether a `.git` file names a folder of a submodule or worktree, where the sandbox lets nothing be written."""
    if not target.startswith("gitdir:"):
        return False
    folder = os.path.realpath(posixpath.join(posixpath.dirname(path), target.removeprefix("gitdir:").strip()))
    above = folder
    while above != "/":
        above, name = posixpath.split(above)
        if name in ("modules", "worktrees") and posixpath.basename(above) == ".git":
            return path.startswith(posixpath.dirname(above) + "/")
    return False


def active_hooks(folder: str) -> Iterator[tuple[str, int, int]]:
    """The hooks that git would run, each with inode and change time; one without a name if they cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.endswith(".sample"):
                    found = entry.stat(follow_symlinks=False)
                    yield entry.name, found.st_ino, found.st_ctime_ns
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:
        yield "", 0, 0


def holds(path: str) -> bool:
    """Whether there is a file, or a folder with something in it."""
    try:
        return bool(os.listdir(path))  # noqa: PTH208
    except FileNotFoundError:
        return False
    except OSError:
        return True


def unknown_settings(config: str) -> Iterator[str]:
    """The settings in a git configuration that are not known to be harmless; a line that is not understood is one."""
    section = ""
    for line in config.splitlines():
        text = line.strip(" \t").lower()
        if not text or text[0] in "#;":
            continue
        if head := SECTION.fullmatch(text):
            section = head["name"] + (f".{head['sub']}" if head["sub"] is not None else "")
            continue
        setting = SETTING.fullmatch(text)
        name = f"{section}.{setting['key']}" if setting else text[:60]
        harmless = setting is not None and HARMLESS.match(name) and "::" not in setting["value"]
        if not harmless:
            yield f"its setting {name!r}"


def read_text(path: str) -> str:
    """The start of a file; empty if it is not there or not a regular file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        return "" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return "is not a regular file"
        data = os.read(fd, MAX_CONFIG + 1)
        return data.decode("utf-8", "replace") if len(data) <= MAX_CONFIG else "is too long"
    finally:
        os.close(fd)
