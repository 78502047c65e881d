"""Opens agents as `Agent(...)` does, with parts of the test's own: a gate, a schedule, attachments, a transcript."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from handrail import Agent, Limits
from handrail.config.flags import SettingsFlags
from handrail.conversation.messages import Attachment, Message
from handrail.conversation.request import Chain
from handrail.dispatch.approval.sdk import CanUseTool
from handrail.dispatch.gate import Gate
from handrail.dispatch.schedule import Scheduling
from handrail.loop.compaction.plan import Compact
from handrail.loop.limits import NO_LIMITS
from handrail.loop.run_config import ChooseAnswer, RequestOptions
from handrail.session.agent import SELDOM_DEFERRED, SYSTEM_PROMPT
from handrail.session.arguments import (
    check_builtin_tools,
    check_hooks,
    check_output,
    check_tools,
    split_model,
)
from handrail.session.conversation import resume_transcript
from handrail.session.spec import NOT_KEPT, PromptOptions, SessionHost, SessionSpec, ToolOptions
from handrail.session.transcript import TranscriptOptions
from handrail.tools.context import AgentIdentity
from handrail.tools.outcome import Outcome
from handrail.tools.pool import AnyTool, Deferral
from handrail.transcripts.store import OpenTranscript

NO_FILES = SettingsFlags(sources=(), managed_policy=False)
"""No settings file counts, as in an agent of the library."""


def open_agent(
    model: Any = None,
    tools: Iterable[AnyTool] = (),
    *,
    system_prompt: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    model_name: str = "",
    builtin_tools: bool | Iterable[str] = True,
    deferral: Deferral | None = None,
    agents: Mapping[str, Any] | None = None,
    flags: SettingsFlags = NO_FILES,
    can_use_tool: CanUseTool | None = None,
    gate: Gate | None = None,
    hooks: Any = None,
    output: Any = None,
    limits: Limits = NO_LIMITS,
    request: RequestOptions = RequestOptions(),  # noqa: B008  # frozen
    scheduling: Scheduling | None = None,
    choose_answer: ChooseAnswer | None = None,
    identity: AgentIdentity = AgentIdentity(),  # noqa: B008  # frozen
    interactive: bool = False,
    history: Sequence[Message] = (),
    transcript: TranscriptOptions = NOT_KEPT,
) -> Agent[Any]:
    """An agent of the library, with what only `Agent.from_spec` takes."""
    options, own_model = split_model(model)
    custom = check_tools(tools)
    spec = SessionSpec(
        cwd=cwd or Path.cwd(),
        model=replace(options, model=model_name or options.model),
        request=request,
        limits=limits,
        prompt=PromptOptions(SYSTEM_PROMPT if system_prompt is None else system_prompt, context=False),
        tools=ToolOptions(custom, check_builtin_tools(builtin_tools), deferral or SELDOM_DEFERRED, agents=agents or {}),
        flags=flags,
        transcript=transcript,
        output=check_output(output),
        identity=identity,
        interactive=interactive,
        auto_compact=True,
    )
    host = SessionHost(
        can_use_tool=can_use_tool,
        hooks=check_hooks(hooks or {}),
        model=own_model,
        gate=gate,
        scheduling=scheduling,
        choose_answer=choose_answer,
        history=history,
    )
    return Agent.from_spec(spec, env, host)


def with_compaction(agent: Agent[Any], compact: Compact | None) -> Agent[Any]:
    """The agent, compacting its conversation in this way, or never."""
    conversation = agent.session.conversation
    conversation.config = replace(conversation.config, compact=compact)
    return agent


def with_attachments(
    agent: Agent[Any],
    attach: Callable[[Sequence[Outcome]], Iterable[Attachment]],
    first: Callable[[], Iterable[Attachment]],
) -> Agent[Any]:
    """The agent, which adds these to each turn of the user, and before the first prompt."""
    conversation = agent.session.conversation
    others = conversation.config.attach
    conversation.config = replace(
        conversation.config,
        attach=lambda outcomes, run: (*attach(outcomes), *others(outcomes, run)),
        first_attachments=lambda _run: first(),
    )
    return agent


def with_transcript(agent: Agent[Any], opened: OpenTranscript) -> Agent[Any]:
    """The agent, which keeps its conversation in this transcript. The test closes it."""
    resume_transcript(agent.session.conversation.state, opened, agent.session.settings.folders())
    return agent


def with_chain(agent: Agent[Any], chain: Chain) -> Agent[Any]:
    """The agent, whose requests belong to this chain."""
    agent.session.conversation.state.chain = chain
    return agent
