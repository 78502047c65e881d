"""Which session a run writes to: a new one, a resumed one, or a fork."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.errors import SessionError
from handrail.records import record
from handrail.session.state_folder import sdk_folder
from handrail.transcripts.log import BrokenLine, read
from handrail.transcripts.rebuild import RebuiltTranscript
from handrail.transcripts.store import ID, OpenTranscript, TranscriptStore, folder_name, read_transcript


@record
class TranscriptOptions:
    """What the command line says about the session. `newest`: go on with the newest one of the folder."""

    keep: bool = True
    session_id: str = ""
    resume: str = ""
    resume_or_create: str = ""
    """Go on with the session of this id if there is one, else begin it."""
    newest: bool = False
    fork: bool = False
    upto: str = ""
    dropped: str = ""
    """The one prompt that may come after `upto`: if there are others, they are not left out, but it is refused."""
    name: str = ""
    mirrored: bool = False
    """The program around us keeps sessions as well, and may have brought this one."""
    copied: bool = False
    """The SDK drives us: its own functions look for sessions in a folder that is not ours."""

    def for_next(self) -> "TranscriptOptions":
        """What is asked of the session that replaces this one."""
        return TranscriptOptions(keep=self.keep, mirrored=self.mirrored, copied=self.copied)


def open_transcript(
    wish: TranscriptOptions, cwd: Path, store: TranscriptStore, env: Mapping[str, str]
) -> OpenTranscript | RebuiltTranscript | None:
    """The session of a run, only read if it is not kept (None = a new one); SessionError if it cannot be had."""
    folder = os.path.realpath(cwd)
    if name := wish.resume_or_create:
        return store.resume(store.find(name, folder), folder) if store.has(name) else store.create(folder, name)
    if not wish.resume and not wish.newest:
        if not wish.keep:
            return None
        return _set_name(store.create(folder, wish.session_id), wish.name)
    if wish.session_id and not wish.fork:
        raise SessionError("--session-id gives a new session its id. With --resume or --continue use --fork-session.")
    path = store.newest(folder) if wish.newest else _find_imported(wish, cwd, env) or store.find(wish.resume, folder)
    if wish.upto or wish.dropped:
        _check_place(path, wish)
    if not wish.keep:
        return read_transcript(path, wish.upto)
    if wish.fork:
        return _set_name(store.fork(path, folder, wish.session_id, upto=wish.upto), wish.name)
    return _set_name(store.resume(path, folder, upto=wish.upto), wish.name)


def mirror_folder(cwd: Path, env: Mapping[str, str]) -> Path:
    """Where the SDK looks for a folder's sessions."""
    return sdk_folder(env) / folder_name(os.path.realpath(cwd))


def _find_imported(wish: TranscriptOptions, cwd: Path, env: Mapping[str, str]) -> Path | None:
    """The session that the calling program restored; it continues there, and the program gets its records."""
    if not wish.mirrored or not env.get("CLAUDE_CONFIG_DIR") or not ID.fullmatch(wish.resume):
        return None
    path = mirror_folder(cwd, env) / f"{wish.resume}.jsonl"
    return path if path.is_file() else None


def _check_place(path: Path, wish: TranscriptOptions) -> None:
    """Check that the session holds the message to go on from, and nothing unexpected after it; else SessionError."""
    reached, dropped = False, list[str]()
    for line in read(path):
        if isinstance(line, BrokenLine):
            continue
        if reached and line["type"] == "user" and not line.get("isMeta") and not _only_results(line):
            dropped.append(str(line.get("uuid")))
        reached = reached or line.get("uuid") == wish.upto
    if not reached:
        raise SessionError(
            f"There is no message {wish.upto!r} in the session {path.stem!r} to go on from. `handrail sessions export` "
            "shows the ids of its messages."
        )
    if wish.dropped and dropped != [wish.dropped]:
        raise SessionError(
            f"Resume rejected by --resume-drops-turn: after {wish.upto!r} come the prompts {dropped}, "
            f"and only {wish.dropped!r} may be left out. Resume at a later message, or without --resume-drops-turn."
        )


def _only_results(line: Mapping[str, Any]) -> bool:
    content = line["message"]["content"]
    return isinstance(content, list) and all(part.get("type") == "tool_result" for part in content)


def _set_name(opened: OpenTranscript, name: str) -> OpenTranscript:
    if name:
        opened.writer.set_title(name)
    return opened
