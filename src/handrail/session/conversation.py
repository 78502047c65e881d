"""One conversation with a model that may use tools: what a session, and every sub-agent of it, talks through."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.conversation.blocks import Text, ToolReference, ToolResult, ToolUse
from handrail.conversation.messages import Message, UserMessage
from handrail.errors import HandrailError
from handrail.files.memory import FileMemory
from handrail.loop.conversation_state import ConversationState, Mailbox
from handrail.loop.limits import Limits
from handrail.loop.run import Run
from handrail.loop.run_config import RunConfig
from handrail.loop.run_hooks import Expansion, hook_note
from handrail.session.models.choose import ChosenModel
from handrail.tools.pool import AnyTool, Pool
from handrail.transcripts.store import OpenTranscript

if TYPE_CHECKING:
    from handrail.hooks.news import HookNews
    from handrail.hooks.runner import Hooks

STILL_RUNNING = "A prompt is still being worked on."


class Conversation:
    """What is said, and the run that works on it. One prompt at a time; `send` adds a message to a running one."""

    def __init__(self, config: RunConfig, state: ConversationState, hooks: "Hooks | None" = None) -> None:
        self.config = config
        self.state = state
        self.is_closed = False
        """Its transcript was closed, so that nothing may be added any more."""
        self._hooks = hooks
        self._found = found_tools(state.history.messages)
        self._current: Callable[[], Run | None] = lambda: None
        self._beginning = threading.Lock()
        self._event_loop: asyncio.AbstractEventLoop | None = None
        """The loop in which the current run was made."""
        if self._found:
            state.catalog.activate(self._found)
        if hooks is not None and state.context.agent.is_main:
            hooks.on_wake = partial(_post_note, state.mailbox, wakes=True)
            hooks.on_context = partial(_post_note, state.mailbox)
            hooks.on_late_message = state.mailbox.news.append

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation so far; always in a state that can be continued or saved."""
        return self.state.history.messages

    @property
    def tools(self) -> Pool:
        """All tools that the model may use, in the order it sees them; looking at one loads it."""
        return self.state.catalog.pool

    @property
    def deferred(self) -> ToolUse | None:
        """The call that a hook deferred; the next run takes it up first."""
        return self.state.deferred

    @property
    def running(self) -> bool:
        """Whether a prompt is being worked on."""
        run = self._current()
        return run is not None and run.active

    def run(
        self,
        message: UserMessage,
        *,
        limits: Limits | None = None,
        expansion: Expansion | None = None,
        config: RunConfig | None = None,
    ) -> Run:
        """
        Work on a prompt, made from the command `expansion`; an empty message only takes up a deferred call.

        `config` takes the place of the conversation's own for this run.
        """
        if self.is_closed:
            raise HandrailError("This conversation was closed. Open another one; a kept session goes on by its id.")
        if not message.content and self.deferred is None:
            raise HandrailError("The message is empty. Give a text or a block.")
        config = config or self.config
        config = config if limits is None else replace(config, limits=limits)
        with self._beginning:
            self._refuse_other_loop()
            if self.running:
                raise HandrailError(f"{STILL_RUNNING} Use send() to add to it, or close its run first.")
            return self._begin(Run(config, self.state, message, expansion))

    def compact(self, instructions: str = "") -> Run:
        """Replace the conversation with a summary; HandrailError while a prompt runs, or if it is never summarised."""
        if self.running:
            raise HandrailError(f"{STILL_RUNNING} Summarise the conversation after it.")
        if self.config.compact is None:
            raise HandrailError(
                "This conversation cannot be summarised: it was opened without a way to make summaries."
            )
        return self._begin(Run(self.config, self.state, UserMessage((Text(instructions),)), instructions=instructions))

    def _begin(self, run: Run) -> Run:
        self._current = weakref.ref(run)
        self._event_loop = running_loop()
        return run

    def _refuse_other_loop(self) -> None:
        """HandrailError if a run of another thread's loop goes on, or is about to: neither could wait for the other."""
        run, other = self._current(), self._event_loop
        if run is None or run.is_over or other is None or other is running_loop() or not other.is_running():
            return
        raise HandrailError(
            f"{STILL_RUNNING} It belongs to the event loop of another thread. "
            "Wait for its answer, or give each thread an Agent of its own."
        )

    async def clear(self) -> None:
        """Forget the conversation, not its transcript; HandrailError while a prompt is being worked on."""
        await self.end_for_next()
        state = self.state
        state.start_source, state.view = "clear", None
        state.forget_announcements()
        state.definitions.clear()
        state.context = replace(state.context, files=FileMemory(), history=())
        state.replace_history(())

    async def end_for_next(self) -> None:
        """Another conversation takes its place: hooks learn so. HandrailError while a prompt is being worked on."""
        if self.running:
            raise HandrailError(f"{STILL_RUNNING} Close its run first.")
        await self.state.wait_until_idle()
        await self.tell_end("clear")

    def send(self, message: UserMessage, *, interrupt: bool = False) -> None:
        """Add a message to the next request; with `interrupt`, tools that give way to a new message stop now."""
        self.state.mailbox.post(message, submit=interrupt)

    def interrupt(self) -> None:
        """Stop what is running now. The run ends with its events in order, and the conversation can go on."""
        if run := self._current():
            run.interrupt()

    def set_model(self, chosen: ChosenModel) -> None:
        """Ask another model from the first request of the next prompt on."""
        self.config = replace(self.config, model=chosen.model, model_name=chosen.name, cost=chosen.cost)
        context = self.state.context
        self.state.context = replace(context, options=replace(context.options, model=chosen.name))

    def set_mcp_tools(self, tools: tuple[AnyTool, ...]) -> None:
        """Offer these tools of servers from the next request on."""
        self.state.catalog.refresh(mcp=tools)
        if self._found:
            self.state.catalog.activate(self._found)

    def check_stop(self) -> None:
        """HandrailError if `stop` would wait for ever."""
        if run := self._current():
            run.check_close()

    async def stop(self) -> None:
        """Stop the run, wait until nothing of it is left, and tell the hooks that the session ends."""
        if (run := self._current()) and run.active:
            await run.aclose()
        await self.tell_end("other")

    async def tell_end(self, reason: str) -> None:
        """Run the SessionEnd hooks, if hooks know that the session has started."""
        started, self.state.session_started = self.state.session_started, False
        if started and self._hooks is not None and self._hooks.wants("SessionEnd"):
            await self._hooks.fire("SessionEnd", {"reason": reason}, self.state.context)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def resume_transcript(state: ConversationState, transcript: OpenTranscript, folders: Sequence[str]) -> None:
    """Go on where a transcript stopped: its notes, its deferred call, and the folder it was in if that still may be."""
    rebuilt = transcript.rebuilt
    state.history.transcript = transcript.writer
    if rebuilt.note:
        state.history.append(rebuilt.note)
    state.context = replace(state.context, cwd=_last_folder(rebuilt.moved, state.context.cwd, folders))
    state.deferred_call = rebuilt.deferred
    state.start_source = "fork" if transcript.forked else ""


def _last_folder(moved: str, start: Path, folders: Sequence[str]) -> Path:
    if not moved or not os.path.isdir(moved):  # noqa: PTH112  # costs less
        return start
    real = os.path.realpath(moved)
    return Path(moved) if any(real == top or real.startswith(f"{top}/") for top in folders) else start


def found_tools(messages: Sequence[Message]) -> list[str]:
    """The deferred tools that the model has found; what it was sent in full stays so."""
    return [
        part.name
        for message in messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, ToolResult)
        for part in block.content
        if isinstance(part, ToolReference)
    ]


def _post_note(mailbox: Mailbox, news: "HookNews", *, wakes: bool = False) -> None:
    mailbox.note(hook_note(news.message), wakes=wakes)
