"""What handing a task to a sub-agent needs of the program, and what comes back."""

from typing import Protocol

from handrail.records import record
from handrail.tools.context import Progress, ToolContext


@record
class AgentTask:
    """What the sub-agent shall do."""

    kind: str
    prompt: str
    description: str = ""
    model: str = ""


@record
class AgentReport:
    """What it said in the end, and what it took. `problem` says why it did not come to an end by itself."""

    agent_id: str
    text: str
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    problem: str = ""


@record
class AgentNews(Progress):
    """Something that happened in the sub-agent of the id `agent`: `event` is an event of its own run."""

    event: object = None
    agent: str = ""


class Delegate(Protocol):
    """Whoever can run sub-agents."""

    def kinds(self) -> dict[str, bool]:
        """Which kinds there are, and whether each only reads."""
        ...

    async def work(self, task: AgentTask, ctx: ToolContext) -> AgentReport: ...
