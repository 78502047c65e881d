"""What lives as long as a conversation: its history, the tools, and the messages that wait for their turn."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from handrail.conversation.blocks import ToolUse
from handrail.conversation.messages import Attachment, Message, UserMessage
from handrail.conversation.request import Chain, History
from handrail.dispatch.results import ResultStore
from handrail.hooks.news import HookNews
from handrail.tools.abort import AbortReason
from handrail.tools.catalog import Catalog
from handrail.tools.context import RunContext
from handrail.tools.stand_in import Listed
from handrail.tools.tool import PromptView

MAX_WOKEN = 8
"""How often hooks in the background may keep a run from ending."""


class Mailbox:
    """Messages that came while a turn ran. They become part of the next request."""

    def __init__(self) -> None:
        self._messages: deque[UserMessage] = deque()
        self._notes: list[Attachment] = []
        self._calls = False
        self._woken = 0
        self.news: list[HookNews] = []
        """What hooks in the background have to say to the person, until a run can tell it."""
        self.on_submit: Callable[[AbortReason], None] | None = None
        """Told when a message should not wait for tools that give way."""

    def __len__(self) -> int:
        """How much there is that a run should not end without."""
        return len(self._messages) + self._calls

    def post(self, message: UserMessage, *, submit: bool = False) -> None:
        """Queue a message; with `submit`, running tools that give way to a new message are stopped."""
        self._messages.append(message)
        if submit and self.on_submit:
            self.on_submit(AbortReason.SUBMIT)

    def note(self, note: Attachment, *, wakes: bool = False) -> None:
        """
        Queue something that nobody typed. With `wakes` a run goes on for it.

        Only so often between two prompts: what is said about each answer must not keep a run going forever.
        """
        self._notes.append(note)
        if wakes and self._woken < MAX_WOKEN:
            self._woken += 1
            self._calls = True

    def notes(self, *, prompted: bool = False) -> tuple[Attachment, ...]:
        """All that was noted. `prompted`: somebody has typed something, so that the agent may be woken again."""
        taken, self._notes, self._calls = tuple(self._notes), [], False
        self._woken = 0 if prompted else self._woken
        return taken

    def take(self) -> tuple[UserMessage, ...]:
        """All that wait, in the order they came."""
        taken = tuple(self._messages)
        self._messages.clear()
        return taken


def new_chain(depth: int = 0) -> Chain:
    """A chain of requests of its own."""
    return Chain(os.urandom(16).hex(), depth)


class Holder(Protocol):
    """A run, as far as the conversation is concerned."""

    @property
    def active(self) -> bool: ...


def _nobody() -> Holder | None:
    return None


@dataclass(slots=True)
class Dialogue:
    """One conversation. `context` is replaced when a tool changed it for the calls after it."""

    catalog: Catalog
    context: RunContext
    store: ResultStore
    history: History = field(default_factory=History)
    mailbox: Mailbox = field(default_factory=Mailbox)
    chain: Chain = field(default_factory=new_chain)
    working: asyncio.Task[None] | None = None
    """The attempt that may still write to the history."""

    view: PromptView | None = None
    """What the prompts of tools depend on, as it was at the first request."""

    definitions: dict[str, tuple[Listed, bytes]] = field(default_factory=dict)
    """The tools that were sent, by name, with the bytes they were sent as: part of the cached prefix."""

    opened: bool = False
    """Whether hooks were told that the session has started."""

    source: str = ""
    """Why it starts, if it is neither new nor resumed."""

    announced: frozenset[str] = frozenset()
    """The tools held back, as the model was told of them last."""

    put_off: ToolUse | None = None
    """The call that a hook put off at the end of the last run."""

    holder: Callable[[], Holder | None] = _nobody
    """The run that works on it, as long as somebody holds that run."""

    @property
    def deferred(self) -> ToolUse | None:
        """The call that was put off, as long as nothing was said since: then it can be taken up again."""
        last = self.history.messages[-1] if self.put_off and self.history.messages else None
        held = isinstance(last, UserMessage) and [getattr(block, "tool_use_id", "") for block in last.content]
        return self.put_off if self.put_off and held == [self.put_off.id] else None

    def refresh_tools(self) -> tuple[str, ...]:
        """Have tools that are left out asked again; the names of all tools of the next request."""
        return tuple(tool.name for tool in self.catalog.refresh().listed)

    def forget(self, messages: Iterable[Message]) -> None:
        """These take the place of the history; a call that was put off is not taken up any more."""
        self.put_off = None
        self.history.replace(messages)

    async def quiet(self) -> None:
        """Wait until a run that was left early has written what it has to write."""
        if self.working is not None and not self.working.done():
            await asyncio.wait((self.working,))
