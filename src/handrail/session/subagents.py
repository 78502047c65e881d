"""Sub-agents of a session: runs of the loop inside a run, with a conversation and a memory of files of their own."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from handrail.agents.definitions import (
    BUILT_IN,
    AgentDefinition,
    is_built_in,
    parse_definition,
    parse_json,
    unused_fields,
)
from handrail.builtin.services import ToolServices
from handrail.config.snapshot import TRUSTED
from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.request import Chain
from handrail.conversation.stream import MessageStart, Usage, UsageUpdate
from handrail.extensions.definition_files import DefinitionFile, read_definitions
from handrail.extensions.places import SOURCES, ConfigFolder, config_folders
from handrail.lazy import lazy
from handrail.loop.events import MessageComplete, RunEnded
from handrail.loop.limits import Limits
from handrail.session.conversation import Conversation
from handrail.session.drive import drive
from handrail.session.model_options import named_model
from handrail.session.models import model_by_object
from handrail.session.parts import ConversationSpec, SharedParts, open_conversation
from handrail.session.session_settings import SessionSettings
from handrail.session.tools import only_reads
from handrail.tools.context import AgentIdentity, AgentType, ToolContext
from handrail.tools.delegation import AgentNews, AgentReport, AgentTask
from handrail.tools.events import CallQueued
from handrail.tools.pool import NO_DEFERRAL, AnyTool, Deferral
from handrail.transcripts.store import OpenTranscript

if TYPE_CHECKING:
    from handrail.config import needs_trust
else:
    needs_trust = lazy("handrail.config.needs_trust")

OpenBeside: TypeAlias = Callable[[str], OpenTranscript | None]
"""Opens the transcript of a sub-agent, by its id; None = its words are not kept."""


def find_agents(
    cwd: Path,
    env: Mapping[str, str],
    given: Mapping[str, Any],
    sources: Collection[str] = SOURCES,
    may_replace: Callable[[DefinitionFile], bool] = lambda _file: False,
) -> tuple[dict[str, AgentDefinition], list[str]]:
    """
    All sub-agents that hold in a folder, by name, and why others do not. What a program gives goes before files.

    A project's file takes the place of a built-in agent only if `may_replace` says so.
    """
    found: dict[str, AgentDefinition] = {}
    problems: list[str] = []
    candidates = [parse_json(name, value, "--agents") for name, value in given.items()]
    for each in (*candidates, *_files(config_folders(cwd, env, sources), may_replace), *BUILT_IN):
        if isinstance(each, str):
            problems.append(each)
        else:
            found.setdefault(each.name, each)
    for agent in found.values():
        if wrong := agent.misspelt_limits() if agent.disallowed else {}:
            names, tools = ", ".join(map(repr, dict.fromkeys(wrong.values()))), ", ".join(wrong)
            problems.append(
                f"{agent.source}: the agent {agent.name!r} disallows {names}, which is no tool; it has no {tools}"
            )
    return found, problems


def is_trusted_agent(settings: SessionSettings, file: DefinitionFile) -> bool:
    """Whether a project's file may take the place of a built-in agent: it is what was trusted."""
    loaded = settings.loaded.settings
    items = needs_trust.agent_items((file,), settings.places.folders)
    return all(item in loaded.items and loaded.trust_by_folder.get(item.folder) == TRUSTED for item in items)


def _files(
    folders: Iterable[ConfigFolder], may_replace: Callable[[DefinitionFile], bool]
) -> Iterator[AgentDefinition | str]:
    for folder in folders:
        for file in read_definitions(folder, "agents"):
            if not isinstance(file, DefinitionFile):
                yield str(file)
                continue
            name = file.content.text("name")
            if file.source == "project" and is_built_in(name) and not may_replace(file):
                yield f"{file.shown}: it does not replace the built-in agent {name!r} before this folder is trusted"
                continue
            yield parse_definition(file.content, str(file.path))
            if fields := unused_fields(file.content):
                yield f"{file.shown}: no effect yet: {', '.join(fields)}"


class Subagents:
    """Runs the sub-agents of a session: same model, same rails, same files, another conversation."""

    def __init__(
        self,
        definitions: Callable[[], Mapping[str, AgentDefinition]],
        parts: SharedParts,
        services: Callable[[], ToolServices],
        chain: Chain,
        *,
        deferral: Deferral,
        mcp_tools: Callable[[], tuple[AnyTool, ...]],
        open_transcript: OpenBeside,
    ) -> None:
        self.definitions = definitions
        self._parts = parts
        self._services = services
        self._chain = chain
        self._deferral = deferral
        self._mcp_tools = mcp_tools
        self._open_transcript = open_transcript
        self._running: dict[str, Conversation] = {}

    def agent_types(self) -> dict[str, bool]:
        """Which types there are, and whether each only reads."""
        return {agent.name: agent.has_only(only_reads) for agent in self.definitions().values()}

    def types(self) -> tuple[AgentType, ...]:
        """The types of sub-agents, and what each is for."""
        return tuple(AgentType(agent.name, agent.description) for agent in self.definitions().values())

    async def work(self, task: AgentTask, ctx: ToolContext) -> AgentReport:
        """Let a sub-agent work on the task to its end."""
        definition = self.definitions()[task.kind]
        name = f"agent-{os.urandom(6).hex()}"
        transcript = self._open_transcript(name)
        identity = AgentIdentity(name, task.kind, definition.mode, str(transcript.path) if transcript else "")
        conversation = self._open(definition, task, identity, ctx, transcript)
        self._running[name] = conversation
        try:
            return await self._drive(conversation, task, ctx)
        finally:
            del self._running[name]
            if transcript is not None:
                transcript.writer.close()

    async def _drive(self, conversation: Conversation, task: AgentTask, ctx: ToolContext) -> AgentReport:
        agent_id, spend = conversation.state.context.agent.id, self._parts.model.add_usage
        calls, ended, model, unpaid = 0, None, conversation.config.model_name, Usage()
        ctx.abort.listen(lambda _reason: conversation.interrupt())
        try:
            async with aclosing(drive(conversation, UserMessage((Text(task.prompt),)))) as events:
                async for event in events:
                    ctx.progress(AgentNews(task.description, event=event, agent=agent_id))
                    match event:
                        case CallQueued():
                            calls += 1
                        case MessageStart():
                            model, unpaid = event.model or model, Usage()
                        case UsageUpdate(usage):
                            unpaid = usage
                        case MessageComplete(message=message, usage=usage):
                            spend(message.model, usage)
                            unpaid = Usage()
                        case RunEnded():
                            ended = event
                        case _:
                            pass
        finally:
            if unpaid != Usage():  # it was stopped in the middle of an answer
                spend(model, unpaid)
        assert ended is not None
        tokens = sum(spent.input_tokens + spent.output_tokens for spent in ended.spent.values())
        problem = (ended.problem or ended.why.value.replace("_", " ")) if ended.is_error else ""
        return AgentReport(agent_id, ended.text, calls, tokens, ended.seconds, problem)

    def stop(self, agent_id: str) -> bool:
        """Interrupt a sub-agent; False = none of that id is at work."""
        conversation = self._running.get(agent_id)
        if conversation is not None:
            conversation.interrupt()
        return conversation is not None

    def _open(
        self,
        definition: AgentDefinition,
        task: AgentTask,
        identity: AgentIdentity,
        ctx: ToolContext,
        transcript: OpenTranscript | None,
    ) -> Conversation:
        chosen = self._parts.model.chosen
        loaded = self._parts.settings.loaded
        wanted = task.model or definition.model or loaded.env.get("CLAUDE_CODE_SUBAGENT_MODEL", "")
        name = named_model(wanted, chosen.name, loaded)
        offered = frozenset(ctx.options.tools())

        spec = ConversationSpec(
            cwd=ctx.cwd,
            model=chosen if name == chosen.name else model_by_object(chosen.model, name),
            system=(definition.prompt,),
            services=self._services,
            options=replace(ctx.options, agents=tuple),
            chain=Chain(self._chain.id, self._chain.depth + 1),
            denied=lambda tool, _mcp: not definition.may_use(tool) or tool not in offered,
            # tools that a definition names are wanted in full
            deferral=self._deferral if definition.tools is None else NO_DEFERRAL,
            identity=identity,
            transcript=transcript,
            mcp_tools=self._mcp_tools(),
        )
        return open_conversation(self._parts, spec, Limits(turns=definition.max_turns))
