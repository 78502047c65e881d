"""The record of a run that a program has in its hands."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from handrail.conversation.messages import Message
from handrail.loop.facts import end_facts
from handrail.loop.run import Run
from handrail.transcripts.writer import TranscriptWriter, message_value
from handrail.view.files import RunFiles, read_run
from handrail.view.model import RunRecord
from handrail.view.reader import OWN, RunReader

SESSIONS = "sessions"


def record(source: Run | Path | str | Iterable[Message], *, most: int = 0) -> RunRecord:
    """
    The record of a run, of a session file, or of the messages of a conversation.

    Times, costs and decisions are known of sessions that are kept on disk; of others, what was said and called. Texts
    are whole, or with `most` cut after so many characters.

    Raises:
        SessionError: the file cannot be read.
    """
    match source:
        case Run():
            return _record_run(source, most)
        case Path() | str():
            return read_run(files_of(Path(source)), most=most)
        case _:
            return _record_messages(source, None, most)


def files_of(session: Path) -> RunFiles:
    """The files of a session: those beside it, if it lies in a state folder."""
    parents = session.absolute().parents
    is_kept = len(parents) > 2 and parents[1].name == SESSIONS
    return RunFiles(session, parents[2] if is_kept else None)


def _record_run(run: Run, most: int) -> RunRecord:
    transcript = run.history.transcript
    if isinstance(transcript, TranscriptWriter) and transcript.path.exists():
        return read_run(files_of(transcript.path), most=most)
    return _record_messages(run.history.messages, run, most)


def _record_messages(messages: Iterable[Message], run: Run | None, most: int) -> RunRecord:
    reader = RunReader("", most)
    own: dict[str, Any] = {"type": OWN}
    reader.add({**own, "event": "adopted"})
    reader.add({**own, "event": "replaced", "messages": [message_value(each) for each in messages]})
    if run is not None and run.ended is not None:
        reader.add({**own, "event": "ended", **end_facts(run.ended)})
    return reader.record()
