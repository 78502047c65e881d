"""Sub-agents of a session: runs of the loop inside a run, with a conversation and a memory of files of their own."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from handrail.agents.definitions import BUILT_IN, AgentDefinition, parse_file, parse_json
from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment
from handrail.conversation.request import Chain
from handrail.conversation.stream import MessageStart, Usage, UsageUpdate
from handrail.loop.events import MessageComplete, RunEnded
from handrail.loop.limits import Limits
from handrail.loop.prompt import AGENTS
from handrail.loop.run import Run
from handrail.session.agent import Agent
from handrail.session.slash_files import MAX_FILE, SOURCES, folders_for, reaches_out
from handrail.tools.context import AgentIdentity, ToolContext
from handrail.tools.delegation import AgentNews, AgentReport, AgentTask
from handrail.tools.events import CallQueued
from handrail.transcripts.store import OpenTranscript

if TYPE_CHECKING:
    from handrail.hooks.runner import Hooks
    from handrail.session.late_hooks import LateHooks

Keep: TypeAlias = Callable[[str], OpenTranscript | None]
"""Where the conversation of a sub-agent is kept, by its id; None = nowhere."""

ALIASES = frozenset({"sonnet", "opus", "haiku", "fable", "inherit"})
"""Names of one vendor's families: here they mean the model of the caller."""


def find_agents(
    cwd: Path, env: Mapping[str, str], given: Mapping[str, Any], sources: Collection[str] = SOURCES
) -> tuple[dict[str, AgentDefinition], list[str]]:
    """All sub-agents that hold in a folder, by name, and why others do not. What a program gives goes before files."""
    found: dict[str, AgentDefinition] = {}
    problems: list[str] = []
    candidates = [parse_json(name, value, "--agents") for name, value in given.items()]
    for each in (*candidates, *_files(folders_for("agents", cwd, env, sources), cwd), *BUILT_IN):
        if isinstance(each, str):
            problems.append(each)
        else:
            found.setdefault(each.name, each)
    return found, problems


def _files(folders: Iterable[Path], cwd: Path) -> Iterator[AgentDefinition | str]:
    for folder in folders:
        try:
            paths = sorted(folder.glob("*.md"))
        except OSError:
            continue
        for path in paths:
            try:
                if not path.is_file():  # a pipe would be waited for
                    yield f"{path}: it is not a regular file"
                    continue
                if path.is_relative_to(cwd) and reaches_out(path, cwd):
                    yield f"{path}: it leads out of the project, or to what may hold secrets, and is not read"
                    continue
                text = path.read_text("utf-8", "replace") if path.stat().st_size <= MAX_FILE else ""
            except OSError as error:
                yield f"{path}: {error.strerror}"
                continue
            yield parse_file(text, str(path))


def agent_types_note(agents: Mapping[str, AgentDefinition]) -> Attachment:
    """What the model is told of the kinds of sub-agents: in a message, so that the tool's text never changes."""
    lines = [f"- {agent.name}: {agent.description}" for agent in agents.values()]
    return Attachment(AGENTS, (Text("Kinds of sub-agents (subagent_type of Agent):\n" + "\n".join(lines)),))


class Delegation:
    """Runs sub-agents beside their caller: same model, same rails, same session, another conversation."""

    def __init__(
        self,
        agents: Mapping[str, AgentDefinition],
        caller: Callable[[], Agent],
        options: Mapping[str, Any],
        hooks: "Hooks | LateHooks | None" = None,
        *,
        keep: Keep,
        spend: Callable[[str, Usage], None],
    ) -> None:
        self.agents = agents
        self._caller = caller
        self._options = options
        self._hooks = hooks
        self._keep = keep
        self._spend = spend
        self._running: dict[str, Run] = {}

    def agent_types(self) -> dict[str, bool]:
        """Which kinds there are, and whether each only reads."""
        return {agent.name: agent.only_reads for agent in self.agents.values()}

    async def work(self, task: AgentTask, ctx: ToolContext) -> AgentReport:
        """Let a sub-agent work on the task to its end."""
        definition = self.agents[task.kind]
        name = f"agent-{os.urandom(6).hex()}"
        kept = self._keep(name)
        identity = AgentIdentity(name, task.kind, definition.mode, str(kept.path) if kept else "")
        try:
            return await self._worked(self._agent(definition, task, identity, ctx, kept), task, identity, ctx)
        finally:
            if kept is not None:
                kept.writer.close()

    async def _worked(self, agent: Agent, task: AgentTask, identity: AgentIdentity, ctx: ToolContext) -> AgentReport:
        run = agent.run(task.prompt)
        ctx.abort.listen(lambda _reason: run.interrupt())
        calls, ended, model, unpaid = 0, None, agent.model, Usage()
        self._running[identity.id] = run
        try:
            async for event in run:
                ctx.progress(AgentNews(task.description, event=event, agent=identity.id))
                match event:
                    case CallQueued():
                        calls += 1
                    case MessageStart():
                        model, unpaid = event.model or model, Usage()
                    case UsageUpdate(usage):
                        unpaid = usage
                    case MessageComplete(message=message, usage=usage):
                        self._spend(message.model, usage)
                        unpaid = Usage()
                    case RunEnded():
                        ended = event
                    case _:
                        pass
        finally:
            del self._running[identity.id]
            if unpaid != Usage():  # it was stopped in the middle of an answer
                self._spend(model, unpaid)
            await run.aclose()
        assert ended is not None
        tokens = sum(spent.input_tokens + spent.output_tokens for spent in ended.spent.values())
        problem = (ended.problem or ended.why.value.replace("_", " ")) if ended.is_error else ""
        return AgentReport(identity.id, ended.text, calls, tokens, ended.seconds, problem)

    def stop(self, agent_id: str) -> bool:
        """Have a sub-agent stop; False = there is none of that id at work."""
        run = self._running.get(agent_id)
        if run is not None:
            run.interrupt()
        return run is not None

    def _agent(
        self,
        definition: AgentDefinition,
        task: AgentTask,
        identity: AgentIdentity,
        ctx: ToolContext,
        kept: OpenTranscript | None,
    ) -> Agent:
        from handrail.permissions.modes import narrow_mode  # noqa: PLC0415  # no first request waits for it

        caller = self._caller()
        model = next((name for name in (task.model, definition.model) if name and name not in ALIASES), caller.model)

        def denied(name: str, _mcp: object) -> bool:
            return not definition.may_use(name) or caller.tools.find(name) is None

        return Agent(
            caller.asked_model,
            model_name=model,
            system_prompt=definition.prompt,
            cwd=ctx.cwd,
            rails=replace(caller.rails, hooks=None),
            hooks=self._hooks,
            denied=denied,
            mode=narrow_mode(ctx.permissions.mode, definition.mode),
            limits=Limits(turns=definition.max_turns),
            chain=Chain(caller.chain.id, caller.chain.depth + 1),
            identity=identity,
            session=kept,
            options=replace(caller.context.options, agents=tuple),
            mcp=tuple(tool for tool in caller.tools if tool.mcp),
            **self._options,
        )
