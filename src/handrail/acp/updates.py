"""The events of a session as updates that an editor shows: text, thoughts, calls, plan, mode, usage."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from handrail.acp.choices import config_options
from handrail.acp.prompt import fence
from handrail.acp.tool_call import (
    MAX_TEXT,
    MAX_TITLE,
    call_fields,
    declared_access,
    drawn_call,
    end_fields,
    text_content,
)
from handrail.conversation.blocks import Json, Text, Thinking, ToolUse
from handrail.conversation.plain import plain
from handrail.conversation.stream import BlockEnd, BlockStart, Delta, MessageStart, StreamRetry
from handrail.hooks.news import HookNews
from handrail.lazy import lazy
from handrail.loop.events import (
    SYNTHETIC,
    AnswerDiscarded,
    BlockComplete,
    Compacted,
    LoopEvent,
    MessageComplete,
    Notice,
    RunEnded,
)
from handrail.loop.usage import total_dollars
from handrail.session.session import Session
from handrail.tools.access import EXCLUSIVE
from handrail.tools.cards import Card
from handrail.tools.delegation import AgentNews
from handrail.tools.events import CallFinished, CallProgress, CallQueued, CallStarted
from handrail.tools.wording import cut

if TYPE_CHECKING:
    from handrail.session import task_list
else:
    task_list = lazy("handrail.session.task_list")

CHUNKS = {"text": "agent_message_chunk", "thinking": "agent_thought_chunk"}
SHOWN_CALLS = 20
"""How many of the latest calls of a sub-agent are shown."""
PIECE = 16_000
"""Characters of one piece of a message: in UTF-8 at most 64 KB, more than which some editors do not take in a line."""
LEFT_OUT = ("clear",)
"""Commands that an editor has its own way for: it begins another session."""


def chunks(kind: str, text: str) -> Iterator[Json]:
    """The pieces of a message, short enough for lines of editors; what would steer a terminal is made visible."""
    shown = plain(text.replace("\r", ""))
    for start in range(0, len(shown), PIECE):
        yield {"sessionUpdate": kind, "content": {"type": "text", "text": shown[start : start + PIECE]}}


def notice(text: str) -> Json:
    """What handrail itself tells the person, apart from what the model says."""
    lines = (f"> {line}" for line in plain(f"handrail: {cut(text, PIECE)}").split("\n"))
    return {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "\n".join(["", *lines, "", ""])},
    }


def call_update(call_id: str, fields: Json) -> Json:
    """A change of a call."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}


class SessionUpdates:
    """Makes the updates of one session, in order."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._streams: dict[int, tuple[str, bool]] = {}
        """By slot, the kind of chunk that an open block is sent as, and whether any was sent."""
        self._open_calls: set[str] = set()
        """Calls that were announced and are not over."""
        self._asked: set[str] = set()
        """Calls about which a question is open: editors put it away when they hear that the call goes on."""
        self._agent_calls: dict[str, list[str]] = {}
        self._mode = session.mode
        self._commands: list[Json] = []

    def of(self, event: LoopEvent) -> Iterator[Json]:
        """The updates for an event."""
        match event:
            case MessageStart():
                self._streams.clear()
            case BlockStart() | Delta() | BlockEnd() | BlockComplete():
                yield from self._of_block(event)
            case CallQueued() | CallStarted() | CallProgress() | CallFinished():
                yield from self._of_call(event)
            case MessageComplete():
                yield self._usage()
            case RunEnded():
                yield {**self._usage(), **self._cost()}
            case Notice(text=text) | HookNews(stage="message", message=text):
                yield notice(text)
            case StreamRetry(failure=failure) | AnswerDiscarded(failure=failure):
                yield notice(f"the answer broke off and is asked for again: {failure.message}")
            case Compacted(kind="full"):
                yield notice("the conversation was long, so a summary stands in its place for the model.")
            case _:
                pass

    # Text

    def _of_block(self, event: BlockStart | Delta | BlockEnd | BlockComplete) -> Iterator[Json]:
        match event:
            case BlockStart(slot=slot, kind=kind) if kind in CHUNKS:
                self._streams[slot] = (CHUNKS[kind], False)
            case Delta(slot, text) if slot in self._streams:
                name = self._streams[slot][0]
                self._streams[slot] = (name, True)
                yield from chunks(name, text)
            case BlockEnd(slot, Text(text) | Thinking(text)) if not self._streams.pop(slot, ("", False))[1]:
                yield from chunks(CHUNKS["text" if isinstance(event.block, Text) else "thinking"], text)
            case BlockComplete(model=model, block=Text(text)) if model == SYNTHETIC:
                yield from chunks("agent_message_chunk", text)
            case _:
                pass

    # Calls

    def _of_call(self, event: CallQueued | CallStarted | CallProgress | CallFinished) -> Iterator[Json]:
        match event:
            case CallQueued(use=use):
                yield from self.announce(use, event.card)
            case CallStarted(use=use) if use.id not in self._asked:
                yield call_update(use.id, {"status": "in_progress"})
            case CallProgress(use=use, progress=AgentNews() as news):
                yield from self.of_agent(use.id, news)
            case CallProgress(progress=HookNews(stage="message", message=text)):
                yield notice(text)
            case CallProgress(use=use) if use.id not in self._asked and (text := _progress_text(event)):
                yield call_update(use.id, {"content": [text_content(fence(cut(text, MAX_TEXT)))]})
            case CallFinished(outcome=outcome):
                yield from self._finish(event)
                if task_list.changes_tasks(outcome.access):
                    yield self.plan()
                yield from self.mode()
            case _:
                pass

    def announce(self, use: ToolUse, card: Card | None = None) -> Iterator[Json]:
        """The call, unless it is known already."""
        if use.id not in self._open_calls:
            self._open_calls.add(use.id)
            card, access = card or drawn_call(self._session, use), declared_access(self._session, use)
            yield {"sessionUpdate": "tool_call", **call_fields(use, card, access, self._cwd), "status": "pending"}

    def title(self, use: ToolUse) -> str:
        """The call in a line."""
        title: str = call_fields(use, drawn_call(self._session, use), EXCLUSIVE, self._cwd)["title"]
        return title

    @contextmanager
    def question(self, use: ToolUse) -> Iterator[None]:
        """A question about the call is open: nothing else is said about it meanwhile."""
        self._asked.add(use.id)
        try:
            yield
        finally:
            self._asked.discard(use.id)

    def close_calls(self) -> Iterator[Json]:
        """The end of calls that a question announced, and of which no event tells, such as those for a mention."""
        for each in self._open_calls:
            yield call_update(each, {"status": "completed"})
        self._open_calls.clear()
        self._agent_calls.clear()

    def _finish(self, event: CallFinished) -> Iterator[Json]:
        use = event.outcome.use
        if use.id in self._open_calls:
            self._open_calls.discard(use.id)
            self._agent_calls.pop(use.id, None)
            yield call_update(use.id, end_fields(event.outcome, event.card, self._cwd))

    def of_agent(self, call_id: str, news: AgentNews) -> Iterator[Json]:
        """What a sub-agent does: its calls, line by line, within the call that started it."""
        match news.event:
            case CallQueued() as inner:
                lines = self._agent_calls.setdefault(call_id, [])
                lines.append(cut(inner.card.line.replace(f"{self._cwd}/", ""), MAX_TITLE))
                yield call_update(call_id, {"content": [text_content(fence("\n".join(lines[-SHOWN_CALLS:])))]})
            case CallProgress(progress=AgentNews() as inner_news):
                yield from self.of_agent(call_id, inner_news)
            case CallFinished() as inner:
                yield from self._finish(inner)
            case _:
                pass

    # The session

    @property
    def _cwd(self) -> str:
        return str(self._session.conversation.state.context.cwd)

    def plan(self) -> Json:
        """The task list."""
        entries = [
            {"content": plain(cut(each.text, MAX_TITLE)), "status": each.status, "priority": "medium"}
            for each in task_list.listed_tasks(self._session)
        ]
        return {"sessionUpdate": "plan", "entries": entries}

    def mode(self) -> Iterator[Json]:
        """The mode, if it is another one than the editor knows."""
        if self._session.mode != self._mode:
            self._mode = self._session.mode
            yield {"sessionUpdate": "current_mode_update", "currentModeId": self._mode}
            yield {"sessionUpdate": "config_option_update", "configOptions": config_options(self._session)}

    def commands(self) -> Iterator[Json]:
        """The slash commands, if they are others than the editor knows."""
        listed: list[Json] = [
            {
                "name": name,
                "description": plain(cut(each.description, MAX_TITLE)),
                **({"input": {"hint": plain(cut(each.hint, MAX_TITLE))}} if each.hint else {}),
            }
            for name, each in self._session.commands.by_name().items()
            if name not in LEFT_OUT
        ]
        if listed != self._commands:
            self._commands = listed
            yield {"sessionUpdate": "available_commands_update", "availableCommands": listed}

    def _usage(self) -> Json:
        window = self._session.usage.window()
        return {"sessionUpdate": "usage_update", "used": window["totalTokens"], "size": window["maxTokens"]}

    def _cost(self) -> Mapping[str, Json]:
        dollars = total_dollars(self._session.usage.spent.values())
        return {} if dollars is None else {"cost": {"amount": dollars, "currency": "USD"}}


def _progress_text(event: CallProgress) -> str:
    card = event.card
    return card.body or card.detail or event.progress.message
