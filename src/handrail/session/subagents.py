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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from handrail.agents.definitions import AgentDefinition
from handrail.agents.slots import AgentSlot, AgentSlots
from handrail.builtin.services import ToolServices
from handrail.config.execution import AgentSettings
from handrail.conversation.messages import Message
from handrail.conversation.request import Chain
from handrail.errors import HandrailError, ToolError
from handrail.files.memory import FileMemory
from handrail.lazy import lazy
from handrail.loop.run_config import RequestOptions
from handrail.records import record
from handrail.session.agent_records import AgentRecord, AgentRecords
from handrail.session.agent_run import least_limits, read_effort, run_prompt
from handrail.session.context import SessionContext
from handrail.session.conversation import Conversation
from handrail.session.model_options import named_model
from handrail.session.models import model_by_object
from handrail.session.parts import ConversationSpec, SharedParts, open_conversation
from handrail.session.tools import only_reads
from handrail.tools.abort import AbortSignal
from handrail.tools.context import NO_BUDGET, AgentIdentity, AgentType, Budget, RunOptions, ToolContext
from handrail.tools.delegation import AgentFacts, AgentNews, AgentReport, AgentStatus, AgentTask
from handrail.tools.pool import NO_DEFERRAL, AnyTool, Deferral
from handrail.tools.wording import did_you_mean
from handrail.transcripts.store import OpenTranscript

if TYPE_CHECKING:
    from handrail.session import agent_isolation, agent_work
else:
    agent_isolation = lazy("handrail.session.agent_isolation")
    agent_work = lazy("handrail.session.agent_work")

log = logging.getLogger(__name__)

OpenBeside: TypeAlias = Callable[[str], OpenTranscript | None]
"""Opens the transcript of a sub-agent, by its id, new or not; None = its words are not kept."""
OnNews: TypeAlias = Callable[[AgentNews], None]


@record
class AgentHost:
    """
    What sub-agents need of their session.

    `tells_ends`: the front end learns of the end of background work, so agents may work there unasked. `context` opens
    what a conversation in a folder is told of it; None = nothing is.
    """

    settings: Callable[[], AgentSettings]
    services: Callable[[], ToolServices]
    chain: Chain
    records: AgentRecords
    open_transcript: OpenBeside
    deferral: Deferral = NO_DEFERRAL
    mcp_tools: Callable[[], tuple[AnyTool, ...]] = tuple
    tells_ends: bool = False
    context: Callable[[Path], SessionContext] | None = None


@dataclass(slots=True, eq=False)
class Subagent:
    """One sub-agent of the session, at work or ended."""

    record: AgentRecord
    definition: AgentDefinition
    slot: AgentSlot
    cwd: Path
    options: RunOptions
    offered: frozenset[str]
    path: tuple[str, ...]
    call: str = ""
    background: bool = False
    budget: Budget = NO_BUDGET
    files: FileMemory = field(default_factory=FileMemory)
    history: tuple[Message, ...] = ()
    """What was said before, if there is no transcript."""
    conversation: Conversation | None = None
    job: asyncio.Task[None] | None = None
    """Its work in the background."""

    @property
    def id(self) -> str:
        return self.record.id


class Subagents:
    """Runs the sub-agents of a session: same rails, same files, another conversation."""

    def __init__(
        self, definitions: Callable[[], Mapping[str, AgentDefinition]], parts: SharedParts, host: AgentHost
    ) -> None:
        self.definitions = definitions
        self.listeners: list[OnNews] = []
        """Called with each event of a sub-agent in the background."""
        self.parts = parts
        self._host = host
        self._agents: dict[str, Subagent] = {}
        self._slots: AgentSlots | None = None

    # What there is

    def agent_types(self) -> dict[str, bool]:
        """Which types there are, and whether each only reads."""
        return {agent.name: agent.has_only(only_reads) for agent in self.definitions().values()}

    def types(self) -> tuple[AgentType, ...]:
        """The types of sub-agents, and what each is for."""
        return tuple(AgentType(agent.name, agent.description) for agent in self.definitions().values())

    def all(self) -> tuple[AgentFacts, ...]:
        """The sub-agents of this session so far, oldest first."""
        return tuple(
            AgentFacts(each.id, r.kind, r.description, r.status, r.name, r.parent, each.background)
            for each in self._agents.values()
            for r in (each.record,)
        )

    def refuse(self, task: AgentTask, caller: AgentIdentity) -> str:
        """Why the caller cannot have this sub-agent; empty if it can."""
        most = self._host.settings().depth
        if self._depth_of(caller) >= most:
            return (
                f"Sub-agents may start others {most} deep, and you are that deep. Do the task yourself, or tell your "
                "caller that it is too large."
            )
        if task.background and not self._host.services().background:
            return "Nothing runs in the background here. Leave run_in_background out."
        if task.resume:
            return self._refuse_resume(task.resume, task.kind)
        types = self.definitions()
        if task.kind in types:
            return ""
        hint = did_you_mean(task.kind, types)
        return f"There is no sub-agent {task.kind!r}.{hint} There are: {', '.join(sorted(types))}."

    def _refuse_resume(self, wanted: str, kind: str) -> str:
        found = self._agents.get(wanted)
        if found is not None and found.record.status == "running":
            return f"The sub-agent {wanted!r} is still at work. Wait for its end."
        if (kept := found.record if found else self._host.records.load(wanted)) is None:
            known = ", ".join(self._agents) or "none"
            return f"There is no sub-agent {wanted!r} to go on. There are: {known}."
        if kept.kind not in self.definitions():
            return f"The sub-agent {wanted!r} is a {kept.kind!r}, which there is no more. Start another one."
        if kept.kind != kind:  # rules and hooks judge the kind that the call names
            return f"The sub-agent {wanted!r} is a {kept.kind!r}. To let it go on, say subagent_type {kept.kind!r}."
        return ""

    def _depth_of(self, caller: AgentIdentity) -> int:
        return len(caller.path)

    # Work

    async def work(self, task: AgentTask, ctx: ToolContext) -> AgentReport:
        """Let a sub-agent work on the task: to its end, or in the background."""
        agent = self._resume(task, ctx) if task.resume else self._new(task, ctx)
        if task.isolation or agent.definition.isolation or agent.record.worktree:
            await self._isolate(agent, ctx.cwd)
        if self._works_in_background(task, agent, ctx.agent):
            return self.launch(agent, task.prompt)
        news = _news_of(agent, task.prompt)
        caller = self._agents.get(ctx.agent.id)
        if caller is not None:
            caller.slot.lend()
        try:
            report = await self._run(
                agent, task.prompt, lambda event: ctx.progress(replace(news, event=event)), ctx.abort
            )
        except BaseException:
            if caller is not None:
                caller.slot.forget_one()
            raise
        if caller is not None:
            await caller.slot.reclaim()
        return report

    async def _isolate(self, agent: Subagent, folder: Path) -> None:
        place = await agent_isolation.worktree_for(agent.record, folder, self._host.services())
        if place.as_json() != agent.record.worktree:
            agent.files = FileMemory()
        agent.cwd = Path(place.cwd)
        agent.record = replace(agent.record, cwd=place.cwd, worktree=place.as_json())

    async def _leave_worktree(self, agent: Subagent) -> tuple[str, ...]:
        if not agent.record.worktree:
            return ()
        return await agent_isolation.leave_worktree(agent.record, self._host.services())

    def launch(self, agent: Subagent, prompt: str) -> AgentReport:
        """Let it work on a prompt in the background; the session is told of its end."""
        agent.background = True
        work = agent_work.AgentWork(lambda: self.stop(agent.id))
        task = agent_work.add_task(self._host.services(), agent.record, agent.call, prompt, work)
        agent.record = replace(agent.record, status="running")
        agent.job = asyncio.get_running_loop().create_task(self._run_in_background(agent, prompt, work, task.output))
        return replace(_report_on(agent), status="running", output=str(task.output))

    async def _run_in_background(
        self, agent: Subagent, prompt: str, work: "agent_work.AgentWork", output: Path
    ) -> None:
        news = _news_of(agent, prompt)

        def emit(event: object) -> None:
            for listener in self.listeners:
                listener(replace(news, event=event))

        report = replace(_report_on(agent), status="killed", problem="it was stopped before it began")
        try:
            report = await self._run(agent, prompt, emit, AbortSignal())
        except HandrailError as error:
            report = replace(report, status="failed", problem=str(error))
        except Exception as error:
            log.exception("the sub-agent %s failed", agent.id)
            report = replace(report, status="failed", problem=f"{type(error).__name__}: {error}")
        finally:
            self._set_status(agent, report.status)
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
            transcript = self._host.open_transcript(agent.id)
            agent.conversation = conversation = self._open(agent, transcript)
            abort.listen(lambda _reason: conversation.interrupt())
            if agent.record.worktree and not conversation.messages:
                prompt = agent_isolation.with_note(agent.record, prompt)
            report = await run_prompt(conversation, prompt, emit, self.parts.model.add_usage)
            status = report.status
            return replace(report, notes=await self._leave_worktree(agent))
        finally:
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
        jobs = [agent.job for agent in self._agents.values() if agent.job is not None and not agent.job.done()]
        self.stop_all()
        if jobs:
            await asyncio.wait(jobs)

    # Opening

    def _new(self, task: AgentTask, ctx: ToolContext) -> Subagent:
        name = f"agent-{os.urandom(6).hex()}"
        entry = AgentRecord(
            id=name,
            kind=task.kind,
            description=task.description,
            name=task.name,
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
        kept = before.record if before else self._host.records.load(task.resume)
        if kept is None:
            raise ToolError(self._refuse_resume(task.resume, task.kind))
        kept = replace(kept, parent=ctx.agent.id, depth=self._depth_of(ctx.agent) + 1, model=task.model or kept.model)
        agent = self._admit(kept, ctx, before.files if before else FileMemory())
        agent.history = before.history if before else ()
        return agent

    def _admit(self, entry: AgentRecord, ctx: ToolContext, files: FileMemory) -> Subagent:
        if self._slots is None:
            self._slots = AgentSlots(self._host.settings().concurrent)
        agent = Subagent(
            record=entry,
            definition=self.definitions()[entry.kind],
            slot=self._slots.slot(),
            cwd=Path(entry.cwd),
            options=ctx.options,
            offered=frozenset(ctx.options.tools()),
            path=(*ctx.agent.path, f"{entry.kind} {entry.id}"),
            call=ctx.use.id,
            budget=ctx.budget,
            files=files,
        )
        self._agents[entry.id] = agent
        return agent

    def _works_in_background(self, task: AgentTask, agent: Subagent, caller: AgentIdentity) -> bool:
        if not self._host.services().background:
            return False
        if task.background is not None:
            return task.background
        if agent.definition.background:
            return True
        wish = self._host.settings().background
        return caller.is_main and (self._host.tells_ends if wish is None else wish)

    def _set_status(self, agent: Subagent, status: AgentStatus) -> None:
        if agent.record.status != status:
            agent.record = replace(agent.record, status=status)
        self._host.records.save(agent.record)

    def _open(self, agent: Subagent, transcript: OpenTranscript | None) -> Conversation:
        definition, entry = agent.definition, agent.record
        chosen, loaded = self.parts.model.chosen, self.parts.settings.loaded
        wanted = entry.model or definition.model or loaded.env.get("CLAUDE_CODE_SUBAGENT_MODEL", "")
        name = named_model(wanted, chosen.name, loaded)
        services = self._host.services
        may_delegate = entry.depth < self._host.settings().depth
        identity = AgentIdentity(
            entry.id,
            entry.kind,
            definition.mode,
            str(transcript.path) if transcript else "",
            agent.path,
            agent.background,
        )
        spec = ConversationSpec(
            cwd=agent.cwd,
            model=chosen if name == chosen.name else model_by_object(chosen.model, name),
            system=(definition.prompt,),
            services=lambda: replace(services(), delegate=self),
            options=replace(agent.options, agents=self.types if may_delegate else tuple),
            chain=Chain(self._host.chain.id, self._host.chain.depth + entry.depth),
            denied=lambda tool, _mcp: (
                not definition.may_use(tool) or tool not in agent.offered or (tool == "Agent" and not may_delegate)
            ),
            # tools that a definition names are wanted in full
            deferral=self._host.deferral if definition.tools is None else NO_DEFERRAL,
            identity=identity,
            request=RequestOptions(effort=read_effort(entry.effort or definition.effort)),
            context=self._host.context(agent.cwd) if self._host.context else None,
            transcript=transcript,
            history=agent.history,
            mcp_tools=self._host.mcp_tools(),
            files=agent.files,
        )
        return open_conversation(
            self.parts,
            spec,
            least_limits(self._host.settings().limits, definition.max_turns, agent.budget, timed=not agent.background),
        )


def _report_on(agent: Subagent) -> AgentReport:
    return AgentReport(agent.id, "", kind=agent.record.kind)


def _news_of(agent: Subagent, prompt: str) -> AgentNews:
    entry = agent.record
    return AgentNews(
        entry.description,
        agent=entry.id,
        kind=entry.kind,
        call=agent.call,
        depth=entry.depth,
        prompt=prompt,
        background=agent.background,
    )
