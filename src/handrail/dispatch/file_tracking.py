"""
Checks, remembers and keeps for undo the files that a call declares, unless its tool does that itself.

    before the decision   a file to be written must have been read
    before the call       it must not have changed since, and its content goes into the undo journal
    after the call        the journal learns the new content; what was read and written is remembered

A declared folder stands for files that are not named, so it is neither checked nor kept. A file that is removed is
kept, but need not have been read.
"""

import os
import posixpath
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from threading import Lock

from handrail.conversation.blocks import Json
from handrail.conversation.logger import get_logger
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

log = get_logger(__name__)


def unread_problem(request: CallRequest) -> str:
    """Why the call cannot write what it declares: a file has not been read. Empty = all were read, or are new."""
    there, _ = _split_new(request)
    for place in _places(request, there) if there else ():
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
        if files.reads or files.changes:
            await _run_step(files.begin, is_quick=files.is_quick(*files.changes, *files.reads))
        output, cause, problem, _ = await call(request)
    finally:
        made = files.find_made()
        if files.reads or files.changes or made:
            finish = partial(files.finish, made, done=cause is Cause.DONE)
            await _run_step(finish, is_quick=files.is_quick(*files.changes, *made))
    return output, cause, problem, files.notices


async def _run_step(step: Callable[[], None], *, is_quick: bool) -> None:
    """Run a step at once if that is quick, else in a thread."""
    if is_quick:
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
        self._request = request
        self._files = request.ctx.files
        self._journal = request.ctx.run.undo() if access.changes_files else None
        written, self._new = _split_new(request) if self._journal is None else (access.writes, ())
        self._writes = _places(request, written) if written else []
        self._removes = _places(request, access.removes) if access.removes else []
        self.reads = _places(request, access.reads) if access.reads else []
        """The files that it reads."""
        self._looks: list[ReadRecord] = []
        self._expected: dict[str, _ExpectedChange] = {}
        self._missing_folders: dict[str, None] = {}
        self._lock = Lock()
        self._finished = False
        self.notices: list[str] = []
        """What the user should know about the undo journal."""

    @property
    def changes(self) -> list[Place]:
        """The files that it changes, but for those that are surely new and not kept for undo."""
        return self._writes + self._removes

    @cached_property
    def _note(self) -> Note:
        return Note(self._request.tool.name, self._request.use.id)

    def is_quick(self, *places: Place) -> bool:
        """Whether the files are only looked at, and are so few and small that a thread would take longer."""
        few = self._journal is None and len(places) <= QUICK_FILES
        return few and sum([_size(place) for place in places]) <= QUICK_BYTES

    def find_made(self) -> list[Place]:
        """The files that were surely not there before the call, and may be now."""
        made = [path for path in self._new if not _is_surely_new(path, self._request.ctx.cwd)]
        return _places(self._request, made) if made else []

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
            for place in self.reads:
                self._look(place)

    def finish(self, made: Sequence[Place], *, done: bool) -> None:
        """
        Look at all files after the call, or after `begin` failed: what has not changed is no change.

        `made`: files that it made. `done`: the call went well, so that what it read and wrote is known.
        """
        with self._lock:  # of a call that was cancelled, `begin` may still be running
            self._finished = True
            for known in self._looks if done else ():
                self._files.add(known)
            for change in (*self._expected.values(), *[_ExpectedChange(place, None, "") for place in made]):
                try:
                    self._settle(change, done=done)
                except (ToolError, OSError) as error:  # the journal has the old content and treats the new as unknown
                    log.warning("%s cannot be looked at after the call: %s", change.place.real, error)

    def _expect(self, place: Place, *, must_be_read: bool) -> None:
        if place.kind in KINDS or place.real in self._expected:
            return
        with TargetFile(place) as target:
            old = None
            if target.exists:
                old = target.state(known_digest(target, self._files) if must_be_read else self._digest(target))
            key = ""
            if self._journal is not None and (old is not None or must_be_read):
                key, notice = target.expect_change(old.digest if old else "", self._journal, self._note)
                self.notices += filter(None, [notice])
        self._expected[place.real] = _ExpectedChange(place, old, key)
        if old is None and self._journal is not None:
            self._missing_folders |= dict.fromkeys(_missing_folders(place.real))

    def _look(self, place: Place) -> None:
        if place.kind is not FileKind.FILE or place.real in self._expected:
            return
        with suppress(ToolError), TargetFile(place) as target:  # the tool itself says what it cannot read
            if target.stat is not None and target.stat.st_size <= MAX_REMEMBERED_BYTES:
                self._looks.append(target.read_record(self._digest(target)))

    def _digest(self, target: TargetFile) -> str:
        """The hash of the present content, which is known if size and times prove that the file has not changed."""
        assert target.stat is not None
        known = self._files.get(Path(target.place.real))
        unchanged = known is not None and self._files.is_unchanged(known.path, target.stat)
        return known.digest if known and unchanged else target.digest()

    def _settle(self, change: _ExpectedChange, *, done: bool) -> None:
        journal, new = self._journal, None
        if change.old is None and not posixpath.isfile(change.place.real):
            if journal is not None and change.key:
                journal.void(change.key)
            return
        with TargetFile(change.place) as target:
            if target.exists:
                known = target.read_record(self._digest(target))
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
    ctx, home = request.ctx, ""
    if any(spelling.startswith("~") for spelling in spellings):
        home = str(Path.home())
    cwd = os.fspath(ctx.cwd)
    return [ctx.decided_place(spelling) or resolve(spelling, cwd, home) for spelling in spellings]


def _split_new(request: CallRequest) -> tuple[Sequence[str], Sequence[str]]:
    """The files to be written that may be there, and those that surely are not: a look tells, and finds no link."""
    ctx = request.ctx
    there: list[str] = []
    new: list[str] = []
    for path in request.access.writes:
        (new if ctx.decided_place(path) is None and _is_surely_new(path, ctx.cwd) else there).append(path)
    return there, new


def _is_surely_new(spelling: str, cwd: Path) -> bool:
    """Whether nothing is there under a plain path, which takes a tenth of resolving it."""
    if spelling.startswith("~") or ".." in spelling:
        return False
    try:
        os.lstat(spelling if spelling.startswith("/") else f"{cwd}/{spelling}")
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        pass
    return False


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
