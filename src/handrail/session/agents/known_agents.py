"""The sub-agents that a session knows: those that worked since it was opened, and the records of those before."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from handrail.agents.definitions import AgentDefinition
from handrail.agents.slots import AgentSlots
from handrail.errors import ToolError
from handrail.files.memory import FileMemory
from handrail.session.agents.records import AgentRecord, resume_problem
from handrail.session.agents.state import AgentHost, Subagent, facts_of
from handrail.tools.context import ToolContext
from handrail.tools.delegation import AgentFacts, AgentStatus, AgentTask


class KnownAgents:
    """The sub-agents of a session by id. What changes about one is written down at once."""

    def __init__(self, definitions: Callable[[], Mapping[str, AgentDefinition]], host: AgentHost) -> None:
        self._definitions = definitions
        self._host = host
        self._agents: dict[str, Subagent] = {}
        self._slots: AgentSlots | None = None

    def all(self) -> tuple[AgentFacts, ...]:
        """The sub-agents of this session so far, also before it was resumed, oldest first."""
        records = self._host.records
        known = [records.load(each) for each in records.all_ids() if each not in self._agents]
        earlier = tuple(facts_of(entry) for entry in known if entry is not None)
        now = (
            facts_of(each.record, background=each.background, color=each.definition.color)
            for each in self.of_this_process()
        )
        return (*earlier, *now)

    def of_this_process(self) -> tuple[Subagent, ...]:
        """Those that have worked since the session was opened."""
        return tuple(self._agents.values())

    def get(self, agent_id: str) -> Subagent | None:
        """The sub-agent of that id, if it has worked since the session was opened."""
        return self._agents.get(agent_id)

    def at_call(self, call: str) -> tuple[Subagent, ...]:
        """The sub-agents that a call started."""
        return tuple(each for each in self._agents.values() if each.call == call)

    def record_of(self, agent_id: str) -> AgentRecord | None:
        """What is known of an agent, of this run of the session or an earlier one."""
        agent = self._agents.get(agent_id)
        return agent.record if agent else self._host.records.load(agent_id)

    def refuse_resume(self, task: AgentTask) -> str:
        """Why the agent that a task names cannot go on; empty if it can."""
        return resume_problem(task, self.record_of(task.resume), self._agents, self._definitions())

    def begin(self, task: AgentTask, ctx: ToolContext) -> Subagent:
        """A new sub-agent for a task. What its caller has read counts as read for it: they share the folder."""
        entry = AgentRecord(
            id=f"agent-{os.urandom(6).hex()}",
            kind=task.kind,
            description=task.description,
            name=task.name,
            team=task.team,
            model=task.model,
            effort=task.effort,
            parent=ctx.agent.id,
            depth=len(ctx.agent.path) + 1,
            cwd=str(ctx.cwd),
        )
        return self._open(entry, ctx, ctx.files.copy())

    def resume(self, task: AgentTask, ctx: ToolContext) -> Subagent:
        """The agent that a task names, with what it knows; the caller's tools and folders count now."""
        before, kept = self._agents.get(task.resume), self.record_of(task.resume)
        if kept is None:
            raise ToolError(self.refuse_resume(task))
        kept = replace(kept, parent=ctx.agent.id, depth=len(ctx.agent.path) + 1, model=task.model or kept.model)
        agent = self._open(kept, ctx, before.files if before else FileMemory())
        agent.history = before.history if before else ()
        return agent

    def reopen(self, agent_id: str, ctx: ToolContext) -> Subagent:
        """The agent of that id, to go on for the one it worked for; ToolError if it cannot."""
        if (agent := self._agents.get(agent_id)) is not None:
            return agent
        entry = self._host.records.load(agent_id)
        if entry is None or entry.kind not in self._definitions():
            raise ToolError(f"The sub-agent {agent_id!r} cannot go on: its kind is not there any more.")
        return self._open(entry, ctx, FileMemory())

    def _open(self, entry: AgentRecord, ctx: ToolContext, files: FileMemory) -> Subagent:
        if self._slots is None:
            self._slots = AgentSlots(self._host.settings().concurrent)
        agent = Subagent(
            record=entry,
            definition=self._definitions()[entry.kind],
            slot=self._slots.slot(),
            cwd=Path(entry.cwd),
            options=ctx.options,
            offered=frozenset(ctx.options.tools()),
            path=(*ctx.agent.path, f"{entry.kind} {entry.id}"),
            call=ctx.use.id,
            caller=ctx.agent,
            budget=ctx.budget,
            files=files,
        )
        self._agents[entry.id] = agent
        return agent

    def forget(self, agent: Subagent) -> None:
        """It never began."""
        del self._agents[agent.id]

    def set_status(self, agent: Subagent, status: AgentStatus) -> None:
        """Write down how an agent stands."""
        if agent.record.status != status:
            agent.record = replace(agent.record, status=status)
        self._host.records.save(agent.record)

    def leave_team(self, team: str) -> None:
        """The team is over: its members are agents like others, and their names are free."""
        for facts in self.all():
            entry = self.record_of(facts.id)
            if entry is not None and entry.team == team:
                entry = replace(entry, team="")
                self._host.records.save(entry)
                if (agent := self._agents.get(facts.id)) is not None:
                    agent.record = entry
