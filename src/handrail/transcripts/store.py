"""Where sessions are kept: one folder for each working folder, one file for each session."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

from handrail.conversation.messages import Message
from handrail.conversation.redact import Redactor
from handrail.errors import SessionError
from handrail.records import record
from handrail.transcripts.log import Durability, Log, Mirror, read, session_files
from handrail.transcripts.rebuild import RebuiltTranscript, rebuild
from handrail.transcripts.scribe import TranscriptWriter, new_id

if TYPE_CHECKING:
    from handrail.transcripts.index import Entry

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
DAY = 86_400
HEAD = 65_536
LONGEST = 200


@record
class OpenTranscript:
    """A session that is being written, and what it held before."""

    scribe: TranscriptWriter
    path: Path
    rebuilt: RebuiltTranscript
    forked: bool = False

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation so far."""
        return self.rebuilt.messages


@record
class TranscriptStore:
    """All sessions of one person. `folder` is not made before there is one."""

    folder: Path
    redactor: Redactor
    durability: Durability = "process"
    elsewhere: tuple[Path, ...] = ()
    """Folders in which a session may have one of its own, by its id: they go with it."""
    mirror: Mirror | None = None

    def create(self, cwd: str, session_id: str = "") -> OpenTranscript:
        """
        A new session for a working folder.

        Raises:
            SessionError: there is one of that id, or it cannot be written.
        """
        name = _checked(session_id) if session_id else new_id()
        if session_id and any(self._paths(name)):
            raise SessionError(f"There is a session {name!r} already. Resume it, fork it, or choose another id.")
        return self._opened(self.folder / folder_name(cwd) / f"{name}.jsonl", name, cwd, RebuiltTranscript(()))

    def resume(self, path: Path, cwd: str, *, upto: str = "") -> OpenTranscript:
        """
        Go on with a session. With `upto`, from the message of that id on it becomes another one.

        Raises:
            SessionError: another process writes it, or it cannot be read.
        """
        log = self._log(path)  # first the lock: nobody may add to it between reading and writing
        try:
            rebuilt = rebuild(read(path))
            scribe = self._scribe(log, path.stem, cwd, rebuilt)
            if upto:
                rebuilt = _shortened(path, rebuilt, upto)
                scribe.replaced(rebuilt.messages)
        except BaseException:
            log.close()
            raise
        return OpenTranscript(scribe, path, rebuilt)

    def fork(self, path: Path, cwd: str, session_id: str = "", *, upto: str = "") -> OpenTranscript:
        """A new session that begins with the conversation of another one, which stays as it is."""
        rebuilt = replace(conversation(path, upto), deferred=None)  # whoever resumes the other one decides about that
        name = _checked(session_id) if session_id else new_id()
        if any(self._paths(name)):
            raise SessionError(f"There is a session {name!r} already. Choose another id.")
        made = self._opened(self.folder / folder_name(cwd) / f"{name}.jsonl", name, cwd, rebuilt, path.stem)
        made.scribe.adopt(rebuilt.messages)
        if rebuilt.moved:
            made.scribe.moved(rebuilt.moved)
        return replace(made, forked=True)

    def has(self, session_id: str) -> bool:
        """Whether there is a session of exactly this id."""
        return any(self._paths(session_id))

    def beside(self, path: Path, agent_id: str, cwd: str) -> OpenTranscript:
        """
        The conversation of a sub-agent of the session in that file; it goes with it.

        Raises:
            SessionError: it cannot be written.
        """
        file = path.with_suffix("") / "subagents" / f"{agent_id}.jsonl"
        scribe = TranscriptWriter(self._log(file), path.stem, cwd, self.redactor, agent=agent_id)
        return OpenTranscript(scribe, file, RebuiltTranscript(()))

    def find(self, wanted: str, cwd: str) -> Path:
        """
        The file of a session: by id, by the beginning of one, by title, or by path.

        Raises:
            SessionError: there is none, or more than one.
        """
        as_path = Path(cwd, wanted).expanduser()
        if wanted.endswith(".jsonl") and as_path.is_file():
            return as_path
        exact = [*self._paths(wanted)] if ID.fullmatch(wanted) else []
        if exact:
            return exact[0]
        known = self.entries()
        titled = [entry for entry in known if entry.title == wanted]
        found = titled or [entry for entry in known if len(wanted) >= 4 and entry.id.startswith(wanted)]
        if len(found) == 1:
            return Path(found[0].path)
        if found:
            raise SessionError(f"{wanted!r} may be {' or '.join(sorted(entry.id for entry in found)[:5])}. Give more.")
        raise SessionError(f"There is no session {wanted!r}. `handrail sessions list` shows which there are.")

    def newest(self, cwd: str) -> Path:
        """
        The session of a working folder that was used last.

        Raises:
            SessionError: there is none.
        """
        found = _sessions_in(self.folder / folder_name(cwd))
        for path in sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True):
            if _folder_of(path) in ("", cwd):  # other folders may have the same name here
                return path
        raise SessionError(f"There is no session of the folder {cwd} to continue. Start one without --continue.")

    def entries(self) -> "list[Entry]":
        """All sessions, the newest first."""
        from handrail.transcripts.index import entries  # noqa: PLC0415  # only lists pay for the database

        return entries(self.folder)

    def remove(self, path: Path) -> None:
        """
        Delete a session and what belongs to it.

        Raises:
            SessionError: a process is writing it, or it cannot be deleted.
        """
        log = self._log(path)
        try:
            path.unlink()
            path.with_suffix(".broken").unlink(missing_ok=True)
            for folder in (path.with_suffix(""), *(other / path.stem for other in self.elsewhere)):
                remove_tree(folder)
        except OSError as error:
            raise SessionError(f"The session {path} cannot be deleted: {error.strerror}.") from error
        finally:
            log.close()

    def prune(self, days: int, in_time: Callable[[], bool] = lambda: True) -> Iterator[str]:
        """
        Delete sessions that nobody used for so many days, the oldest first, and give their ids. Those in use stay.

        It stops when it is not `in_time` any more.
        """
        files = sorted((facts.st_mtime, path) for path, facts in session_files(self.folder))
        oldest = time.time() - days * DAY
        for updated, path in files:
            if updated >= oldest or not in_time():
                return
            try:
                self.remove(Path(path))
            except SessionError:
                continue  # in use, or not ours to delete: it is looked at again the next time
            yield Path(path).stem

    def _opened(self, path: Path, name: str, cwd: str, rebuilt: RebuiltTranscript, parent: str = "") -> OpenTranscript:
        log = self._log(path)
        if not log.new:
            log.close()
            raise SessionError(f"There is a session {name!r} already. Resume it, fork it, or choose another id.")
        return OpenTranscript(self._scribe(log, name, cwd, RebuiltTranscript(()), parent), path, rebuilt)

    def _log(self, path: Path) -> Log:
        return Log(path, durability=self.durability, mirror=self.mirror)

    def _scribe(self, log: Log, name: str, cwd: str, rebuilt: RebuiltTranscript, parent: str = "") -> TranscriptWriter:
        kept, last, title = rebuilt.messages, rebuilt.last, rebuilt.title
        return TranscriptWriter(log, name, cwd, self.redactor, kept=kept, last=last, parent=parent, title=title)

    def _paths(self, name: str) -> Iterator[Path]:
        """The files of that id, in whatever working folder."""
        try:
            folders = [*os.scandir(self.folder)]
        except FileNotFoundError:
            return
        for folder in folders:
            path = Path(folder.path, f"{name}.jsonl")
            if folder.is_dir(follow_symlinks=False) and path.is_file() and path.stat().st_size:
                yield path


def folder_name(cwd: str) -> str:
    """The name under which the sessions of a working folder are kept, as other programs do it."""
    cwd = normalize("NFC", cwd)
    name = re.sub(r"[^A-Za-z0-9]", "-", cwd)
    if len(name) <= LONGEST:
        return name
    number = 0
    for character in cwd:
        number = (31 * number + ord(character)) & 0xFFFFFFFF
    return f"{name[:LONGEST]}-{_base36(abs(number - (number >> 31 << 32)))}"


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    text = digits[number % 36]
    while number := number // 36:
        text = digits[number % 36] + text
    return text


def remove_tree(folder: Path) -> None:
    """Delete a folder and all in it, without following links."""
    if folder.is_dir() and not folder.is_symlink():
        for inner in folder.iterdir():
            remove_tree(inner)
        folder.rmdir()
    elif folder.is_symlink() or folder.exists():
        folder.unlink()


def _sessions_in(folder: Path) -> list[Path]:
    try:
        files = [path for path in folder.iterdir() if path.suffix == ".jsonl" and path.is_file()]
    except FileNotFoundError:
        return []
    return [path for path in files if path.stat().st_size]


def _folder_of(path: Path) -> str:
    """The working folder that a session says it is of; empty if it does not."""
    try:
        with path.open("rb") as file:
            said = json.loads(file.readline(HEAD)).get("cwd")
    except (OSError, ValueError, AttributeError, RecursionError):
        return ""
    return said if isinstance(said, str) else ""


def conversation(path: Path, upto: str = "") -> RebuiltTranscript:
    """
    What a session says, up to the message of that id.

    Raises:
        SessionError: it cannot be read, or there is no such message.
    """
    rebuilt = rebuild(read(path), upto=upto)
    if upto and rebuilt.last != upto:
        raise SessionError(f"The session {path.stem} has no message {upto!r}. Give the uuid of one of its lines.")
    return rebuilt


def _shortened(path: Path, whole: RebuiltTranscript, upto: str) -> RebuiltTranscript:
    """The conversation up to a message. What it has in common with the whole one are the same objects."""
    part = conversation(path, upto)
    same = 0
    for ours, theirs in zip(part.messages, whole.messages, strict=False):
        if ours != theirs:
            break
        same += 1
    return replace(part, messages=(*whole.messages[:same], *part.messages[same:]))


def _checked(session_id: str) -> str:
    if not ID.fullmatch(session_id):
        raise SessionError(
            f"{session_id!r} cannot be the id of a session. Use up to 128 letters, digits, - and _, such as a UUID."
        )
    return session_id
