"""One session that an editor drives: a prompt at a time, its updates, and how it ended."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing, suppress

from handrail.acp.choices import config_options, mode_state
from handrail.acp.connection import INTERNAL_ERROR, INVALID_REQUEST, SETTLING, EditorConnection
from handrail.acp.history import history_updates
from handrail.acp.questions import EditorQuestions
from handrail.acp.updates import SessionUpdates, notice
from handrail.conversation.blocks import Json
from handrail.conversation.messages import UserMessage
from handrail.errors import JsonRpcError, RunError
from handrail.loop.events import RunEnded
from handrail.loop.state import WHAT_HAPPENED, Move, Why
from handrail.session.answer import answer_of
from handrail.session.build import open_session
from handrail.session.spec import SessionHost, SessionSpec, print_warning
from handrail.session.turns import all_turns
from handrail.tools.delegation import AgentNews

STOPS = {Why.REFUSED: "refusal", Why.MAX_TOKENS: "max_tokens", Why.CUT_ANSWERS: "max_tokens"}
"""How the protocol names these ends; other limits are `max_turn_requests`, other answers `end_turn`."""


class EditorSession:
    """An open session under the id that the editor knows it by. HandrailError if it cannot be opened."""

    def __init__(
        self, session_id: str, connection: EditorConnection, spec: SessionSpec, env: Mapping[str, str]
    ) -> None:
        self.id = session_id
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._notices: list[str] = []
        self._is_cancelled = False
        self._idle = asyncio.Event()
        self._idle.set()
        questions = EditorQuestions(session_id, connection.ask, self.send)
        self.session = open_session(spec, env, SessionHost(on_warning=self._warn, handler=questions))
        self.updates = questions.updates = SessionUpdates(self.session)
        self.session.agents.listeners.append(self._on_agent_news)

    def state(self) -> Json:
        """What the editor lets the person choose."""
        return {"modes": mode_state(self.session), "configOptions": config_options(self.session)}

    async def send(self, update: Json) -> None:
        """Send an update of this session."""
        await self._connection.tell("session/update", {"sessionId": self.id, "update": update})

    def _on_agent_news(self, news: AgentNews) -> None:
        """Show what a sub-agent in the background does."""
        for update in self.updates.of_agent(news.call, news):
            self._connection.tell_soon("session/update", {"sessionId": self.id, "update": update})

    async def send_commands(self) -> None:
        """Tell which slash commands there are."""
        for update in self.updates.commands():
            await self.send(update)

    async def send_mode(self) -> None:
        """Tell the mode, if it has changed."""
        for update in self.updates.mode():
            await self.send(update)

    async def send_history(self) -> None:
        """Repeat what was said before."""
        for update in history_updates(self.session):
            await self.send(update)

    # Prompts

    async def prompt(self, message: UserMessage) -> Json:
        """Work on a prompt to its end; JsonRpcError if it is not answered, or another one is at work."""
        if not self._idle.is_set():
            raise JsonRpcError("A prompt is still being worked on in this session. Cancel it first.", INVALID_REQUEST)
        self._idle.clear()
        self._is_cancelled = False
        try:
            ended = await self._work(message)
            for update in self.updates.close_calls():
                await self.send(update)
            await self.send_mode()
            await self.send_commands()
            return {"stopReason": await self._stop_reason(ended)}
        finally:
            self._idle.set()

    def cancel(self) -> None:
        """Stop the prompt that is being worked on, and its sub-agents."""
        if not self._idle.is_set():
            self._is_cancelled = True
            self.session.conversation.interrupt()
            self.session.agents.stop_all()

    async def aclose(self) -> None:
        """Close the session; what still runs is stopped."""
        self.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLING):
                await self._idle.wait()
        await self.session.aclose()

    async def _work(self, message: UserMessage) -> RunEnded | None:
        ended = None
        await self._send_notices()
        async with aclosing(all_turns(self.session, message, lambda: self._is_cancelled)) as events:
            async for event in events:
                for update in self.updates.of(event):
                    await self.send(update)
                await self._send_notices()
                if isinstance(event, RunEnded):
                    ended = event
        return ended

    async def _stop_reason(self, ended: RunEnded | None) -> str:
        if self._is_cancelled or ended is None or ended.move is Move.ABORTED:
            return "cancelled"
        if ended.move is Move.LIMIT:
            await self.send(notice(f"{WHAT_HAPPENED[ended.why]}, so it stopped here."))
            return STOPS.get(ended.why, "max_turn_requests")
        if ended.why in STOPS:
            return STOPS[ended.why]
        if ended.why is Why.HOOK_STOPPED and ended.problem:
            await self.send(notice(ended.problem))
        try:
            answer_of(ended)
        except RunError as error:
            raise JsonRpcError(str(error), INTERNAL_ERROR) from error
        return "end_turn"

    # What a person should know

    def _warn(self, text: str) -> None:
        """Keep a warning for the person until the editor expects messages; tools warn from their threads too."""
        print_warning(text)
        self._loop.call_soon_threadsafe(self._notices.append, text)

    async def _send_notices(self) -> None:
        while self._notices:
            await self.send(notice(self._notices.pop(0)))
