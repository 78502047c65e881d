"""Which session of a folder to go on with: a list, newest first, that letters narrow down."""

import os
import time
from typing import Protocol

from handrail.session.state_folder import session_store
from handrail.tui.call_lines import duration
from handrail.tui.interactive.dialog import DialogChoice, DialogQuestion, DialogReply


class AsksForSession(Protocol):
    """What asks the person."""

    async def ask(self, question: DialogQuestion) -> DialogReply | None: ...


async def choose_session(asker: AsksForSession, cwd: str, but: str = "") -> str | None:
    """The id of the session that the person chooses, without the one `but`; empty = none, None = there is none."""
    now = time.time()
    choices = tuple(
        DialogChoice(
            each.id,
            f"{each.title or '(no prompt)'}",
            f"{duration(max(now - each.updated, 0.0))} ago, {each.id[:8]}",
        )
        for each in session_store(os.environ).entries()
        if each.cwd == cwd and each.id != but
    )
    if not choices:
        return None
    reply = await asker.ask(DialogQuestion("Go on with which session?", choices, searchable=True, hasty=True))
    return reply.value if reply else ""
