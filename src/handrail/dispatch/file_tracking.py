"""
Checks, remembers and keeps for undo the files that a call declares, unless its tool does that itself.

    before the decision   a file to be written must have been read
    before the call       it must not have changed since, and its content goes into the undo journal
    after the call        the journal learns the new content; what was read and written is remembered

A declared folder stands for files that are not named, so it is neither checked nor kept. A file that is removed is
kept, but need not have been read.
"""

import logging
import os
import posixpath
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from threading import Lock

from handrail.conversation.blocks import Json
from handrail.dispatch.call_state import CallEnd
from handrail.dispatch.threads import in_thread
from handrail.errors import ToolError
from handrail.files.journal import FileState, Note
from handrail.files.memory import ReadRecord
from handrail.files.paths import FileKind, Place, resolve
from handrail.files.read_check import known_digest, not_read
from handrail.files.replace import KINDS, TargetFile
from handrail.records import record
from handrail.tools.flags import whatever_the_input
from handrail.tools.outcome import Cause
from handrail.tools.pool import AnyTool
from handrail.tools.request import CallRequest

MAX_REMEMBERED_BYTES = 1024 * 1024 * 1024
"""A bigger file is not hashed for having been read: the built-in tools could not change it anyway."""
QUICK_FILES = 8
QUICK_BYTES = 64 * 1024

log = logging.getLogger(__name__)


def unread_problem(request: CallRequest) -> str:
    """Why the call cannot write what it declares: a file has not been read. Empty = all were read, or are new."""
    cwd = os.fspath(request.ctx.cwd)
    there = [path for path in request.access.writes if not _is_surely_new(path, cwd)]
    for place in _places(request, there):
        if place.kind is FileKind.FILE and request.ctx.files.get(Path(place.real)) is None:
            return not_read(place.spelling)
    return ""


async def call_with_files(request: CallRequest, call: Callable[[CallRequest], Awaitable[CallEnd]]) -> CallEnd:
    """
    Call a tool, with the declared files looked at before and after.

    Raises:
        ToolError: a file to be written was not read or has changed since, or the journal cannot be written.
    """
    files, cause = FileTracking(request), Cause.FAILED
    try:
        await _run_quickly(files, files.begin)
        output, cause, problem, _ = await call(request)
    finally:
        await _run_quickly(files, partial(files.finish, done=cause is Cause.DONE))
    return output, cause, problem, files.notices


async def _run_quickly(files: "FileTracking", step: Callable[[], None]) -> None:
    """Run a step at once if that is quick, else in a thread."""
    if files.is_quick:
        step()
    else:
        await in_thread(step)


@record
class _ExpectedChange:
    """A file that the call may change. `key`: of the entry in the journal; empty without a journal."""

    place: Place
    old: FileState | None
    key: str


class FileTracking:
    """The declared files of one call, from just before it until just after it. Its methods block."""

    def __init__(self, request: CallRequest) -> None:
        access = request.access
        self._writes = _places(request, access.writes)
        self._removes = _places(request, access.removes)
        self._reads = _places(request, access.reads)
        self._files = request.ctx.files
        self._journal = request.ctx.run.undo() if access.changes_files else None
        self._note = Note(request.tool.name, request.use.id)
        self._looks: list[ReadRecord] = []
        self._changes: dict[str, _ExpectedChange] = {}
        self._missing_folders: dict[str, None] = {}
        self._lock = Lock()
        self._finished = False
        self.notices: list[str] = []
        """What the user should know about the undo journal."""

    @cached_property
    def is_quick(self) -> bool:
        """Whether the files are only looked at, and are so few and small that a thread would take longer."""
        places = (*self._writes, *self._removes, *self._reads)
        few = self._journal is None and len(places) <= QUICK_FILES
        return few and sum([_size(place) for place in places]) <= QUICK_BYTES

    def begin(self) -> None:
        """
        Look at all files before the call.

        Raises:
            ToolError: a file to be written was not read or has changed since, or the journal cannot be written.
        """
        with self._lock:
            if self._finished:
                return
            for place in self._writes:
                self._expect(place, must_be_read=True)
            for place in self._removes:
                self._expect(place, must_be_read=False)
            for place in self._reads:
                self._look(place)

    def finish(self, *, done: bool) -> None:
        """
        Look at all files after the call, or after `begin` failed: what has not changed is no change.

        `done`: the call went well, so that what it read and wrote is known.
        """
        with self._lock:  # of a call that was cancelled, `begin` may still be running
            self._finished = True
            for known in self._looks if done else ():
                self._files.add(known)
            for change in self._changes.values():
                try:
                    self._settle(change, done=done)
                except (ToolError, OSError) as error:  # the journal has the old content and treats the new as unknown
                    log.warning("%s cannot be looked at after the call: %s", change.place.real, error)

    def _expect(self, place: Place, *, must_be_read: bool) -> None:
        if place.kind in KINDS or place.real in self._changes:
            return
        with TargetFile(place) as target:
            old = None
            if target.exists:
                old = target.state(known_digest(target, self._files) if must_be_read else target.digest())
            key = ""
            if self._journal is not None and (old is not None or must_be_read):
                key, notice = target.expect_change(old.digest if old else "", self._journal, self._note)
                self.notices += filter(None, [notice])
        self._changes[place.real] = _ExpectedChange(place, old, key)
        if old is None and self._journal is not None:
            self._missing_folders |= dict.fromkeys(_missing_folders(place.real))

    def _look(self, place: Place) -> None:
        if place.kind is not FileKind.FILE or place.real in self._changes:
            return
        with suppress(ToolError), TargetFile(place) as target:  # the tool itself says what it cannot read
            if target.stat is not None and target.stat.st_size <= MAX_REMEMBERED_BYTES:
                known = self._files.get(Path(place.real))
                unchanged = known is not None and self._files.is_unchanged(known.path, target.stat)
                self._looks.append(known if known and unchanged else target.read_record(target.digest()))

    def _settle(self, change: _ExpectedChange, *, done: bool) -> None:
        journal, new = self._journal, None
        if change.old is None and not posixpath.isfile(change.place.real):
            if journal is not None and change.key:
                journal.void(change.key)
            return
        with TargetFile(change.place) as target:
            if target.exists:
                known = target.read_record(target.digest())
                new = target.state(known.digest)
                if done:
                    self._files.add(known)
        if journal is None or not change.key:
            return
        if (change.old and change.old.digest) == (new and new.digest):
            journal.void(change.key)
            return
        journal.ready(change.key, new)
        for folder in [each for each in self._missing_folders if change.place.real.startswith(f"{each}/")]:
            del self._missing_folders[folder]
            if Path(folder).is_dir():
                journal.folder_changed(folder, self._note, made=True)


def _places(request: CallRequest, spellings: Sequence[str]) -> list[Place]:
    """Where paths led when the call was decided on; before that, where they lead now."""
    if not spellings:
        return []
    ctx, home = request.ctx, ""
    if any(spelling.startswith("~") for spelling in spellings):
        home = str(Path.home())
    cwd = os.fspath(ctx.cwd)
    return [ctx.decided_place(spelling) or resolve(spelling, cwd, home) for spelling in spellings]


def _is_surely_new(spelling: str, cwd: str) -> bool:
    """Whether nothing is there under a plain path, which takes a tenth of resolving it."""
    return not spelling.startswith("~") and ".." not in spelling and not os.path.lexists(posixpath.join(cwd, spelling))


def _size(place: Place) -> int:
    if place.kind is not FileKind.FILE:
        return 0
    try:
        return os.stat(place.real).st_size  # noqa: PTH116  # costs less
    except (OSError, ValueError):
        return 0


def _missing_folders(path: str) -> list[str]:
    """The folders above a file that do not exist, the highest first."""
    found: list[str] = []
    while (path := path.rpartition("/")[0]) and not os.path.lexists(path):
        found.append(path)
    return found[::-1]


def file_to_read(tool: AnyTool | None, raw: Json, cwd: Path, home: str) -> str:
    """The file that a call would change, if it is there and has to be read before; else empty."""
    if tool is None or not tool.tracks_files or whatever_the_input(tool.is_read_only) is True:
        return ""
    path = raw.get(tool.subject)
    if not isinstance(path, str) or resolve(path, str(cwd), home).kind is not FileKind.FILE:
        return ""
    return path
