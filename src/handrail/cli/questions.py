"""Questions between processes: `--ask-at` puts them to another handrail, `--answer-at` answers those of others."""

import argparse
from pathlib import Path

from handrail.dispatch.approval.question import Handler
from handrail.dispatch.approval.remote import Coordinator, WorkerHandler
from handrail.errors import HandrailError
from handrail.session.session import Session


def handler_for(chosen: argparse.Namespace, own: Handler | None) -> Handler | None:
    """Who is asked: the process that a flag names, else the person here."""
    return WorkerHandler(Path(chosen.ask_at)) if chosen.ask_at else own


async def answer_others(chosen: argparse.Namespace, handler: Handler | None, session: Session) -> None:
    """Answer questions of other processes as long as the session is open, if a flag says so."""
    if not chosen.answer_at:
        return
    if handler is None:
        raise HandrailError("--answer-at needs someone to ask. Run it at a terminal, or add --ask.")
    coordinator = Coordinator(Path(chosen.answer_at), handler)
    await coordinator.start()
    session.on_close.append(coordinator.aclose)
