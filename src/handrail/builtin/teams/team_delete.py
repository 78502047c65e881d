"""TeamDelete: end a team of agents."""

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


class TeamDeleteInput(PlainInput):
    team_name: str = Field(min_length=1, max_length=64, description="The name of the team.")
    wait_seconds: float = Field(
        default=60.0, ge=0, le=600, description="How long members may take to finish before they are stopped."
    )


class TeamDelete(Tool[TeamDeleteInput]):
    name = "TeamDelete"
    search_hint = "agents members group swarm shut down end"
    input_model = TeamDeleteInput
    should_defer = True
    interrupt = "cancel"

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def summary(self, args: TeamDeleteInput) -> str:
        return f"TeamDelete({args.team_name})"

    def access(self, args: TeamDeleteInput, run: RunContext) -> Access:
        return Access.bookkeeping(writes=TEAMS)

    async def validate(self, args: TeamDeleteInput, ctx: ToolContext) -> Refuse | None:
        return Refuse(NO_AGENTS) if self._services.delegate is None else None

    async def call(self, args: TeamDeleteInput, ctx: ToolContext) -> Output:
        end = await teams_of(self._services).delete_team(args.team_name, args.wait_seconds)
        if end.problem:
            raise ToolError(end.problem)
        parts = (("finished", end.finished), ("stopped", end.stopped))
        told = "; ".join(f"{how}: {', '.join(names)}" for how, names in parts if names) or "it had no members"
        text = f"The team {args.team_name} is over ({told})."
        data = {"team_name": args.team_name, "finished": list(end.finished), "stopped": list(end.stopped)}
        return Output(text=text, data=data, card=Card(title=f"Team {args.team_name}", detail=told))
