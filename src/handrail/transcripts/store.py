"""Stores transcripts: one folder for each working folder, one file for each session."""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

from handrail.conversation.messages import Message
from handrail.conversation.redact import Redactor
from handrail.errors import SessionError, advice_on
from handrail.lazy import lazy, lazy_pattern
from handrail.records import record
from handrail.transcripts.log import CHOOSE, Durability, Log, Mirror, list_folder, read, transcript_files
from handrail.transcripts.rebuild import RebuiltTranscript, rebuild
from handrail.transcripts.sdk_copy import remove_copy
from handrail.transcripts.writer import TranscriptWriter, new_id

if TYPE_CHECKING:
    from handrail.transcripts import index
else:
    index = lazy("handrail.transcripts.index")  # only lists need the database

ID = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
DAY = 86_400
HEAD = 65_536
LONGEST = 200


@record
class OpenTranscript:
    """A transcript that is open for writing, and what it held before."""

    writer: TranscriptWriter
    path: Path
    rebuilt: RebuiltTranscript
    forked: bool = False

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation so far."""
        return self.rebuilt.messages


@record
class TranscriptStore:
    """All transcripts of one user. `folder` is created with the first one."""

    folder: Path
    redactor: Redactor
    durability: Durability = "process"
    elsewhere: tuple[Path, ...] = ()
    """Folders that may hold a folder named by the session's id, which is deleted with the transcript."""
    mirror: Mirror | None = None
    copies: Path | None = None
    """The folder that may hold a copy for the SDK, which is deleted with the transcript."""

    def create(self, cwd: str, session_id: str = "") -> OpenTranscript:
        """Create a transcript. Raises SessionError if the id is taken, or the file cannot be written."""
        return self._open_new(session_id, cwd, RebuiltTranscript(()))

    def resume(self, path: Path, cwd: str, *, upto: str = "") -> OpenTranscript:
        """
        Continue a transcript, with `upto` from the message of that id on.

        Raises:
            SessionError: another process writes it, or it cannot be read.
        """
        log = self._log(path)  # lock first: no process may add to it between reading and writing
        try:
            rebuilt = rebuild(read(path))
            writer = self._writer(log, path.stem, cwd, rebuilt)
            if upto:
                rebuilt = _cut_at(path, rebuilt, upto)
                writer.replace_messages(rebuilt.messages)
        except BaseException:
            log.close()
            raise
        return OpenTranscript(writer, path, rebuilt)

    def fork(self, path: Path, cwd: str, session_id: str = "", *, upto: str = "") -> OpenTranscript:
        """Create a transcript that begins with the conversation of another one, which stays unchanged."""
        rebuilt = replace(read_transcript(path, upto), deferred=None)  # a resume of the original decides about that
        forked = self._open_new(session_id, cwd, rebuilt, path.stem)
        forked.writer.adopt(rebuilt.messages)
        if rebuilt.moved:
            forked.writer.change_folder(rebuilt.moved)
        return replace(forked, forked=True)

    def has(self, session_id: str) -> bool:
        """Whether there is a session of exactly this id."""
        return ID.fullmatch(session_id) is not None and any(self._paths(session_id))

    def open_subagent(self, path: Path, agent_id: str, cwd: str) -> OpenTranscript:
        """
        Open a sub-agent's transcript, which is deleted with its session's; one that exists goes on.

        Raises:
            SessionError: it cannot be read or written.
        """
        file = path.with_suffix("") / "subagents" / f"{agent_id}.jsonl"
        log = self._log(file)
        try:
            rebuilt = RebuiltTranscript(()) if log.new else rebuild(read(file))
        except BaseException:
            log.close()
            raise
        kept, last = rebuilt.messages, rebuilt.last
        writer = TranscriptWriter(log, path.stem, cwd, self.redactor, agent=agent_id, kept=kept, last=last)
        return OpenTranscript(writer, file, rebuilt)

    def find(self, wanted: str, cwd: str) -> Path:
        """
        The transcript of a session: by id, by the beginning of an id, by title, or by path.

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
            raise SessionError(
                f"{wanted!r} may be {' or '.join(sorted(entry.id for entry in found)[:5])}. Give more of the id."
            )
        raise SessionError(f"There is no session {wanted!r}. `handrail sessions list` lists the sessions.")

    def newest(self, cwd: str) -> Path:
        """The transcript of a working folder that was used last. Raises SessionError if there is none."""
        names = (file.path for file in list_folder(self.folder / folder_name(cwd)) if file.name.endswith(".jsonl"))
        found = [path for path in map(Path, names) if path.is_file() and path.stat().st_size]
        for path in sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True):
            if _folder_of(path) in ("", cwd):  # other folders may have the same name here
                return path
        raise SessionError(f"There is no session in the folder {cwd} to continue. Start one without --continue.")

    def entries(self) -> "list[index.TranscriptEntry]":
        """All transcripts, the newest first."""
        return index.entries(self.folder)

    def remove(self, path: Path) -> None:
        """Delete a transcript and what belongs to it. Raises SessionError if a process writes it, or deleting fails."""
        log = self._log(path)
        try:
            path.unlink()
            path.with_suffix(".broken").unlink(missing_ok=True)
            for folder in (path.with_suffix(""), *(other / path.stem for other in self.elsewhere)):
                remove_tree(folder)
            if self.copies is not None:
                remove_copy(self.copies / path.parent.name / path.name)
        except OSError as error:
            raise SessionError(f"The session {path} cannot be deleted: {error.strerror}. {advice_on(error)}") from error
        finally:
            log.close()

    def prune(self, days: int, in_time: Callable[[], bool] = lambda: True) -> Iterator[str]:
        """
        Delete transcripts that were not used for so many days, the oldest first, and yield their ids.

        Transcripts in use stay. It stops when `in_time` becomes false.
        """
        files = sorted((facts.st_mtime, path) for path, facts in transcript_files(self.folder))
        oldest = time.time() - days * DAY
        for updated, path in files:
            if updated >= oldest or not in_time():
                return
            try:
                self.remove(Path(path))
            except SessionError:
                continue  # in use, or not ours to delete: the next run tries again
            yield Path(path).stem

    def _open_new(self, session_id: str, cwd: str, rebuilt: RebuiltTranscript, parent: str = "") -> OpenTranscript:
        name = session_id or new_id()
        if not ID.fullmatch(name):
            raise SessionError(
                f"{name!r} cannot be the id of a session. Use up to 128 letters, digits, - and _, such as a UUID."
            )
        path = self.folder / folder_name(cwd) / f"{name}.jsonl"
        taken = SessionError(f"There is a session {name!r} already. {CHOOSE}")
        if session_id and any(self._paths(name)):
            raise taken
        log = self._log(path)
        if not log.new:
            log.close()
            raise taken
        return OpenTranscript(self._writer(log, name, cwd, RebuiltTranscript(()), parent), path, rebuilt)

    def _log(self, path: Path) -> Log:
        return Log(path, durability=self.durability, mirror=self.mirror)

    def _writer(self, log: Log, name: str, cwd: str, rebuilt: RebuiltTranscript, parent: str = "") -> TranscriptWriter:
        kept, last, title = rebuilt.messages, rebuilt.last, rebuilt.title
        return TranscriptWriter(
            log, name, cwd, self.redactor, kept=kept, last=last, parent=parent, title=title, spent=rebuilt.spent
        )

    def _paths(self, name: str) -> Iterator[Path]:
        """The files of that id, of any working folder."""
        for folder in list_folder(self.folder):
            path = Path(folder.path, f"{name}.jsonl")
            if folder.is_dir(follow_symlinks=False) and path.is_file() and path.stat().st_size:
                yield path


def folder_name(cwd: str) -> str:
    """The name of the folder for the transcripts of a working folder, as other programs choose it."""
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


def _folder_of(path: Path) -> str:
    """The working folder that a transcript names; empty if it names none."""
    try:
        with path.open("rb") as file:
            cwd = json.loads(file.readline(HEAD)).get("cwd")
    except (OSError, ValueError, AttributeError, RecursionError):
        return ""
    return cwd if isinstance(cwd, str) else ""


def read_transcript(path: Path, upto: str = "") -> RebuiltTranscript:
    """Read a transcript, up to the message of that id. Raises SessionError if it is unreadable, or has none."""
    rebuilt = rebuild(read(path), upto=upto)
    if upto and rebuilt.last != upto:
        raise SessionError(f"The session {path.stem} has no message {upto!r}. Give the uuid of one of its lines.")
    return rebuilt


def _cut_at(path: Path, whole: RebuiltTranscript, upto: str) -> RebuiltTranscript:
    """The conversation up to a message. The messages that it shares with the whole one are the same objects."""
    part = read_transcript(path, upto)
    same = 0
    for ours, theirs in zip(part.messages, whole.messages, strict=False):
        if ours != theirs:
            break
        same += 1
    return replace(part, messages=(*whole.messages[:same], *part.messages[same:]))
