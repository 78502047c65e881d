"""
The sub-agents of a session: runs of the loop inside a run, with a conversation and a memory of files of their own.

    foreground   the call waits for the report
    background   the call returns at once; the end is told as that of a background task

Agents work side by side, up to a number; the others wait for a slot. One that has ended goes on by its id, with what it
knows. Each writes a transcript below that of the session.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.conversation.logger import get_logger
from handrail.errors import HandrailError
from handrail.lazy import lazy
from handrail.session.agents.definitions import LiveDefinitions
from handrail.session.agents.known_agents import KnownAgents
from handrail.session.agents.opening import open_agent
from handrail.session.agents.run import MoreWork, run_prompts
from handrail.session.agents.state import AgentHost, OnNews, Subagent, news_of, report_on
from handrail.session.conversation import Conversation
from handrail.session.parts import SharedParts
from handrail.session.tools import only_reads
from handrail.tools.abort import AbortSignal
from handrail.tools.context import AgentIdentity, AgentType, ToolContext
from handrail.tools.delegation import AgentReport, AgentStatus, AgentTask
from handrail.tools.wording import did_you_mean

if TYPE_CHECKING:
    from handrail.session.agents import equipment as agent_equipment
    from handrail.session.agents import isolation as agent_isolation
    from handrail.session.agents import teams as session_teams
    from handrail.session.agents import work as agent_work
else:
    session_teams = lazy("handrail.session.agents.teams")
    agent_equipment = lazy("handrail.session.agents.equipment")
    agent_isolation = lazy("handrail.session.agents.isolation")
    agent_work = lazy("handrail.session.agents.work")

log = get_logger(__name__)


class Subagents:
    """Runs the sub-agents of a session: same rails, same files, another conversation."""

    def __init__(self, definitions: LiveDefinitions, parts: SharedParts, host: AgentHost) -> None:
        self.definitions = definitions
        self.listeners: list[OnNews] = []
        """Called with each event of a sub-agent in the background."""
        self.listeners_by_call: dict[str, OnNews] = {}
        """Called with each event of the sub-agent that a call started."""
        self.observers: list[OnNews] = []
        """Called with each event of every sub-agent."""
        self.parts = parts
        self.host = host
        self.known = KnownAgents(definitions, host)
        self._waking: set[asyncio.Task[None]] = set()
        self._is_closing = False

    # What there is

    def agent_types(self) -> dict[str, bool]:
        """Which types there are, and whether each only reads."""
        return {agent.name: agent.has_only(only_reads) for agent in self.definitions().values()}

    def types(self) -> tuple[AgentType, ...]:
        """The types of sub-agents, and what each is for."""
        return tuple(AgentType(agent.name, agent.description) for agent in self.definitions().values())

    @cached_property
    def teams(self) -> "session_teams.SessionTeams":
        """The teams of the session, and the messages between its agents."""
        return session_teams.SessionTeams(self)

    def refuse(self, task: AgentTask, caller: AgentIdentity) -> str:
        """Why the caller cannot have this sub-agent; empty if it can."""
        most = self.host.settings().depth
        if len(caller.path) >= most:
            return (
                f"Sub-agents may start others {most} deep, and you are that deep. Do the task yourself, or tell your "
                "caller that it is too large."
            )
        if task.background and not self.host.services().background:
            return "Nothing runs in the background here. Leave run_in_background out."
        if task.resume:
            return self.known.refuse_resume(task)
        if (task.name or task.team) and (problem := self.teams.refuse(task)):
            return problem
        types = self.definitions()
        if task.kind in types:
            return ""
        hint = did_you_mean(task.kind, types)
        return f"There is no sub-agent {task.kind!r}.{hint} Known: {', '.join(sorted(types))}."

    def makes_worktree(self, task: AgentTask) -> bool:
        """Whether the task would make a git worktree."""
        if task.resume:
            entry = self.known.record_of(task.resume)
            return bool(task.isolation or (entry and entry.worktree))
        definition = self.definitions().get(task.kind)
        return bool(task.isolation or (definition and definition.isolation))

    # Work

    async def work(self, task: AgentTask, ctx: ToolContext) -> AgentReport:
        """Let a sub-agent work on the task: to its end, or in the background."""
        agent = self.known.resume(task, ctx) if task.resume else self.known.begin(task, ctx)
        if task.isolation or agent.definition.isolation or agent.record.worktree:
            try:
                await self._isolate(agent, ctx.cwd)
            except BaseException:
                if not task.resume:  # it never began
                    self.known.forget(agent)
                raise
        if self._works_in_background(task, agent, ctx.agent):
            return self.launch(agent, task.prompt)
        emit = self._emitter(agent, task.prompt, (ctx.progress,))
        caller = self.known.get(ctx.agent.id)
        if caller is not None:
            caller.slot.lend()
        try:
            report = await self._run(agent, task.prompt, emit, ctx.abort)
        except BaseException:
            if caller is not None:
                caller.slot.forget_one()
            raise
        if caller is not None:
            await caller.slot.reclaim()
        return report

    async def wake(self, agent_id: str, prompt: str, ctx: ToolContext) -> None:
        """Let an agent that has ended go on in the background, for the one it worked for; ToolError if it cannot."""
        await self._relaunch(self.known.reopen(agent_id, ctx), prompt)

    async def _relaunch(self, agent: Subagent, prompt: str) -> None:
        if agent.record.worktree:
            await self._isolate(agent, Path(agent.record.cwd))
        if agent.record.status != "running":  # nothing else has woken it meanwhile
            self.launch(agent, prompt)

    async def _isolate(self, agent: Subagent, folder: Path) -> None:
        await agent_isolation.enter_worktree(agent, folder, self.host.services(), self.parts)
        self.known.set_status(agent, agent.record.status)  # it is written down now
        agent_isolation.settle_worktree(agent)

    def launch(self, agent: Subagent, prompt: str) -> AgentReport:
        """Let it work on a prompt in the background; the session is told of its end."""
        agent.background = True
        work = agent_work.AgentWork(lambda: self.stop(agent.id))
        self.known.set_status(agent, "running")  # first: those who hear of the task may want the agent to go on
        task = agent_work.add_task(self.host.services(), agent.record, agent.call, prompt, work)
        agent.job = asyncio.get_running_loop().create_task(self._run_in_background(agent, prompt, work, task.output))
        agent.report = replace(report_on(agent), status="running", output=str(task.output))
        return agent.report

    def _emitter(self, agent: Subagent, prompt: str, listeners: Sequence[OnNews]) -> Callable[[object], None]:
        """Passes on the events of an agent, each with its id and the call that started it."""
        news, own = news_of(agent, prompt), self.listeners_by_call.get(agent.call)

        def emit(event: object) -> None:
            for listener in (*listeners, *([own] if own else []), *self.observers):
                listener(replace(news, event=event))

        return emit

    async def _run_in_background(
        self, agent: Subagent, prompt: str, work: "agent_work.AgentWork", output: Path
    ) -> None:
        emit = self._emitter(agent, prompt, self.listeners)
        report = replace(report_on(agent), status="killed", problem="it was stopped before it began")
        try:
            report = await self._run(agent, prompt, emit, AbortSignal())
        except HandrailError as error:
            report = replace(report, status="failed", problem=str(error))
        except Exception as error:
            log.exception("the sub-agent %s failed", agent.id)
            report = replace(report, status="failed", problem=f"{type(error).__name__}: {error}")
        finally:
            self.known.set_status(agent, report.status)
            agent.report = report
            work.finish(report, output)
            emit(replace(report, output=str(output)))

    async def _run(
        self, agent: Subagent, prompt: str, emit: Callable[[object], None], abort: AbortSignal
    ) -> AgentReport:
        status: AgentStatus = "killed"
        self.known.set_status(agent, "running")
        self.parts.at_work.add(agent.id)
        try:
            await agent.slot.take()
            if agent.definition.needs_equipment and self.host.equipment is not None:
                agent.equipment = await agent_equipment.equip(agent.definition, agent.id, self.host.equipment())
            agent.transcript = self.host.open_transcript(agent.id)
            agent.conversation = conversation = open_agent(
                agent, self.parts, self.host, delegate=self, types=self.types
            )
            abort.listen(lambda _reason: conversation.interrupt())
            if agent.equipment is not None and agent.definition.skills and not conversation.messages:
                for note in await agent.equipment.skill_notes(conversation, abort):
                    conversation.state.mailbox.note(note)
            if agent.record.worktree and not conversation.messages:
                prompt = agent_isolation.with_note(agent.record, prompt)
            more = self._more_work(agent, conversation) if "teams" in self.__dict__ else None
            report = await run_prompts(conversation, prompt, emit, self.parts.model.add_agent_usage, more)
            status = report.status
            notes = tuple(f"[{each}]" for each in agent.equipment.problems) if agent.equipment is not None else ()
            if agent.record.worktree:
                notes += await agent_isolation.leave_worktree(agent, self.host.services())
            agent.report = replace(report, notes=notes)
            return agent.report
        finally:
            await self._end(agent, status)

    async def _end(self, agent: Subagent, status: AgentStatus) -> None:
        """It does not work any more: what it had is closed, given back and written down."""
        if agent.equipment is not None:
            await agent.equipment.aclose()
            agent.equipment = None
        self.parts.at_work.discard(agent.id)
        if self.parts.skills is not None:
            self.parts.skills.end_turn(agent.path)
        agent.slot.give_back()
        if status == "killed" and agent.record.worktree:
            await agent_isolation.leave_worktree(agent, self.host.services())
        agent.close_conversation()
        self.known.set_status(agent, status)
        if status == "completed" and "teams" in self.__dict__:
            self._on_idle(agent)

    def _more_work(self, agent: Subagent, conversation: Conversation) -> MoreWork:
        return lambda: self.teams.more_work(agent, conversation.state.context)

    def _on_idle(self, agent: Subagent) -> None:
        """Tell those that want to know, and wake it again if it was written to in the last moment."""
        self.teams.tell_watchers(agent)
        if not self._is_closing and (words := self.teams.unread(agent.id)):
            task = asyncio.get_running_loop().create_task(self._relaunch(agent, words))
            self._waking.add(task)
            task.add_done_callback(self._waking.discard)

    def stop(self, agent_id: str) -> bool:
        """Interrupt a sub-agent; False = none of that id is at work."""
        agent = self.known.get(agent_id)
        if agent is None or agent.record.status != "running":
            return False
        if agent.conversation is not None:
            agent.conversation.interrupt()
        elif agent.job is not None:  # it waits for a slot
            agent.job.cancel()
        return True

    def stop_all(self) -> None:
        """Interrupt every sub-agent that is at work."""
        for agent in self.known.of_this_process():
            self.stop(agent.id)

    async def aclose(self) -> None:
        """Stop all sub-agents in the background, and wait until nothing of them is left."""
        self._is_closing = True
        await asyncio.gather(*self._waking, return_exceptions=True)
        jobs = [agent.job for agent in self.known.of_this_process() if agent.job is not None and not agent.job.done()]
        self.stop_all()
        if jobs:
            await asyncio.wait(jobs)
        self._is_closing = False

    def _works_in_background(self, task: AgentTask, agent: Subagent, caller: AgentIdentity) -> bool:
        if not self.host.services().background:
            return False
        if task.team:
            return True
        if task.background is not None:
            return task.background
        if agent.definition.background:
            return True
        wish = self.host.settings().background
        return caller.is_main and (self.host.tells_ends if wish is None else wish)
