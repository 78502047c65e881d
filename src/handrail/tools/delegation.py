"""Running sub-agents: the task, the report, and the protocol of what runs them."""

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

    `name` is what messages may call it, `isolation` is "worktree" or empty.
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


class Delegate(Protocol):
    """Runs sub-agents."""

    def agent_types(self) -> Mapping[str, bool]:
        """The types of sub-agents, each with whether it only reads."""
        ...

    def refuse(self, task: AgentTask, caller: AgentIdentity) -> str:
        """Why the caller cannot have this sub-agent; empty if it can."""
        ...

    async def work(self, task: AgentTask, ctx: ToolContext) -> AgentReport: ...
