"""The mail of a session's agents: what the lead has not read yet wakes it. Loaded with the first message."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from handrail.agents.mail import NOTE, Mail, Mailboxes
from handrail.agents.teams import LEAD
from handrail.builtin.services import ToolServices
from handrail.conversation.messages import Message, notes_in


class SessionMail(Mailboxes):
    """The mailboxes of a session, and the signal that there is something for its lead."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.on_post = self._signal
        self._arrived = asyncio.Event()
        self._handed_out: set[str] = set()

    def _signal(self, mail: Mail) -> None:
        if mail.receiver == LEAD:
            self._arrived.set()

    def take_new(self, history: Sequence[Message]) -> tuple[str, ...]:
        """The messages to the lead that it has not read, each handed out once; their files stay until it has them."""
        self._arrived.clear()
        read = tuple(notes_in(history, NOTE))
        new = [
            mail
            for mail in self.waiting(LEAD)
            if mail.id not in self._handed_out and not any(mail.mark in text for text in read)
        ]
        self._handed_out |= {mail.id for mail in new}
        return tuple(mail.as_text() for mail in new)

    async def wait_for_lead(self) -> None:
        """Wait until something was written to the lead."""
        await self._arrived.wait()


_OF_SESSIONS: dict[Path, SessionMail] = {}


def mail_of(services: ToolServices) -> SessionMail:
    """The mail of a session, shared by its tools and the session itself."""
    return _OF_SESSIONS.setdefault(services.state, SessionMail(services.state / "mail"))


def close_mail(services: ToolServices) -> None:
    """The session is over; what was not read stays in its files."""
    _OF_SESSIONS.pop(services.state, None)
