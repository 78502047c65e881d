"""Sub-agents: tasks, reports, messages and teams, and the protocols of what runs them and carries messages."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, Protocol, TypeAlias

from handrail.records import record
from handrail.tools.context import AgentIdentity, Progress, ToolContext

AgentStatus: TypeAlias = Literal["running", "completed", "failed", "killed"]


@record
class AgentTask:
    """
    A task for a sub-agent. `background` None = as the session does it; `resume` is the id of one that goes on.

    `name` is what messages may call it, `team` the team that it works in, `isolation` is "worktree" or empty.
    """

    kind: str
    prompt: str
    description: str = ""
    model: str = ""
    effort: str = ""
    background: bool | None = None
    isolation: str = ""
    resume: str = ""
    name: str = ""
    team: str = ""


@record
class AgentReport:
    """
    The last message of a sub-agent, and what its run took. `problem` says why it ended early.

    `status` is "running" for one that has begun in the background; its report will be in the file `output`.
    """

    agent_id: str
    text: str
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    problem: str = ""
    status: AgentStatus = "completed"
    kind: str = ""
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    dollars: float | None = None
    output: str = ""
    notes: tuple[str, ...] = ()
    """What the caller has to know besides, such as the worktree that was kept."""


@record
class AgentNews(Progress):
    """
    An event of the run of a sub-agent; `call` is the id of the call that started it.

    The last event of one in the background is its AgentReport.
    """

    event: object = None
    agent: str = ""
    kind: str = ""
    call: str = ""
    depth: int = 1
    prompt: str = ""
    background: bool = False
    color: str = ""
    """The color that its definition wants it shown in."""


@record
class AgentFacts:
    """A sub-agent as tools and programs see it."""

    id: str
    kind: str
    description: str
    status: AgentStatus
    name: str = ""
    parent: str = "main"
    background: bool = False
    team: str = ""
    color: str = ""


@record
class AgentMessage:
    """A message to an agent, by name or id, or to all. `notify_when_idle`: its sender hears when they are idle."""

    to: str
    text: str
    summary: str = ""
    notify_when_idle: bool = False


@record
class Delivery:
    """Who gets a message, and which of them it woke. `problem` says why none does."""

    receivers: tuple[AgentFacts, ...] = ()
    woken: tuple[str, ...] = ()
    to_lead: bool = False
    problem: str = ""


@record
class TeamEnd:
    """How the members of a team ended: by themselves, or stopped when the time was up. `problem`: there is no team."""

    finished: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    problem: str = ""


class AgentTeams(Protocol):
    """The agents of a session, and what carries messages between them."""

    def all(self) -> tuple[AgentFacts, ...]:
        """The sub-agents of this session so far, oldest first."""
        ...

    async def send(self, message: AgentMessage, ctx: ToolContext) -> Delivery: ...

    def create_team(self, name: str, description: str) -> str:
        """Make a team; returns why that is impossible, or an empty text."""
        ...

    async def delete_team(self, name: str, seconds: float) -> TeamEnd:
        """Ask the members of a team to finish, wait so long at the most, stop those that are left, and forget it."""
        ...


class Delegate(Protocol):
    """Runs sub-agents."""

    @property
    def teams(self) -> AgentTeams:
        """The agents of the session, and what carries messages between them."""
        ...

    def agent_types(self) -> Mapping[str, bool]:
        """The types of sub-agents, each with whether it only reads."""
        ...

    def refuse(self, task: AgentTask, caller: AgentIdentity) -> str:
        """Why the caller cannot have this sub-agent; empty if it can."""
        ...

    def makes_worktree(self, task: AgentTask) -> bool:
        """Whether the task would make a git worktree."""
        ...

    async def work(self, task: AgentTask, ctx: ToolContext) -> AgentReport: ...
