"""Running sub-agents: the task, the report, and the protocol of what runs them."""

from typing import Protocol

from handrail.records import record
from handrail.tools.context import Progress, ToolContext


@record
class AgentTask:
    """A task for a sub-agent."""

    kind: str
    prompt: str
    description: str = ""
    model: str = ""


@record
class AgentReport:
    """The last message of a sub-agent, and what its run took. `problem` says why it ended early."""

    agent_id: str
    text: str
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    problem: str = ""


@record
class AgentNews(Progress):
    """An event of the run of the sub-agent with the id `agent`."""

    event: object = None
    agent: str = ""


class Delegate(Protocol):
    """Runs sub-agents."""

    def agent_types(self) -> dict[str, bool]:
        """The types of sub-agents, each with whether it only reads."""
        ...

    async def work(self, task: AgentTask, ctx: ToolContext) -> AgentReport: ...
