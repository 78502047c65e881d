"""
Finds and reads memory files: AGENTS.md and CLAUDE.md of the policy, the user and every folder down to the working one.

What cannot be read is reported, and never stops a run. A project's file reaches no further than its own tree: a link or
an import that leaves it, or leads to what holds secrets by its name, is read only if that file is approved.
"""

import codecs
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from handrail.extensions.places import has_secret_name, repository_of
from handrail.loop.memory import (
    MAX_FILE,
    MAX_TOTAL,
    Memory,
    MemoryFile,
    MemoryProblem,
    Scope,
    applies,
    imports,
    matches,
    memory_for,
    split_front_matter,
    within,
)
from handrail.records import record

PROJECT_NAMES = ("CLAUDE.md", ".claude/CLAUDE.md")
"""Both are read; AGENTS.md where there is none of them."""
ORDINARY_NAMES = frozenset(("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md"))
USER_NAMES = ("CLAUDE.md", "AGENTS.md")
MAX_HOPS = 4
MAX_FILES = 200
MAX_DEPTH = 8
MAX_BYTES = 4 * MAX_FILE
POLICY_FOLDERS = (Path("/etc/handrail"), Path("/etc/claude-code"))


@record
class Places:
    """Where to look. `tree` is the root of the repository, or the working folder if there is none."""

    cwd: Path
    tree: Path
    home: Path
    user: tuple[Path, ...]
    policy: tuple[Path, ...] = POLICY_FOLDERS


def places(cwd: Path, env: Mapping[str, str]) -> Places:
    """The places of this user and this folder."""
    home = Path(env.get("HOME") or Path.home())
    config = Path(env.get("HANDRAIL_CONFIG_DIR") or home / ".handrail").expanduser()
    claude = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude").expanduser()
    return Places(cwd, repository_of(cwd) or cwd, home, (config, claude))


@record
class Switches:
    """`approved` are real paths that project files may reach, `excludes` globs; `local` is about CLAUDE.local.md."""

    approved: frozenset[Path] = frozenset()
    excludes: tuple[str, ...] = ()
    project: bool = True
    local: bool = True


DEFAULTS = Switches()


def read_memory(where: Places, switches: Switches = DEFAULTS) -> Memory:
    """Everything that holds from the start, broad files first."""
    reading = _Reading(where, switches, Memory())
    for folder in where.policy:
        reading.first_of(folder, USER_NAMES, Origin("policy", where.cwd))
    for folder in where.user:
        reading.first_of(folder, USER_NAMES, Origin("user", where.cwd))
        reading.rules(folder / "rules", Origin("user", where.cwd))
    if switches.project or switches.local:
        for folder in [*reversed(where.cwd.parents), where.cwd]:
            reading.folder(folder)
    return reading.result()


def read_memory_near(path: Path, where: Places, known: Memory, switches: Switches = DEFAULTS) -> Memory:
    """What is known once `path` was read, new files last; `known` itself, without disk access, if nothing is new."""
    near = memory_for(path, where.cwd, known)
    if not (switches.project or switches.local) or not (near.folders or near.rules):
        return known
    reading = _Reading(where, switches, known)
    for folder in near.folders:
        reading.folder(folder)
    return reading.result(touched=path)


@record
class Origin:
    """Who wrote a file. `border` is the folder that it and its imports must lie in (None = anywhere)."""

    scope: Scope
    base: Path
    border: Path | None = None
    above_project: bool = False


class _Reading:
    """One walk over files, in order."""

    def __init__(self, where: Places, switches: Switches, known: Memory) -> None:
        self._where = where
        self._switches = switches
        self._known = known
        self._found: list[MemoryFile] = []
        self._problems: list[MemoryProblem] = []
        self._folders = set(known.folders)
        self._seen = set(known.seen)

    def folder(self, folder: Path) -> None:
        """The files of one folder of the project, or above it."""
        self._folders.add(folder)
        above = not folder.is_relative_to(self._where.tree)
        origin = Origin("project", folder, folder if above else self._where.tree, above)
        if self._switches.project:
            found = [self._add(folder / name, origin) for name in PROJECT_NAMES]
            if "read" not in found:
                self._add(folder / "AGENTS.md", origin)
            self.rules(folder / ".claude" / "rules", origin)
        if self._switches.local:
            self._add(folder / "CLAUDE.local.md", replace(origin, scope="local"))

    def first_of(self, folder: Path, names: Iterable[str], origin: Origin) -> None:
        """The first of these files that can be read."""
        any(self._add(folder / name, origin) == "read" for name in names)

    def rules(self, folder: Path, origin: Origin) -> None:
        """All rule files below a folder, in the order of their names."""
        for path in _markdown_below(folder):
            self._add(path, origin, rule=True)

    def result(self, touched: Path | None = None) -> Memory:
        """The new state: what always holds is shown, the rest waits for a file it applies to."""
        known = self._known
        waiting = (*known.waiting, *(file for file in self._found if file.patterns))
        new = [file for file in self._found if not file.patterns]
        if touched is not None:
            new += (rule for rule in waiting if applies(rule, touched))
            waiting = tuple(rule for rule in waiting if not applies(rule, touched))
        kept, left_out = within(new, MAX_TOTAL - sum(len(file.text) for file in known.files))
        return Memory(
            files=(*known.files, *kept),
            waiting=waiting,
            folders=frozenset(self._folders),
            seen=frozenset(self._seen),
            problems=(*known.problems, *self._problems, *left_out),
        )

    def _add(self, path: Path, origin: Origin, hops: int = 0, *, rule: bool = False) -> Literal["none", "left", "read"]:
        """Read one file and what it imports. `none`: there is no such file. `left`: it is there and was left out."""
        if origin.scope != "policy" and any(matches(glob, path.relative_to("/")) for glob in self._switches.excludes):
            return "left"
        if _is_missing(path):
            return "none"
        real = self._real(path)
        if real is None:
            return "left" if path.is_symlink() else "none"
        if real in self._seen:
            return "read"
        text = self._text(path, real) if self._may_read(path, real, origin) else None
        if text is None:
            return "left"
        self._seen.add(real)
        patterns, body, problem = split_front_matter(text) if rule else ((), text, "")
        if problem:
            self._problem(path, f"was left out: {problem}. Write a list of globs, or take `paths` away.")
        elif len(self._found) >= MAX_FILES:
            self._problem(path, f"was left out: more than {MAX_FILES} memory files. Name some in claudeMdExcludes.")
        else:
            self._found.append(MemoryFile(path, body, origin.scope, origin.base, patterns))
            self._imports(path, body, origin, hops)
        return "read"

    def _imports(self, path: Path, text: str, origin: Origin, hops: int) -> None:
        for name in imports(text):
            target = self._where.home / name[2:] if name.startswith("~/") else path.parent / name
            if hops >= MAX_HOPS:
                self._problem(
                    path,
                    f"does not import {name!r}: only {MAX_HOPS} steps are followed. Import it earlier.",
                )
            # an at sign before a word that is no file is just a word
            elif self._add(Path(os.path.normpath(target)), origin, hops + 1) == "none" and _is_path(name):
                self._problem(path, f"imports {name!r}, and there is no such file. Correct the path after the @.")

    def _real(self, path: Path) -> Path | None:
        """Where the file really lies; None if there is none, or links go in a circle."""
        try:
            return path.resolve(strict=True)
        except (FileNotFoundError, NotADirectoryError):
            if path.is_symlink():
                self._problem(path, "is a link to nothing. Mend the link, or remove it.")
        except (OSError, RuntimeError) as error:
            self._problem(path, f"cannot be read: {_reason(error)}. Mend it, or name it in claudeMdExcludes.")
        return None

    def _may_read(self, path: Path, real: Path, origin: Origin) -> bool:
        if origin.border is None or real in self._switches.approved:
            return True
        border, why = origin.border.resolve(), ""
        if not real.is_relative_to(border):
            why = f"outside of {origin.border}"
        elif real.name not in ORDINARY_NAMES and has_secret_name(str(real.relative_to(border))):
            why = "which may hold secrets"
        if why:
            text = f"leads to {real}, {why}, and was not read. Copy what is meant into the project."
            self._problems.append(MemoryProblem(path, text, needs_approval=real))
            return False
        if origin.above_project and not _trustworthy(real):
            self._problem(
                path,
                "was not read: it lies above the project, and others than you could have written it. "
                "Make it yours alone (chown, chmod o-w) if it is meant.",
            )
            return False
        return True

    def _text(self, path: Path, real: Path) -> str | None:
        try:
            data = _read(real)
        except OSError as error:
            self._problem(path, f"cannot be read: {_reason(error)}. Mend it, or name it in claudeMdExcludes.")
            return None
        if data is None:
            self._problem(
                path,
                "was not read: it is not a regular file. Name it in claudeMdExcludes.",
            )
            return None
        try:
            text = codecs.getincrementaldecoder("utf-8-sig")().decode(data, final=len(data) <= MAX_BYTES)
        except UnicodeDecodeError as error:
            self._problem(path, f"was not read: not UTF-8 ({error.reason} at byte {error.start}). Save it as UTF-8.")
            return None
        text = text.replace("\r\n", "\n")
        if "\0" in text:
            self._problem(path, "was not read: it holds NUL bytes, so it is not text. Save it as UTF-8.")
            return None
        if len(text) > MAX_FILE:
            self._problem(
                path, f"is cut after {MAX_FILE:,} characters. Shorten it, or move parts to files of their own."
            )
            text = f"{text[:MAX_FILE]}\n[cut here; the rest is in {path}]"
        return text

    def _problem(self, path: Path, text: str) -> None:
        self._problems.append(MemoryProblem(path, text))


def _is_missing(path: Path) -> bool:
    """Whether there is nothing of this name, as in most places at every start; what cannot be told is not missing."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _read(path: Path) -> bytes | None:
    """The beginning of a regular file; None if it is something else. Never waits for a pipe or a device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_BYTES + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _trustworthy(path: Path) -> bool:
    status = path.stat()
    return status.st_uid in {os.getuid(), 0} and not status.st_mode & stat.S_IWOTH


def _markdown_below(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Links to folders are not followed: what they hide would differ from machine to machine."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if depth < MAX_DEPTH:
                yield from _markdown_below(Path(entry.path), depth + 1)
        elif entry.name.endswith(".md"):
            yield Path(entry.path)


def _is_path(name: str) -> bool:
    return "/" in name or "." in name


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
