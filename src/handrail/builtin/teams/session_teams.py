"""What the tools for teams share."""

from handrail.builtin.services import ToolServices
from handrail.tools.delegation import AgentFacts, AgentTeams

NO_AGENTS = "There are no other agents in this run. Do the task yourself."
MAIL, TEAMS = "the mail of the session", "the teams of the session"
"""The resources that calls read and write."""


def teams_of(services: ToolServices) -> AgentTeams:
    """The teams of the session; its tools are offered only where there are sub-agents."""
    assert services.delegate is not None
    return services.delegate.teams


def status_of(agent: AgentFacts) -> str:
    """How an agent stands, as other agents see it."""
    return "idle" if agent.team and agent.status == "completed" else agent.status


def agent_line(agent: AgentFacts) -> str:
    """One agent: name, id and kind."""
    return f"{agent.name} ({agent.id}, {agent.kind})" if agent.name else f"{agent.id} ({agent.kind})"
