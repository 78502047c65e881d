"""
The sub-agents of a session: runs of the loop inside a run, with a conversation and a memory of files of their own.

    foreground   the call waits for the report
    background   the call returns at once; the end is told as that of a background task

Agents work side by side, up to a number; the others wait for a slot. One that has ended goes on by its id, with what it
knows. Each writes a transcript below that of the session.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.agents.definitions import AgentDefinition
from handrail.agents.slots import AgentSlots
from handrail.errors import HandrailError, ToolError
from handrail.files.memory import FileMemory
from handrail.lazy import lazy
from handrail.session.agent_opening import open_agent
from handrail.session.agent_records import AgentRecord, resume_problem
from handrail.session.agent_run import MoreWork, run_prompts
from handrail.session.agent_state import AgentHost, OnNews, Subagent, facts_of, news_of, report_on
from handrail.session.conversation import Conversation
from handrail.session.parts import SharedParts
from handrail.session.tools import only_reads
from handrail.tools.abort import AbortSignal
from handrail.tools.context import AgentIdentity, AgentType, ToolContext
from handrail.tools.delegation import AgentFacts, AgentReport, AgentStatus, AgentTask
from handrail.tools.wording import did_you_mean
from handrail.transcripts.store import OpenTranscript

if TYPE_CHECKING:
    from handrail.session import agent_equipment, agent_isolation, agent_work
    from handrail.session import teams as session_teams
else:
    session_teams = lazy("handrail.session.teams")
    agent_equipment = lazy("handrail.session.agent_equipment")
    agent_isolation = lazy("handrail.session.agent_isolation")
    agent_work = lazy("handrail.session.agent_work")

log = logging.getLogger(__name__)


class Subagents:
    """Runs the sub-agents of a session: same rails, same files, another conversation."""

    def __init__(
        self, definitions: Callable[[], Mapping[str, AgentDefinition]], parts: SharedParts, host: AgentHost
    ) -> None:
        self.definitions = definitions
        self.listeners: list[OnNews] = []
        """Called with each event of a sub-agent in the background."""
        self.listeners_by_call: dict[str, OnNews] = {}
        """Called with each event of the sub-agent that a call started."""
        self.parts = parts
        self.host = host
        self._agents: dict[str, Subagent] = {}
        self._slots: AgentSlots | None = None
        self._waking: set[asyncio.Task[None]] = set()
        self._is_closing = False

    # What there is

    def agent_types(self) -> dict[str, bool]:
        """Which types there are, and whether each only reads."""
        return {agent.name: agent.has_only(only_reads) for agent in self.definitions().values()}

    def types(self) -> tuple[AgentType, ...]:
        """The types of sub-agents, and what each is for."""
        return tuple(AgentType(agent.name, agent.description) for agent in self.definitions().values())

    def all(self) -> tuple[AgentFacts, ...]:
        """The sub-agents of this session so far, also before it was resumed, oldest first."""
        known = [self.host.records.load(each) for each in self.host.records.all_ids() if each not in self._agents]
        earlier = tuple(facts_of(entry) for entry in known if entry is not None)
        return (
            *earlier,
            *(
                facts_of(each.record, background=each.background, color=each.definition.color)
                for each in self._agents.values()
            ),
        )

    def get(self, agent_id: str) -> Subagent | None:
        """The sub-agent of that id, if it has worked since the session was opened."""
        return self._agents.get(agent_id)

    def at_call(self, call: str) -> tuple[Subagent, ...]:
        """The sub-agents that a call started."""
        return tuple(each for each in self._agents.values() if each.call == call)

    @cached_property
    def teams(self) -> "session_teams.SessionTeams":
        """The teams of the session, and the messages between its agents."""
        return session_teams.SessionTeams(self)

    def refuse(self, task: AgentTask, caller: AgentIdentity) -> str:
        """Why the caller cannot have this sub-agent; empty if it can."""
        most = self.host.settings().depth
        if self._depth_of(caller) >= most:
            return (
                f"Sub-agents may start others {most} deep, and you are that deep. Do the task yourself, or tell your "
                "caller that it is too large."
            )
        if task.background and not self.host.services().background:
            return "Nothing runs in the background here. Leave run_in_background out."
        if task.resume:
            return self._refuse_resume(task)
        if (task.name or task.team) and (problem := self.teams.refuse(task)):
            return problem
        types = self.definitions()
        if task.kind in types:
            return ""
        hint = did_you_mean(task.kind, types)
        return f"There is no sub-agent {task.kind!r}.{hint} There are: {', '.join(sorted(types))}."

    def makes_worktree(self, task: AgentTask) -> bool:
        """Whether the task would make a git worktree."""
        if task.resume:
            entry = self._record(task.resume)
            return bool(task.isolation or (entry and entry.worktree))
        definition = self.definitions().get(task.kind)
        return bool(task.isolation or (definition and definition.isolation))

    def _refuse_resume(self, task: AgentTask) -> str:
        return resume_problem(task, self._record(task.resume), self._agents, self.definitions())

    def _record(self, agent_id: str) -> AgentRecord | None:
        """What is known of an agent, of this run of the session or an earlier one."""
        agent = self._agents.get(agent_id)
        return agent.record if agent else self.host.records.load(agent_id)

    def _depth_of(self, caller: AgentIdentity) -> int:
        return len(caller.path)

    # Work

    async def work(self, task: AgentTask, ctx: ToolContext) -> AgentReport:
        """Let a sub-agent work on the task: to its end, or in the background."""
        agent = self._resume(task, ctx) if task.resume else self._new(task, ctx)
        if task.isolation or agent.definition.isolation or agent.record.worktree:
            try:
                await self._isolate(agent, ctx.cwd)
            except BaseException:
                if not task.resume:  # it never began
                    del self._agents[agent.id]
                raise
        if self._works_in_background(task, agent, ctx.agent):
            return self.launch(agent, task.prompt)
        emit = self._emitter(agent, task.prompt, (ctx.progress,))
        caller = self._agents.get(ctx.agent.id)
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
        agent = self._agents.get(agent_id)
        if agent is None:
            entry = self.host.records.load(agent_id)
            if entry is None or entry.kind not in self.definitions():
                raise ToolError(f"The sub-agent {agent_id!r} cannot go on: its kind is not there any more.")
            agent = self._admit(entry, ctx, FileMemory())
        await self._relaunch(agent, prompt)

    async def _relaunch(self, agent: Subagent, prompt: str) -> None:
        if agent.record.worktree:
            await self._isolate(agent, Path(agent.record.cwd))
        if agent.record.status != "running":  # nothing else has woken it meanwhile
            self.launch(agent, prompt)

    async def _isolate(self, agent: Subagent, folder: Path) -> None:
        place = await agent_isolation.worktree_for(agent.record, folder, self.host.services(), self.parts.hooks)
        if place.as_json() != agent.record.worktree:
            agent.files = FileMemory()
        agent.cwd = Path(place.cwd)
        if agent.forget_worktree is None:
            policy = self.parts.settings.in_force()
            agent.forget_worktree = policy.lend(agent_isolation.policy_for(place))
        agent.record = replace(agent.record, cwd=place.cwd, worktree=place.as_json())

    async def _leave_worktree(self, agent: Subagent) -> tuple[str, ...]:
        if not agent.record.worktree:
            return ()
        notes = await agent_isolation.leave_worktree(agent.record, self.host.services())
        if agent.forget_worktree is not None and not agent.cwd.is_dir():
            agent.forget_worktree()
            agent.forget_worktree = None
        return notes

    def launch(self, agent: Subagent, prompt: str) -> AgentReport:
        """Let it work on a prompt in the background; the session is told of its end."""
        agent.background = True
        work = agent_work.AgentWork(lambda: self.stop(agent.id))
        task = agent_work.add_task(self.host.services(), agent.record, agent.call, prompt, work)
        agent.record = replace(agent.record, status="running")
        agent.job = asyncio.get_running_loop().create_task(self._run_in_background(agent, prompt, work, task.output))
        agent.report = replace(report_on(agent), status="running", output=str(task.output))
        return agent.report

    def _emitter(self, agent: Subagent, prompt: str, listeners: Sequence[OnNews]) -> Callable[[object], None]:
        """Passes on the events of an agent, each with its id and the call that started it."""
        news, own = news_of(agent, prompt), self.listeners_by_call.get(agent.call)

        def emit(event: object) -> None:
            for listener in (*listeners, *([own] if own else [])):
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
            self._set_status(agent, report.status)
            agent.report = report
            work.finish(report, output)
            emit(replace(report, output=str(output)))

    async def _run(
        self, agent: Subagent, prompt: str, emit: Callable[[object], None], abort: AbortSignal
    ) -> AgentReport:
        status: AgentStatus = "killed"
        self._set_status(agent, "running")
        self.parts.at_work.add(agent.id)
        transcript: OpenTranscript | None = None
        try:
            await agent.slot.take()
            if agent.definition.needs_equipment and self.host.equipment is not None:
                agent.equipment = await agent_equipment.equip(agent.definition, agent.id, self.host.equipment())
            transcript = self.host.open_transcript(agent.id)
            agent.conversation = conversation = open_agent(
                agent, self.parts, self.host, transcript, delegate=self, types=self.types
            )
            abort.listen(lambda _reason: conversation.interrupt())
            if agent.equipment is not None and agent.definition.skills and not conversation.messages:
                for note in await agent.equipment.skill_notes(conversation, abort):
                    conversation.state.mailbox.note(note)
            if agent.record.worktree and not conversation.messages:
                prompt = agent_isolation.with_note(agent.record, prompt)
            more = self._more_work(agent, conversation) if "teams" in self.__dict__ else None
            report = await run_prompts(conversation, prompt, emit, self.parts.model.add_usage, more)
            status = report.status
            problems = agent.equipment.problems if agent.equipment is not None else ()
            notes = (*(f"[{each}]" for each in problems), *await self._leave_worktree(agent))
            agent.report = replace(report, notes=notes)
            return agent.report
        finally:
            if agent.equipment is not None:
                await agent.equipment.aclose()
                agent.equipment = None
            self.parts.at_work.discard(agent.id)
            agent.slot.give_back()
            if status == "killed":
                await self._leave_worktree(agent)
            if agent.conversation is not None:
                state = agent.conversation.state
                agent.files, agent.conversation = state.context.files, None
                agent.history = () if transcript else tuple(state.history.messages)
            if transcript is not None:
                transcript.writer.close()
            self._set_status(agent, status)
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
        agent = self._agents.get(agent_id)
        if agent is None or agent.record.status != "running":
            return False
        if agent.conversation is not None:
            agent.conversation.interrupt()
        elif agent.job is not None:  # it waits for a slot
            agent.job.cancel()
        return True

    def stop_all(self) -> None:
        """Interrupt every sub-agent that is at work."""
        for agent_id in list(self._agents):
            self.stop(agent_id)

    async def aclose(self) -> None:
        """Stop all sub-agents in the background, and wait until nothing of them is left."""
        self._is_closing = True
        await asyncio.gather(*self._waking, return_exceptions=True)
        jobs = [agent.job for agent in self._agents.values() if agent.job is not None and not agent.job.done()]
        self.stop_all()
        if jobs:
            await asyncio.wait(jobs)
        self._is_closing = False

    # Opening

    def _new(self, task: AgentTask, ctx: ToolContext) -> Subagent:
        name = f"agent-{os.urandom(6).hex()}"
        entry = AgentRecord(
            id=name,
            kind=task.kind,
            description=task.description,
            name=task.name,
            team=task.team,
            model=task.model,
            effort=task.effort,
            parent=ctx.agent.id,
            depth=self._depth_of(ctx.agent) + 1,
            cwd=str(ctx.cwd),
        )
        return self._admit(entry, ctx, FileMemory())

    def _resume(self, task: AgentTask, ctx: ToolContext) -> Subagent:
        """The agent of that id, with what it knows; the caller's tools and folders count now."""
        before = self._agents.get(task.resume)
        kept = before.record if before else self.host.records.load(task.resume)
        if kept is None:
            raise ToolError(self._refuse_resume(task))
        kept = replace(kept, parent=ctx.agent.id, depth=self._depth_of(ctx.agent) + 1, model=task.model or kept.model)
        agent = self._admit(kept, ctx, before.files if before else FileMemory())
        agent.history = before.history if before else ()
        return agent

    def _admit(self, entry: AgentRecord, ctx: ToolContext, files: FileMemory) -> Subagent:
        if self._slots is None:
            self._slots = AgentSlots(self.host.settings().concurrent)
        agent = Subagent(
            record=entry,
            definition=self.definitions()[entry.kind],
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

    def leave_team(self, team: str) -> None:
        """The team is over: its members are agents like others, and their names are free."""
        for facts in self.all():
            agent = self._agents.get(facts.id)
            entry = agent.record if agent else self.host.records.load(facts.id)
            if entry is not None and entry.team == team:
                entry = replace(entry, team="")
                self.host.records.save(entry)
                if agent is not None:
                    agent.record = entry

    def _set_status(self, agent: Subagent, status: AgentStatus) -> None:
        if agent.record.status != status:
            agent.record = replace(agent.record, status=status)
        self.host.records.save(agent.record)
