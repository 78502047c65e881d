"""
Replaces a file completely or not at all.

    decided folder, held open -> file, held open and locked -> old content into the journal -> new content into a file
    beside it, for the owner only -> owner, mode, attributes -> is the old one still what it was? -> renamed over it

No step resolves a path again: all work by name inside the folder that was decided on. A link stays a link, because its
target is replaced. Some files cannot be exchanged: those with hard links, of another owner, in a folder that this user
may not write, and mount points. They are rewritten in place, which is not atomic and therefore needs the old and the
new content in the journal.

Nothing is flushed to disk. A killed program leaves the old file or the new one; after a power cut that holds where the
file system writes data before a rename, as ext4 and btrfs do.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Self

from handrail.errors import FileChangedError, NotExchangedError, ToolError
from handrail.files.copying import PieceHasher, Pieces, digest, write_pieces
from handrail.files.exchange import exchange, file_lock, keep_attributes, rewrite
from handrail.files.folders import make_folders
from handrail.files.journal import FileState, Note, UndoJournal, WriteResult
from handrail.files.memory import ReadRecord, is_settled
from handrail.files.paths import FileKind, Place, decided_folder, swapped_error
from handrail.files.source import FileSource
from handrail.records import record

TEMP_END = ".handrail"
LARGE = 1024 * 1024
NOT_EXCHANGED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV)
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_LINKED = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)
KINDS = {
    FileKind.FOLDER: "is a folder",
    FileKind.DEVICE: "is a device",
    FileKind.PIPE: "is a pipe",
    FileKind.SOCKET: "is a socket",
}


@record
class _Replacement:
    """The new content of an existing file."""

    pieces: Pieces
    hashing: PieceHasher
    old_digest: str
    journal: UndoJournal | None
    key: str
    taken: bool
    """The journal takes over the old file itself, so no copy was made."""


class TargetFile:
    """A file that was decided on: its folder is held open, and the file too if it exists."""

    def __init__(self, place: Place) -> None:
        """
        Raises:
            ToolError: it is not a regular file, or cannot be opened.
        """
        self.place = place
        self.shown = place.spelling
        self.name = place.real.rpartition("/")[2]
        if place.kind in KINDS or not self.name:
            raise ToolError(f"{self.shown!r} {KINDS.get(place.kind, 'is a folder')}, not a file. Name a file.")
        self._folder: int | None = None
        self._file: int | None = None
        self.stat: os.stat_result | None = None
        try:
            self._folder = decided_folder(place)
            self._file = os.open(
                self.name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder
            )
            self.stat = os.fstat(self._file)
        except FileNotFoundError:
            pass
        except ValueError as error:
            self.close()
            raise ToolError(f"{self.shown!r} cannot be the name of a file ({error}). Name a file.") from error
        except OSError as error:
            self.close()
            raise self._cannot("be opened", swapped_error(place, error)) from error
        self._settled = self.stat is not None and is_settled(self.stat)
        if self.stat is not None and not stat.S_ISREG(self.stat.st_mode):
            self.close()
            raise ToolError(f"{self.shown!r} is a folder, pipe, socket or device, not a file. Name a file.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and its folder."""
        for descriptor in (self._file, self._folder):
            if descriptor is not None:
                os.close(descriptor)
        self._file = self._folder = None

    @property
    def exists(self) -> bool:
        """Whether the file existed when it was opened."""
        return self._file is not None

    @cached_property
    def source(self) -> FileSource:
        """The bytes of the file."""
        assert self._file is not None
        assert self.stat is not None
        return FileSource(self._file, self.stat.st_size)

    def digest(self) -> str:
        """The hash of the present content."""
        assert self._file is not None
        return digest(self._file)

    def read_record(self, digest: str) -> ReadRecord:
        """The file as it was when it was opened, for the memory of reads."""
        stat, path = self.stat, Path(self.place.real)
        assert stat is not None
        return ReadRecord(path, stat.st_size, stat.st_mtime_ns, digest, stat.st_ctime_ns, self._settled)

    def state(self, digest: str) -> FileState:
        """The file as it was when it was opened, for the undo journal."""
        assert self.stat is not None
        return FileState(digest, self.stat.st_size, stat.S_IMODE(self.stat.st_mode))

    def expect_change(self, old_digest: str, journal: UndoJournal, note: Note) -> tuple[str, str]:
        """
        Keep the content, because a program is about to change, create or remove the file by itself.

        Returns the key of the change and a notice for the user. Until the journal learns the new state, the change
        counts as one that stopped half-way.

        Raises:
            ToolError: the journal cannot be written.
        """
        key, notice = self._begin(journal, old_digest, "", note)
        try:
            journal.ready(key, None, in_place=True)
        except OSError as error:
            raise _journal_error(self.shown, error) from error
        return key, notice

    def write(
        self, pieces: Pieces, old_digest: str, journal: UndoJournal | None, note: Note, mode: int | None = None
    ) -> WriteResult:
        """
        Replace the content of the file, or create it with all folders above it.

        `old_digest`: the content that the pieces are based on. `mode`: of a new file.

        Raises:
            FileChangedError: another program changed the file since it was opened.
            ToolError: it cannot be written. The old file is as it was.
        """
        try:
            if self._file is None:
                return self._create(pieces, journal, note, mode)
            with file_lock(self._file, self.shown):
                return self._replace(pieces, old_digest, journal, note)
        except OSError as error:
            raise self._cannot("be written", error) from error

    def remove(self, old_digest: str, journal: UndoJournal | None, note: Note) -> None:
        """Remove the file."""
        assert self._file is not None
        assert self._folder is not None
        try:
            with file_lock(self._file, self.shown):
                key = self._begin(journal, old_digest, "", note)[0]
                with self._void_on_error(journal, key):
                    if journal:
                        journal.ready(key, None)
                    self._check_unchanged(old_digest)
                    os.unlink(self.name, dir_fd=self._folder)
        except OSError as error:
            raise self._cannot("be removed", error) from error

    def _create(self, pieces: Pieces, journal: UndoJournal | None, note: Note, mode: int | None) -> WriteResult:
        made: list[str] = []
        if self._folder is None:
            self._folder = make_folders(self.place, journal, note, made)
        try:
            key, notice = self._begin(journal, "", temp := _temp_name(self.name), note)
            with self._void_on_error(journal, key), self._temporary(temp, 0o666) as descriptor:
                wanted = mode if mode is not None else stat.S_IMODE(os.fstat(descriptor).st_mode)
                os.fchmod(descriptor, 0o600)
                size = write_pieces(descriptor, pieces)
                new = PieceHasher(pieces, 0).digest()
                os.fchmod(descriptor, wanted)
                if journal:
                    journal.ready(key, FileState(new, size, wanted))
                self._appear(temp)
                return WriteResult(os.fstat(descriptor), new, notice)
        except BaseException:
            for path in reversed(made):
                with suppress(OSError):
                    Path(path).rmdir()
            raise

    def _appear(self, temp: str) -> None:
        """Give the new file its name, unless another program has taken it."""
        try:
            os.link(temp, self.name, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False)
        except FileExistsError as error:
            raise FileChangedError(
                f"{self.shown!r} was created by another program just now. Read it, then try again."
            ) from error
        except OSError as error:
            if error.errno not in NOT_LINKED:
                raise
            os.rename(temp, self.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        else:
            os.unlink(temp, dir_fd=self._folder)

    def _replace(self, pieces: Pieces, old_digest: str, journal: UndoJournal | None, note: Note) -> WriteResult:
        assert self.stat is not None
        if not os.access(self.name, os.W_OK, dir_fd=self._folder, effective_ids=os.access in os.supports_effective_ids):
            self._check_unchanged(old_digest)
            raise ToolError(
                f"{self.shown!r} may not be written by this user (mode {stat.S_IMODE(self.stat.st_mode):04o}). It is "
                "as it was. Ask the user."
            )
        hashing = PieceHasher(pieces, self.stat.st_size)
        taken = journal is not None and self._can_be_taken(old_digest, journal)
        key, notice = self._begin(journal, old_digest, temp := _temp_name(self.name), note, copied=not taken)
        change = _Replacement(pieces, hashing, old_digest, journal, key, taken)
        with self._void_on_error(journal, key):
            try:
                written = self._exchange(change, temp)
            except NotExchangedError as problem:
                written = self._rewrite(change, str(problem))
        return WriteResult(written, hashing.digest(), notice)

    def _exchange(self, change: _Replacement, temp: str) -> os.stat_result:
        assert self.stat is not None
        assert self._file is not None
        if self.stat.st_nlink > 1:
            raise NotExchangedError(f"has {self.stat.st_nlink} names (hard links)")
        with self._temporary(temp, 0o600) as descriptor:
            size = write_pieces(descriptor, change.pieces)
            keep_attributes(self._file, self.stat, descriptor)
            if change.journal:
                new = FileState(change.hashing.digest(), size, stat.S_IMODE(self.stat.st_mode))
                change.journal.ready(change.key, new)
            self._check_unchanged(change.old_digest)
            if not (change.taken and self._hand_over(change, temp)):
                self._rename(temp)
            return os.fstat(descriptor)

    def _rename(self, temp: str) -> None:
        try:
            os.rename(temp, self.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError as error:
            if error.errno not in NOT_EXCHANGED:
                raise
            raise NotExchangedError(f"cannot be exchanged ({error.strerror})") from error

    def _can_be_taken(self, old_digest: str, journal: UndoJournal) -> bool:
        """Whether the journal can take the file itself: copying a large one would cost as much as the change."""
        assert self.stat is not None
        large = self.stat.st_size >= LARGE and self.stat.st_nlink == 1 and self.stat.st_uid == os.geteuid()
        return large and journal.takes(self.state(old_digest), self.stat.st_dev)

    def _hand_over(self, change: _Replacement, temp: str) -> bool:
        """Swap the names of the new and the old file and give the old one to the journal; False = not possible."""
        assert self._folder is not None
        assert self._file is not None
        assert change.journal is not None
        old = self.state(change.old_digest)
        try:
            exchange(self._folder, temp, self.name)
        except OSError:
            change.journal.keep(old, self._file)
            return False
        try:
            change.journal.take(old, self._folder, temp)
        except OSError:
            exchange(self._folder, temp, self.name)
            change.journal.keep(old, self._file)
            return False
        return True

    def _rewrite(self, change: _Replacement, reason: str) -> os.stat_result:
        """Overwrite the file in place. If that fails, the old content is put back."""
        assert self.stat is not None
        journal = change.journal
        if journal is None:
            raise ToolError(
                f"{self.shown!r} {reason}, so it can only be rewritten in place, which is not safe without an undo "
                "journal. It is as it was. Change it with a program, or ask the user."
            )
        assert self._file is not None
        if change.taken:
            journal.keep(self.state(change.old_digest), self._file)
        spool = journal.spool()
        try:
            size = write_pieces(spool, change.pieces)
            new = FileState(change.hashing.digest(), size, stat.S_IMODE(self.stat.st_mode))
            descriptor = os.open(self.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
            try:
                journal.ready(change.key, new, in_place=True)
                self._check_unchanged(change.old_digest)
                written = rewrite(
                    descriptor, spool, self.stat.st_size, size, lambda: journal.open_content(change.old_digest)
                )
            finally:
                os.close(descriptor)
        finally:
            os.close(spool)
        journal.finish(change.key)
        return written

    def _begin(
        self, journal: UndoJournal | None, old_digest: str, temp: str, note: Note, *, copied: bool = True
    ) -> tuple[str, str]:
        if journal is None:
            return "", ""
        old = None if self.stat is None else self.state(old_digest)
        try:
            return journal.begin(self.place.real, old, self._file if copied else None, temp, note)
        except OSError as error:
            raise _journal_error(self.shown, error) from error

    @contextmanager
    def _void_on_error(self, journal: UndoJournal | None, key: str) -> Iterator[None]:
        """Record in the journal that a change did not happen if the block fails."""
        try:
            yield
        except BaseException:
            if journal:
                with suppress(OSError):
                    journal.void(key)
            raise

    @contextmanager
    def _temporary(self, temp: str, mode: int) -> Iterator[int]:
        """A new file beside the target; it is removed if the block fails."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(temp, flags, mode, dir_fd=self._folder)
        except OSError as error:
            if self._file is not None and error.errno in NOT_EXCHANGED:
                raise NotExchangedError(f"is in a folder that cannot be written ({error.strerror})") from error
            raise
        try:
            yield descriptor
        except BaseException:
            with suppress(OSError):
                os.unlink(temp, dir_fd=self._folder)
            raise
        finally:
            os.close(descriptor)

    def _check_unchanged(self, old_digest: str) -> None:
        assert self.stat is not None
        try:
            now = os.stat(self.name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError as error:
            raise FileChangedError(
                f"{self.shown!r} was removed just now. Look at what is there, then try again."
            ) from error
        if _identity(now) == _identity(self.stat) and self._settled:
            return
        same_file = (now.st_dev, now.st_ino) == (self.stat.st_dev, self.stat.st_ino)
        if not same_file or self.digest() != old_digest:
            raise FileChangedError(
                f"{self.shown!r} was changed by another program just now and was left alone. Read it, then try again."
            )

    def _cannot(self, what: str, error: Exception) -> Exception:
        if not isinstance(error, OSError):
            return error
        move = "Ask the user to make room." if error.errno in NO_ROOM else "Choose another file, or ask the user."
        state = "It is as it was." if self.stat is not None else "Nothing was changed."
        return ToolError(f"{self.shown!r} cannot {what}: {error.strerror}. {state} {move}")


def _journal_error(shown: str, error: OSError) -> ToolError:
    return ToolError(
        f"The undo journal cannot be written ({error.strerror}: {error.filename}), so {shown!r} was not changed. "
        "Ask the user to look at the state folder."
    )


def _temp_name(name: str) -> str:
    return f".{name[:50]}.{os.urandom(6).hex()}{TEMP_END}"  # 50 characters have at most 200 bytes of 255


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
