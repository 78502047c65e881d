"""Opens the session of a conversation, and wires its questions and warnings to the terminal."""

import argparse
import asyncio
from dataclasses import replace

from handrail.cli.conversation_ask import ConversationHandler
from handrail.cli.conversation_commands import chat_commands
from handrail.cli.conversation_start import ask_session, ask_trust, greet, open_with_key
from handrail.cli.questions import answer_others, handler_for
from handrail.cli.session_flags import session_spec
from handrail.cli.terminal_commands import apply_settings, terminal_commands
from handrail.session.build import open_session
from handrail.session.session import Session
from handrail.session.spec import SessionHost
from handrail.tools.cards import Card
from handrail.tui.interactive.chat import Chat
from handrail.tui.interactive.terminal import Terminal


async def open_chat(chosen: argparse.Namespace, terminal: Terminal) -> Chat:
    """The conversation that the flags ask for."""
    loop = asyncio.get_running_loop()

    def warn(text: str) -> None:
        loop.call_soon_threadsafe(terminal.say, text, "warning")  # tools look at settings in their threads

    def card_of(use_id: str) -> Card | None:
        queued = terminal.view.card_of(use_id)
        return queued.card if queued else None

    def mark(use_id: str, is_open: bool) -> None:
        terminal.view.mark_question(use_id, is_open=is_open)

    def open_for(env: dict[str, str]) -> Session:
        host = SessionHost(on_warning=warn, handler=handler, stays=True)
        return open_session(replace(session_spec(chosen), interactive=True), env, host)

    own = ConversationHandler(terminal, card_of, mark)
    handler = handler_for(chosen, own)
    await ask_trust(chosen, terminal)
    await ask_session(chosen, terminal)
    session = await open_with_key(chosen, terminal, open_for)
    apply_settings(terminal, session)
    greet(chosen, session, terminal.say)
    session.agents.listeners.append(terminal.on_background_news)
    try:
        await answer_others(chosen, handler, session)
    except BaseException:
        await session.aclose()
        raise
    return Chat(session, terminal, {**chat_commands(), **terminal_commands(terminal)})
