"""The state of a conversation: its history, its tools, and queued messages."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import field
from hashlib import sha256
from typing import Protocol

from handrail.conversation.blocks import ToolUse
from handrail.conversation.messages import Attachment, Message, UserMessage
from handrail.conversation.request import Chain, History
from handrail.dispatch.results import ResultStore
from handrail.hooks.news import HookNews
from handrail.loop.attempt_task import check_wait
from handrail.records import mutable_record
from handrail.tools.abort import AbortReason
from handrail.tools.catalog import Catalog
from handrail.tools.context import RunContext
from handrail.tools.stub import ListedTool
from handrail.tools.tool import PromptView

MAX_WAKE_UPS = 8
"""How often hooks in the background may keep a run from ending."""


class Mailbox:
    """Messages that arrived during a turn. They become part of the next request."""

    def __init__(self) -> None:
        self._messages: deque[UserMessage] = deque()
        self._notes: list[Attachment] = []
        self._needs_run = False
        self._wake_ups = 0
        self.news: list[HookNews] = []
        """Messages of background hooks for the user, kept until a run can show them."""
        self.on_submit: Callable[[AbortReason], None] | None = None
        """Called when a message should not wait for tools that give way."""

    def __len__(self) -> int:
        """How many messages wait, plus one if a note needs a run."""
        return len(self._messages) + self._needs_run

    def post(self, message: UserMessage, *, submit: bool = False) -> None:
        """Queue a message, from any thread; with `submit`, running tools that give way to a new message are stopped."""
        self._messages.append(message)
        on_submit = self.on_submit
        if submit and on_submit is not None:
            on_submit(AbortReason.SUBMIT)

    def note(self, note: Attachment, *, wakes: bool = False, most: int = 0) -> None:
        """
        Queue a note that no person typed. With `wakes` a run goes on for it, `MAX_WAKE_UPS` times per prompt.

        With `most`, it is left out if it waits already, or if so many of its kind do.
        """
        if most and (note in self._notes or sum(each.kind == note.kind for each in self._notes) >= most):
            return
        self._notes.append(note)
        if wakes and self._wake_ups < MAX_WAKE_UPS:
            self._wake_ups += 1
            self._needs_run = True

    def take_notes(self, *, prompted: bool = False) -> tuple[Attachment, ...]:
        """Take all notes. `prompted`: there is a new prompt, so that notes may wake the agent again."""
        notes, self._notes, self._needs_run = tuple(self._notes), [], False
        self._wake_ups = 0 if prompted else self._wake_ups
        return notes

    def take(self) -> tuple[UserMessage, ...]:
        """Take all messages, in the order they came."""
        messages = list[UserMessage]()
        while self._messages:  # one by one: another thread may post meanwhile
            messages.append(self._messages.popleft())
        return tuple(messages)


def new_chain(session_id: str = "") -> Chain:
    """The chain of a session's requests, the same whenever it is resumed; without a session, a new one."""
    return Chain(sha256(session_id.encode()).hexdigest()[:32] if session_id else os.urandom(16).hex())


class ActiveRun(Protocol):
    """A run, as far as the conversation is concerned."""

    @property
    def active(self) -> bool: ...


@mutable_record
class ConversationState:
    """One conversation. `context` is replaced when a tool changed it for the calls after it."""

    catalog: Catalog
    context: RunContext
    store: ResultStore
    history: History = field(default_factory=History)
    mailbox: Mailbox = field(default_factory=Mailbox)
    chain: Chain = field(default_factory=new_chain)
    attempt_task: asyncio.Task[None] | None = None
    """The attempt that may still write to the history."""
    view: PromptView | None = None
    """What the prompts of tools depend on, as it was at the first request."""
    definitions: dict[str, tuple[ListedTool, bytes]] = field(default_factory=dict)
    """The tools that were sent, by name, with the bytes they were sent as: part of the cached prefix."""
    session_started: bool = False
    """Whether hooks know that the session has started."""
    start_source: str = ""
    """Why it starts, if it is neither new nor resumed."""
    announced_tools: frozenset[str] = frozenset()
    announced_servers: frozenset[str] = frozenset()
    """The tools held back, as the model knows them."""
    announced_instructions: frozenset[tuple[str, str]] = frozenset()
    """MCP servers and what they say about their tools, as far as the model was told."""
    deferred_call: ToolUse | None = None
    """The call that a hook deferred at the end of the last run."""
    has_answer: bool = True
    """Whether the last run came to an answer; false while one runs."""
    active_run: Callable[[], ActiveRun | None] = lambda: None
    """The run that works on it, as long as that run has a reader."""

    @property
    def deferred(self) -> ToolUse | None:
        """The deferred call, as long as nothing was added since: then it can be retried."""
        last = self.history.messages[-1] if self.deferred_call and self.history.messages else None
        ids = isinstance(last, UserMessage) and [getattr(block, "tool_use_id", "") for block in last.content]
        return self.deferred_call if self.deferred_call and ids == [self.deferred_call.id] else None

    def forget_announcements(self) -> None:
        """The model does not know any more what it was told about tools and servers."""
        self.announced_tools = self.announced_servers = frozenset()
        self.announced_instructions = frozenset()

    def refresh_tools(self) -> tuple[str, ...]:
        """Ask disabled tools again whether they are enabled; returns the names of all tools of the next request."""
        return tuple(tool.name for tool in self.catalog.refresh().listed)

    def replace_history(self, messages: Iterable[Message]) -> None:
        """Replace the history. A deferred call is not retried any more."""
        self.deferred_call = None
        self.history.replace(messages)

    async def wait_until_idle(self) -> None:
        """Wait until a run that was left early has finished writing; HandrailError if that wait would never end."""
        if self.attempt_task is not None and check_wait(self.attempt_task):
            await asyncio.wait((self.attempt_task,))
