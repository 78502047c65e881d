"""ListAgents: the agents of the session, one line each."""

from handrail.builtin.services import ToolServices
from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.builtin.teams.session_teams import MAIL, NO_AGENTS, agent_line, status_of, teams_of
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.delegation import AgentFacts
from handrail.tools.output import Output
from handrail.tools.permission import Refuse
from handrail.tools.plain_input import Field, PlainInput


class ListAgentsInput(PlainInput):
    channel: str = Field(default="", description="Only the members of this team.")
    q: str = Field(default="", description="Only those whose name, kind or task contains this.")


class ListAgents(ReadOnlyTool[ListAgentsInput]):
    name = "ListAgents"
    search_hint = "teammates members team who status subagents running"
    input_model = ListAgentsInput
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: ListAgentsInput, run: RunContext) -> Access:
        return Access.bookkeeping(reads=MAIL)

    async def validate(self, args: ListAgentsInput, ctx: ToolContext) -> Refuse | None:
        return Refuse(NO_AGENTS) if self._services.delegate is None else None

    async def call(self, args: ListAgentsInput, ctx: ToolContext) -> Output:
        found = [each for each in teams_of(self._services).all() if _is_wanted(each, args)]
        lines = "\n".join(_line(each, is_caller=each.id == ctx.agent.id) for each in found)
        return Output(
            text=lines or "There are no such agents.",
            data={"agents": [_data(each) for each in found]},
            card=Card(title=f"{len(found)} agents", body=lines),
        )


def _is_wanted(agent: AgentFacts, args: ListAgentsInput) -> bool:
    words = " ".join((agent.id, agent.name, agent.kind, agent.description)).casefold()
    return args.channel in ("", agent.team) and args.q.casefold() in words


def _line(agent: AgentFacts, *, is_caller: bool) -> str:
    team = f", team {agent.team}" if agent.team else ""
    you = ", you" if is_caller else ""
    return f"{agent_line(agent)}: {status_of(agent)}{team}{you}. {agent.description}"


def _data(agent: AgentFacts) -> dict[str, str]:
    return {
        "agentId": agent.id,
        "name": agent.name,
        "agentType": agent.kind,
        "team": agent.team,
        "status": status_of(agent),
        "description": agent.description,
        "parent": agent.parent,
    }
