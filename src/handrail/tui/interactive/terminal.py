"""The conversation on a terminal: queues what is typed, draws what happens, asks, interrupts and leaves."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit.input import Input

from handrail.conversation.plain import plain
from handrail.lazy import lazy
from handrail.records import record
from handrail.tui.interactive.app import TerminalApp
from handrail.tui.interactive.completion import PromptCompleter
from handrail.tui.interactive.dialog import DialogQuestion, DialogReply
from handrail.tui.interactive.file_index import FileIndex
from handrail.tui.interactive.frames import FrameOutput
from handrail.tui.interactive.input_line import PastedTexts, PromptHistory
from handrail.tui.interactive.key_bindings import DEFAULT_KEYS
from handrail.tui.interactive.live_region import LiveRegion
from handrail.tui.interactive.paint import Theme, theme_for
from handrail.tui.interactive.session_completions import SessionCompletions
from handrail.tui.interactive.turns import Turns

if TYPE_CHECKING:
    from handrail.conversation.messages import Message
    from handrail.loop import events
    from handrail.tools import drafts
    from handrail.tools.cards import Card, Tone
    from handrail.tools.delegation import AgentNews
    from handrail.tui.interactive import footer, history_blocks, pager
    from handrail.tui.interactive import view as views
    from handrail.tui.interactive.chat import Chat
else:  # what the first frame does not need is loaded behind it
    drafts = lazy("handrail.tools.drafts")
    events = lazy("handrail.loop.events")
    footer = lazy("handrail.tui.interactive.footer")
    history_blocks = lazy("handrail.tui.interactive.history_blocks")
    pager = lazy("handrail.tui.interactive.pager")
    views = lazy("handrail.tui.interactive.view")

OpenChat = Callable[["Terminal"], Awaitable["Chat"]]


@record
class TerminalOptions:
    """How the terminal behaves, as far as it is known before a session is open."""

    history: Callable[[], Path | None] = lambda: None
    list_files: Callable[[], Awaitable[Sequence[str]]] | None = None
    keys: Mapping[str, tuple[str, ...]] | None = None
    title: str = "handrail"


class Terminal:
    """One person at a terminal. It draws from the first moment; the session is opened behind it."""

    def __init__(self, output: FrameOutput, source: Input, options: TerminalOptions) -> None:
        self._output = output
        self._source = source
        self.options = options
        self.theme: Theme = theme_for("")
        self.notify: Callable[[str], None] = lambda _text: output.bell()
        """Called when a question waits."""
        self.status: Callable[[], Awaitable[str]] | None = None
        """Gives the user's own status line."""
        self.chat: Chat | None = None
        self._background: set[asyncio.Task[None]] = set()
        self.failure: BaseException | None = None
        self.turns = Turns(self)
        self._region = LiveRegion(
            self.turns, lambda: self.theme, lambda: self.__dict__.get("view"), lambda: self.app.takes_vi_commands
        )
        offers = SessionCompletions(lambda: self.chat, self.start, lambda text: self.say(text, "bad"))
        pasted = PastedTexts()
        self.unfold = pasted.unfold
        files = FileIndex(options.list_files or _no_files)
        self.app: TerminalApp = TerminalApp(
            output,
            source,
            actions=self.turns,
            drawing=self._region,
            history=PromptHistory(options.history, pasted.unfold),
            pasted=pasted,
            completer=PromptCompleter(offers.command_hints, files, offers.argument_values, offers.server_mentions),
            keys=dict(options.keys or DEFAULT_KEYS),
            theme=lambda: self.theme,
        )

    async def run(self, open_chat: OpenChat, first_prompt: str = "") -> None:
        """Converse until the person leaves; raises what went wrong in the middle of it."""

        def begin() -> None:
            self._output.set_title(plain(self.options.title))
            if first_prompt:
                self.turns.submit(first_prompt)
            self.start(self._open(open_chat))

        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: self._on_loop_error(context))
        try:
            await self.app.run(begin)
        finally:
            self._output.clear_title()
            self._output.flush()
            await self._close()
        if self.failure is not None:
            raise self.failure

    async def _open(self, open_chat: OpenChat) -> None:
        self.chat = await open_chat(self)
        messages = self.chat.session.conversation.messages
        self.show_history(messages)
        self.chat.transcript.add_history(messages)
        self.refresh()
        self.turns.begin(self.chat)

    async def _close(self) -> None:
        for task in tuple(self._background):
            task.cancel()
            await asyncio.wait((task,))

    def start(self, work: Awaitable[None]) -> "asyncio.Task[None]":
        """Start something in the background; if it fails, so does the conversation."""
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._on_task_end)
        return task

    def _on_loop_error(self, context: dict[str, Any]) -> None:
        """What went wrong outside of every task ends the conversation as well."""
        if isinstance(error := context.get("exception"), Exception):
            self._fail(error)
        else:
            self.say(str(context["message"]), "warning")

    def _fail(self, error: BaseException) -> None:
        self.failure = self.failure or error
        self.app.stop()

    def _on_task_end(self, task: "asyncio.Task[None]") -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    # What draws: the front of a chat

    @cached_property
    def view(self) -> "views.ConversationView":
        """The conversation as it happens."""
        return views.ConversationView(
            self._commit,
            asyncio.get_running_loop().time,
            lambda: self.theme,
            lambda name, arrived: _draft_card(self.chat, name, arrived),
        )

    def _commit(self, block: object) -> None:
        self.app.commit(block)  # type: ignore[arg-type]  # the view makes blocks

    def on_event(self, event: "events.LoopEvent") -> None:
        """Draw an event."""
        self.view.on_event(event)
        if isinstance(event, views.FOOTER_EVENTS):
            self.refresh()
        self.app.pace.request_frame()

    def on_background_news(self, news: "AgentNews") -> None:
        """Draw an event of a sub-agent in the background."""
        self.view.on_background_news(news)
        if isinstance(news.event, events.MessageComplete):
            self.refresh()
        self.app.pace.request_frame()

    def say(self, text: str, tone: "Tone" = "plain", *, dim: bool = False) -> None:
        """Show a note."""
        self.view.say(text, tone, dim=dim)

    def prompt(self, text: str) -> None:
        """Show what the person sent."""
        self.view.prompt(text)

    async def ask(self, question: DialogQuestion) -> DialogReply | None:
        """The person's answer; None = the question was left."""
        if not question.hasty:
            self.notify(question.title)
        return await self.app.ask(question)

    async def page(self, text: str) -> None:
        """Show a long text on a screen of its own."""
        await pager.show_pages(text, self._output, self._source)

    def wait_for(self, what: str) -> None:
        """Show what is waited for."""
        self.view.wait_for(what)
        self.app.pace.request_frame()

    def write_sequence(self, text: str) -> None:
        """Send the terminal a sequence that draws nothing."""
        self._output.write_raw(text)
        self._output.flush()

    def show_history(self, messages: Sequence["Message"]) -> None:
        """Show the end of a conversation that goes on."""
        for block in history_blocks.history_blocks(messages, self.theme):
            self.app.commit(block)

    def refresh(self) -> None:
        """Look at the facts of the footer anew."""
        if self.chat is not None:
            self._region.facts = footer.footer_facts(self.chat.session)
            if self.status is not None:
                self.start(self._refresh_status(self.status))
        self.app.pace.request_frame()

    async def _refresh_status(self, status: Callable[[], Awaitable[str]]) -> None:
        self._region.status_line = await status()
        self.app.pace.request_frame()

    def stop(self) -> None:
        """Leave."""
        self.app.stop()

    @property
    def typed(self) -> str:
        """What stands in the input line."""
        return self.app.buffer.text

    def insert(self, text: str) -> None:
        """Put a text into the input line."""
        self.app.buffer.insert_text(text)

    def clear_input(self) -> None:
        """Empty the input line."""
        self.app.buffer.reset()


async def _no_files() -> Sequence[str]:
    return ()


def folder_title(folder: str = "") -> str:
    """The title of the window."""
    return f"handrail - {Path(folder or os.getcwd()).name}"  # noqa: PTH109  # costs less


def _draft_card(chat: "Chat | None", name: str, arrived: str) -> "Card":
    assert chat is not None  # a model writes calls in a chat only
    return drafts.draft_card(chat.session.conversation.tools, name, arrived)
