"""
The mail of the agents of a session: one folder for each receiver, one file for each message.

    <state>/mail/<receiver>/<order>-<id>.json

A message is in its file from the moment it was sent until the receiver's transcript holds it, so a killed process loses
none. One that was killed between the two finds the id in the transcript, and does not deliver it again.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment, Message, notes_in
from handrail.dispatch.outcomes import escape_tags
from handrail.files.private_folder import make_private_folder
from handrail.records import record

VERSION = 1
NOTE = "agent_message"
TAG = "agent-message"


@record
class Mail:
    """A message of one agent to another. `sender` is how the receiver can answer, `sender_id` who it is."""

    id: str
    sender: str
    sender_id: str
    receiver: str
    text: str
    summary: str = ""

    @property
    def mark(self) -> str:
        """What the text for the receiver begins with, and that of no other message."""
        return f'<{TAG} id="{self.id}"'

    def as_text(self) -> str:
        """The message as its receiver reads it; nothing in it can pass for its end, or for words of the program."""
        return f'{self.mark} from="{self.sender}">\n{escape_tags(self.text)}\n</{TAG}>'


FIELDS = tuple(Mail.__annotations__)


def new_mail(sender: str, sender_id: str, receiver: str, text: str, summary: str = "") -> Mail:
    """A message with an id of its own."""
    return Mail(os.urandom(8).hex(), sender, sender_id, receiver, text, summary)


class Mailboxes:
    """The mail of one session. `on_post` is called with each message that was sent in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.on_post: Callable[[Mail], None] = lambda _mail: None
        self._last = 0

    def post(self, mail: Mail) -> None:
        """Put a message into the box of its receiver: all of it or nothing. OSError if it cannot be written."""
        box = make_private_folder(self._box(mail.receiver))
        self._last = max(self._last + 1, time.time_ns())
        draft = box / f".{mail.id}.draft"
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump({"version": VERSION} | {name: getattr(mail, name) for name in FIELDS}, file)
        draft.replace(box / f"{self._last:020d}-{mail.id}.json")
        self.on_post(mail)

    def withdraw(self, mail: Mail) -> None:
        """Take back a message that its receiver has not got yet."""
        for path in self._box(mail.receiver).glob(f"*-{mail.id}.json"):
            path.unlink(missing_ok=True)

    def waiting(self, receiver: str) -> tuple[Mail, ...]:
        """The messages that an agent has not got yet, oldest first."""
        return tuple(mail for path in self._files(receiver) if (mail := _read(path)) is not None)

    def attachments(self, receiver: str, history: Sequence[Message]) -> Iterable[Attachment]:
        """
        The messages that an agent gets with its next request.

        The next one is asked for when the one before is in the history: then its file goes.
        """
        for path in self._files(receiver):
            mail = _read(path)
            if mail is None:
                continue
            if not any(mail.mark in text for text in notes_in(history, NOTE)):
                yield Attachment(NOTE, (Text(mail.as_text()),))
            path.unlink(missing_ok=True)

    def _files(self, receiver: str) -> list[Path]:
        box = self._box(receiver)
        return sorted(box.glob("[0-9]*.json")) if box.is_dir() else []

    def _box(self, receiver: str) -> Path:
        assert receiver.strip(".")
        return self.folder / receiver.replace("/", "_")


def _read(path: Path) -> Mail | None:
    """The message in a file; None if it is gone, damaged or of a newer version: then it stays where it is."""
    try:
        kept = json.loads(path.read_text("utf-8"))
        return Mail(**{name: str(kept[name]) for name in FIELDS}) if kept["version"] <= VERSION else None
    except (OSError, ValueError, LookupError, TypeError):
        return None
