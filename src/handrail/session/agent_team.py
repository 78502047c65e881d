"""
Sub-agents for Python programs: one task, or a team that works while the program goes on.

What a program asks for goes through the same calls as what a model asks for: the rules, hooks and audit log of Agent,
SendMessage, TeamCreate and TeamDelete count. Loaded with the first use.
"""

import asyncio
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from handrail.dispatch.cards import without_frame
from handrail.errors import HandrailError
from handrail.session.agents.state import OnNews, Subagent
from handrail.session.command_turn import new_call, run_calls
from handrail.session.session import Session
from handrail.tools.abort import AbortSignal
from handrail.tools.delegation import AgentFacts, AgentReport
from handrail.tools.outcome import Outcome, Status
from handrail.tools.pool import Pool
from handrail.tools.stub import fetch

TOOLS = {
    "Agent": ("handrail.builtin.agent", "AgentTool"),
    "SendMessage": ("handrail.builtin.teams.send_message", "SendMessage"),
    "TeamCreate": ("handrail.builtin.teams.team_create", "TeamCreate"),
    "TeamDelete": ("handrail.builtin.teams.team_delete", "TeamDelete"),
}


async def delegate_task(session: Session, values: dict[str, Any], on_event: OnNews | None = None) -> AgentReport:
    """Start a sub-agent by a call of Agent with these values; HandrailError if it could not begin."""
    use = new_call("Agent", {key: value for key, value in values.items() if value not in ("", None)})
    agents = session.agents
    if on_event is not None:
        agents.listeners_by_call[use.id] = on_event
    try:
        outcome = await _call(session, use)
    finally:
        if not any(each.background for each in agents.known.at_call(use.id)):
            agents.listeners_by_call.pop(use.id, None)
    started = next((each for each in agents.known.at_call(use.id) if each.report is not None), None)
    if started is None or started.report is None:
        raise HandrailError(without_frame(outcome.result.text))
    return started.report


async def _call(session: Session, use: Any) -> Outcome:
    module, name = TOOLS[use.name]
    tool = getattr(fetch(module), name)(replace(session.services(), delegate=session.agents))
    await session.connect()
    (outcome,) = await run_calls([use], session.conversation, AbortSignal(), pool=Pool((tool,), ()))
    return outcome


class AgentTeam:
    """
    A team that a program leads. Leave it with `async with`: members are asked to finish, and stopped in time.

    What members write to the lead, and that they are idle, is part of the next prompt of the agent.
    """

    def __init__(self, session: Session, name: str, wait_seconds: float) -> None:
        self.name = name
        self._session = session
        self._wait_seconds = wait_seconds

    @property
    def members(self) -> tuple[AgentFacts, ...]:
        """The members, oldest first, and how each stands."""
        return tuple(each for each in self._session.agents.known.all() if each.team == self.name)

    async def start(
        self,
        name: str,
        prompt: str,
        agent: str = "general-purpose",
        *,
        model: str = "",
        isolation: str = "",
        on_event: OnNews | None = None,
    ) -> str:
        """
        Start a member on a task, in the background; its id.

        Raises:
            HandrailError: there is no such kind of agent, the name is taken, or a rule or hook refused it.
        """
        values = {"description": name, "prompt": prompt, "subagent_type": agent, "model": model, "isolation": isolation}
        report = await delegate_task(self._session, {**values, "name": name, "team_name": self.name}, on_event)
        return report.agent_id

    async def send(self, to: str, text: str) -> None:
        """
        Write to a member by name or id, or to all (`*`); one that is idle goes on for it.

        Raises:
            HandrailError: there is no such member, or a rule or hook refused it.
        """
        outcome = await _call(self._session, new_call("SendMessage", {"to": to, "message": text}))
        data = outcome.output.data if outcome.output is not None else None
        if outcome.status is not Status.OK or not data or not data["success"]:
            raise HandrailError(without_frame(outcome.result.text))

    async def wait(self) -> dict[str, AgentReport]:
        """Wait until no member is at work; the last report of each, by name."""
        while jobs := [each.job for each in self._at_work() if each.job is not None]:
            await asyncio.wait(jobs)
        return {each.record.name: each.report for each in self._agents() if each.report is not None}

    def _agents(self) -> list[Subagent]:
        return [agent for each in self.members if (agent := self._session.agents.known.get(each.id)) is not None]

    def _at_work(self) -> list[Subagent]:
        return [each for each in self._agents() if each.job is not None and not each.job.done()]

    async def __aenter__(self) -> Self:
        outcome = await _call(self._session, new_call("TeamCreate", {"team_name": self.name}))
        if outcome.status is not Status.OK:
            raise HandrailError(without_frame(outcome.result.text))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        seconds = 0.0 if kind is not None else self._wait_seconds
        await self._session.agents.teams.delete_team(self.name, seconds)
