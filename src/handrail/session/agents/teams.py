"""
The teams of a session, and the messages between its agents.

    running   reads a message with its next request
    idle      is woken by it, in the background
    killed    gets it when it goes on

The main agent leads. Members work in the background; that one is idle is told as the end of its task. Loaded with the
first message, name or team.
"""

import asyncio
from typing import Any, Protocol

from handrail.agents.mail import new_mail
from handrail.agents.teams import EVERYONE, LEAD, LEAD_NAMES, Team, TeamFiles, name_problem
from handrail.errors import ToolError
from handrail.session.agent_mail import SessionMail, mail_of
from handrail.session.agents.known_agents import KnownAgents
from handrail.session.agents.state import AgentHost, Subagent
from handrail.session.parts import SharedParts
from handrail.tools.context import AgentIdentity, RunContext, ToolContext
from handrail.tools.delegation import AgentFacts, AgentMessage, AgentTask, Delivery, TeamEnd
from handrail.tools.wording import did_you_mean

MAX_PEER_MESSAGES = 100
"""How often sub-agents may write to one of them before the lead has to: two that answer each other would never end."""
IDLE_BLOCKS = 8
"""How often in a row hooks may keep a member from being idle."""
FINISH = (
    "The lead ends this team. Finish what you are doing now, leave your work in a state that others can use, and end "
    "with a report. You are stopped in {seconds:g} seconds."
)


class TeamAgents(Protocol):
    """The sub-agents of a session, as far as their teams are concerned."""

    parts: SharedParts
    host: AgentHost
    known: KnownAgents

    async def wake(self, agent_id: str, prompt: str, ctx: ToolContext) -> None: ...

    def stop(self, agent_id: str) -> bool: ...


class SessionTeams:
    """The teams of one session. What it writes down is in the folder of the session."""

    def __init__(self, agents: TeamAgents) -> None:
        self._agents = agents
        self._blocks: dict[str, int] = {}

    @property
    def _mail(self) -> SessionMail:
        return mail_of(self._agents.host.services())

    @property
    def _files(self) -> TeamFiles:
        return TeamFiles(self._agents.host.services().state / "teams")

    def all(self) -> tuple[AgentFacts, ...]:
        """The sub-agents of this session so far, oldest first."""
        return self._agents.known.all()

    def refuse(self, task: AgentTask) -> str:
        """Why an agent cannot have its name or be in its team; empty if it can."""
        if task.team and not task.name:
            return "A member of a team needs a name. Give name."
        if problem := name_problem(task.name):
            return problem
        if task.team and task.team not in (teams := self._files.all()):
            hint = did_you_mean(task.team, teams)
            return f"There is no team {task.team!r}.{hint} Make it with TeamCreate first."
        if task.team and task.background is False:
            return "Members of a team work in the background. Leave run_in_background out."
        if task.team and not self._agents.host.services().background:
            return "Nothing runs in the background here, so there can be no team. Leave team_name out."
        same = [each for each in self.all() if each.name == task.name and (each.team or each.status == "running")]
        return f"There is a sub-agent {task.name!r} already: {same[0].id}. Choose another name." if same else ""

    # Messages

    async def send(self, message: AgentMessage, ctx: ToolContext) -> Delivery:
        """Put a message into the boxes of its receivers, and wake those that are idle."""
        sender = ctx.agent
        if message.to in LEAD_NAMES:
            if sender.is_main:
                return Delivery(problem="You are the lead. Name another agent; ListAgents shows them.")
            self._mail.post(new_mail(_name_of(sender), sender.id, LEAD, message.text, message.summary))
            return Delivery(to_lead=True)
        receivers = self._receivers(message.to, sender)
        if isinstance(receivers, str):
            return Delivery(problem=receivers)
        if problem := self._count(receivers, sender):
            return Delivery(problem=problem)
        for each in receivers:
            self._mail.post(new_mail(_name_of(sender), sender.id, each.id, message.text, message.summary))
            if message.notify_when_idle and (known := self._agents.known.get(each.id)):
                known.watchers[sender.id] = sender
        woken = [each.id for each in receivers if await self._wake(each.id, ctx)]
        is_for_all = message.to in EVERYONE and bool(sender.team)
        if is_for_all:
            self._mail.post(new_mail(_name_of(sender), sender.id, LEAD, message.text, message.summary))
        return Delivery(receivers, tuple(woken), is_for_all)

    def _receivers(self, to: str, sender: AgentIdentity) -> tuple[AgentFacts, ...] | str:
        """The agents that a message is for, or why there are none."""
        others = [each for each in self.all() if each.id != sender.id]
        if to in EVERYONE:
            mine = [each for each in others if not sender.team or each.team == sender.team]
            wanted = tuple(each for each in mine if each.team or each.status == "running")
            return wanted or "There is no other agent to write to."
        by_id = [each for each in others if each.id == to]
        by_name = [each for each in others if each.name == to]
        in_team = [each for each in by_name if each.team and each.team == sender.team]
        if found := by_id or in_team or by_name:
            return (found[-1],)
        if to in (sender.id, sender.name):
            return "A message to yourself is not delivered. Name another agent."
        known = ", ".join(f"{each.name} ({each.id})" if each.name else each.id for each in others) or "none"
        return f"There is no agent {to!r}. Known: {known}; 'main' is the lead."

    def _count(self, receivers: tuple[AgentFacts, ...], sender: AgentIdentity) -> str:
        agents = [agent for each in receivers if (agent := self._agents.known.get(each.id)) is not None]
        if sender.is_main:
            for agent in agents:
                agent.messages = 0
            return ""
        if full := [agent.id for agent in agents if agent.messages >= MAX_PEER_MESSAGES]:
            return (
                f"{full[0]} got {MAX_PEER_MESSAGES} messages of other agents since the lead wrote to it, and gets no "
                "more until it does. Write to main instead."
            )
        for agent in agents:
            agent.messages += 1
        return ""

    async def _wake(self, agent_id: str, ctx: ToolContext) -> bool:
        agent = self._agents.known.get(agent_id)
        if agent is not None and agent.record.status == "running":
            return False
        try:
            await self._agents.wake(agent_id, self.unread(agent_id), ctx)
        except ToolError:  # what was written waits for it
            return False
        return True

    def unread(self, agent_id: str) -> str:
        """What was written to an agent that it has not read; empty if nothing was."""
        return "\n\n".join(mail.as_text() for mail in self._mail.waiting(agent_id))

    def tell_watchers(self, agent: Subagent) -> None:
        """Write to those that wanted to hear that an agent is idle; the one that it works for is told anyway."""
        watchers, agent.watchers = agent.watchers, {}
        name = agent.record.name or agent.id
        for watcher in watchers.values():
            if watcher.id != agent.record.parent:
                self._mail.post(new_mail(name, agent.id, watcher.id, f"{name} ({agent.id}) is idle now."))

    # Members

    async def more_work(self, agent: Subagent, run: RunContext) -> str:
        """What an agent has to look at before it may be idle: messages, or what a hook says; empty if nothing."""
        if words := self.unread(agent.id):
            return words
        hooks, team = self._agents.parts.hooks, agent.record.team
        if not team or not hooks.wants("TeammateIdle"):
            return ""
        fields: dict[str, Any] = {"teammate_name": agent.record.name, "team_name": team}
        answer = await hooks.fire("TeammateIdle", fields, run)
        blocks = self._blocks.get(agent.id, 0) + 1
        is_blocked = answer.block is not None and answer.stop is None and blocks <= IDLE_BLOCKS
        self._blocks[agent.id] = blocks if is_blocked else 0
        return (answer.block or "Go on.") if is_blocked else self.unread(agent.id)

    def create_team(self, name: str, description: str) -> str:
        """Make a team; returns why that is impossible, or an empty text."""
        if problem := name_problem(name):
            return problem
        if name in self._files.all():
            return f"There is a team {name!r} already. Use it, or choose another name."
        self._files.save(Team(name, description))
        return ""

    def teams(self) -> tuple[Team, ...]:
        """The teams there are."""
        return tuple(self._files.all().values())

    async def delete_team(self, name: str, seconds: float) -> TeamEnd:
        """Ask the members of a team to finish, wait so long at the most, stop those that are left, and forget it."""
        teams = self._files.all()
        if name not in teams:
            return TeamEnd(problem=f"There is no team {name!r}.{did_you_mean(name, teams)}")
        members = [each for each in self.all() if each.team == name]
        working = [agent for each in members if (agent := self._agents.known.get(each.id)) and _is_at_work(agent)]
        letters = [new_mail(LEAD, LEAD, agent.id, FINISH.format(seconds=seconds)) for agent in working]
        for letter in letters:
            self._mail.post(letter)
        jobs = [agent.job for agent in working if agent.job is not None]
        if jobs and seconds > 0:
            await asyncio.wait(jobs, timeout=seconds)
        late = [agent for agent in working if _is_at_work(agent)]
        for agent in late:
            self._agents.stop(agent.id)
        if left := [agent.job for agent in late if agent.job is not None]:
            await asyncio.wait(left)
        for letter in letters:
            self._mail.withdraw(letter)
        self._agents.known.leave_team(name)
        self._files.remove(name)
        stopped = tuple(agent.record.name for agent in late)
        return TeamEnd(tuple(each.name for each in members if each.name not in stopped), stopped)


def _is_at_work(agent: Subagent) -> bool:
    return agent.job is not None and not agent.job.done()


def _name_of(agent: AgentIdentity) -> str:
    return agent.name or agent.id
