"""What a session keeps of each sub-agent, and what sub-agents need of their session."""

import asyncio
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from handrail.agents.definitions import AgentDefinition
from handrail.agents.slots import AgentSlot
from handrail.builtin.services import ToolServices
from handrail.config.execution import AgentSettings
from handrail.conversation.messages import Message
from handrail.conversation.request import Chain
from handrail.files.memory import FileMemory
from handrail.records import mutable_record, record
from handrail.session.agents.records import AgentRecord, AgentRecords
from handrail.session.context.session_context import SessionContext
from handrail.session.conversation import Conversation
from handrail.tools.context import NO_BUDGET, AgentIdentity, Budget, RunOptions
from handrail.tools.delegation import AgentFacts, AgentNews, AgentReport
from handrail.tools.pool import NO_DEFERRAL, AnyTool, Deferral
from handrail.transcripts.store import OpenTranscript

if TYPE_CHECKING:
    from handrail.session.agents.equipment import AgentEquipment, EquipmentDoors

OpenBeside: TypeAlias = Callable[[str], OpenTranscript | None]
"""Opens the transcript of a sub-agent, by its id, new or not; None = its words are not kept."""
OnNews: TypeAlias = Callable[[AgentNews], None]


@record
class AgentHost:
    """
    What sub-agents need of their session.

    `tells_ends`: the front end learns of the end of background work, so agents may work there unasked. `context` opens
    what a conversation in a folder is told of it; None = nothing is. `equipment` gives what definitions want ready.
    """

    settings: Callable[[], AgentSettings]
    services: Callable[[], ToolServices]
    chain: Chain
    records: AgentRecords
    open_transcript: OpenBeside
    deferral: Deferral = NO_DEFERRAL
    mcp_tools: Callable[[], tuple[AnyTool, ...]] = tuple
    tells_ends: bool = False
    context: Callable[[Path], SessionContext] | None = None
    equipment: "Callable[[], EquipmentDoors] | None" = None


@mutable_record
class Subagent:
    """One sub-agent of the session, at work or ended."""

    record: AgentRecord
    definition: AgentDefinition
    slot: AgentSlot
    cwd: Path
    options: RunOptions
    offered: frozenset[str]
    path: tuple[str, ...]
    call: str = ""
    background: bool = False
    budget: Budget = NO_BUDGET
    caller: AgentIdentity = field(default_factory=AgentIdentity)
    equipment: "AgentEquipment | None" = None
    files: FileMemory = field(default_factory=FileMemory)
    history: tuple[Message, ...] = ()
    """What was said before, if there is no transcript."""
    conversation: Conversation | None = None
    transcript: OpenTranscript | None = None
    """That of its conversation, while it works."""
    report: AgentReport | None = None
    """Its last one; of one that works in the background, that it has begun."""
    job: asyncio.Task[None] | None = None
    """Its work in the background."""
    forget_worktree: Callable[[], None] | None = None
    """Ends that the rules of its repository hold in its worktree."""
    watchers: dict[str, AgentIdentity] = field(default_factory=dict)
    """The agents that want to hear when it is idle."""
    messages: int = 0
    """How many messages of other sub-agents it got since the lead wrote to it."""

    @property
    def id(self) -> str:
        return self.record.id

    def close_conversation(self) -> None:
        """Keep what the agent knows, for when it goes on, and close its transcript."""
        if self.conversation is not None:
            state = self.conversation.state
            self.files, self.conversation = state.context.files, None
            self.history = () if self.transcript else tuple(state.history.messages)
        if self.transcript is not None:
            self.transcript.writer.close()
            self.transcript = None


def facts_of(entry: AgentRecord, *, background: bool = False, color: str = "") -> AgentFacts:
    """A sub-agent as tools and programs see it."""
    return AgentFacts(
        entry.id, entry.kind, entry.description, entry.status, entry.name, entry.parent, background, entry.team, color
    )


def report_on(agent: Subagent) -> AgentReport:
    """The report of an agent that has not said anything yet."""
    return AgentReport(agent.id, "", kind=agent.record.kind)


def news_of(agent: Subagent, prompt: str) -> AgentNews:
    """What every event of an agent carries: which agent it is, and the call that started it."""
    entry = agent.record
    return AgentNews(
        entry.description,
        agent=entry.id,
        kind=entry.kind,
        call=agent.call,
        depth=entry.depth,
        prompt=prompt,
        background=agent.background,
        color=agent.definition.color,
    )
