"""TeamCreate: make a team of agents."""

from handrail.builtin.services import ToolServices
from handrail.builtin.teams.session_teams import NO_AGENTS, TEAMS, teams_of
from handrail.errors import ToolError
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import Refuse
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool


class TeamCreateInput(PlainInput):
    team_name: str = Field(min_length=1, max_length=64, description="The name of the team.")
    description: str = Field(default="", max_length=2_000, description="What it is for.")


class TeamCreate(Tool[TeamCreateInput]):
    name = "TeamCreate"
    search_hint = "agents members group swarm together new"
    input_model = TeamCreateInput
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def summary(self, args: TeamCreateInput) -> str:
        return f"TeamCreate({args.team_name})"

    def access(self, args: TeamCreateInput, run: RunContext) -> Access:
        return Access.bookkeeping(writes=TEAMS)

    async def validate(self, args: TeamCreateInput, ctx: ToolContext) -> Refuse | None:
        return Refuse(NO_AGENTS) if self._services.delegate is None else None

    async def call(self, args: TeamCreateInput, ctx: ToolContext) -> Output:
        if problem := teams_of(self._services).create_team(args.team_name, args.description):
            raise ToolError(problem)
        text = f"The team {args.team_name} is there, and you lead it. Start its members with Agent and team_name."
        data = {"team_name": args.team_name, "lead_agent_id": ctx.agent.id}
        return Output(text=text, data=data, card=Card(title=f"Team {args.team_name}", detail=args.description))
