"""Events that wait to be read, and the messages that the loop adds to the history with an event for each."""

from collections import deque
from collections.abc import Callable
from functools import partial

from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment, UserMessage
from handrail.hooks.texts import reminder
from handrail.loop.conversation_state import ConversationState
from handrail.loop.events import Interrupted, LoopEvent, MessageAdded
from handrail.loop.loop_messages import interruption_message
from handrail.loop.run_config import RunObserver
from handrail.loop.state import Why
from handrail.tools.catalog import announcement, instructions_text
from handrail.tools.pool import SEARCH_TOOL


class EventQueue:
    """The events of one run, in order. An observer learns of each when it happens, not when it is read."""

    def __init__(self, conversation: ConversationState, observer: RunObserver | None = None) -> None:
        self._conversation = conversation
        self.waiting: deque[LoopEvent] = deque()
        self.emit: Callable[[LoopEvent], None] = self.waiting.append
        if observer is not None:
            self.emit = partial(_emit_observed, observer, conversation, self.waiting)

    def check_written(self) -> None:
        """Raise if the history could not be saved, so that nothing more is shown."""
        transcript = self._conversation.history.transcript
        if transcript is not None and transcript.failure is not None:
            raise transcript.failure

    def add(self, *messages: UserMessage | Attachment) -> None:
        """Append messages to the history, and tell the reader of each."""
        for message in messages:
            self._conversation.history.append(message)
            self.emit(MessageAdded(message))

    def add_interruption(self, why: Why) -> None:
        """Tell the reader and the model that the run was interrupted."""
        self.emit(Interrupted(why))
        self.add(interruption_message(why))

    def announce_tools(self) -> None:
        """Name tools that are held back in a message: the cached prefix must not change with them."""
        conversation = self._conversation
        pool, servers = conversation.catalog.pool, conversation.context.options.mcp_servers()
        connecting = [name for name, status in servers.items() if status == "pending"] if servers else []
        if pool.find_listed(SEARCH_TOOL) is None:
            connecting = []
        expected = conversation.catalog.expected_tools() if connecting else {}
        unknown = [name for name in connecting if name not in expected.values()]
        tools = pool.held.union(expected)
        has_new_servers = not conversation.announced_servers.issuperset(unknown)
        if has_new_servers or ((pool.deferred or expected) and tools != conversation.announced_tools):
            conversation.announced_tools = tools
            conversation.announced_servers = conversation.announced_servers.union(unknown)
            self.add(Attachment("tools", (Text(announcement(pool, unknown, expected)),)))
        self._announce_instructions()

    def _announce_instructions(self) -> None:
        """Tell what servers say about the use of their tools, once, if there are such tools."""
        conversation = self._conversation
        new = conversation.context.options.mcp_instructions().items() - conversation.announced_instructions
        if not new:
            return
        here = {tool.mcp.server for tool in conversation.catalog.pool.listed if tool.mcp}
        if said := {server: text for server, text in new if server in here}:
            conversation.announced_instructions = conversation.announced_instructions.union(said.items())
            self.add(Attachment("mcp_instructions", (Text(reminder(instructions_text(said))),)))


def _emit_observed(
    observer: RunObserver, conversation: ConversationState, events: deque[LoopEvent], event: LoopEvent
) -> None:
    observer.on_event(event, conversation.context)
    events.append(event)
