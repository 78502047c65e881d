"""Where each agent of a run stands while its lines are read."""

from handrail.view.model import AgentData, TurnData

MAIN = "main"


def new_agent(agent: str) -> AgentData:
    """An agent of which nothing is known but its id."""
    kind, parent = ("", "") if agent == MAIN else ("agent", MAIN)
    return AgentData(
        id=agent,
        type=kind,
        description="",
        parent=parent,
        status="",
        began=None,
        ended=None,
        turns=0,
        calls=0,
        dollars=0.0,
        model="",
    )


class AgentLane:
    """Where one agent's conversation stands while its lines are read."""

    def __init__(self, data: AgentData) -> None:
        self.data = data
        self.turn: int | None = None
        self.requested = False
        """The request was recorded, and not taken from the first block of its answer."""
        self.calls: dict[str, int] = {}
        self.before: TurnData | None = None
        self.is_adopting = False
        self.was_shortened = False
