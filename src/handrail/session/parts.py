"""What the conversations of a session share, and how one of them is opened with it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from handrail.builtin.services import ToolServices
from handrail.conversation.messages import Attachment, Message
from handrail.conversation.request import Chain, History
from handrail.dispatch.gate import Rails
from handrail.dispatch.results import ResultStore
from handrail.dispatch.schedule import Scheduling
from handrail.files.memory import FileMemory
from handrail.hooks.runner import Hooks
from handrail.loop.compaction.plan import Compact
from handrail.loop.conversation_state import ConversationState
from handrail.loop.limits import NO_LIMITS, Limits
from handrail.loop.run_config import RequestOptions, RunConfig, RunObserver, StructuredOutput
from handrail.records import record
from handrail.session.background import mail_attachments, running_tasks, task_attachments
from handrail.session.context.session_context import SessionContext
from handrail.session.conversation import Conversation, resume_transcript
from handrail.session.language_servers import SessionLanguageServers
from handrail.session.models.choose import ChosenModel, SessionModel
from handrail.session.plan_mode import PlanReminder
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.skills.notes import SessionSkills, SkillNotes, lost_attachments
from handrail.session.skills.output_style import StyleNotes
from handrail.session.tools import LSP_TOOL, SKILL_TOOL, make_catalog
from handrail.tools.context import AgentIdentity, RunContext, RunOptions, StateStore
from handrail.tools.outcome import Outcome
from handrail.tools.pool import AnyTool, Deferral, DenyFilter, deny_nothing
from handrail.transcripts.store import OpenTranscript


@record
class SharedParts:
    """What all conversations of a session have in common."""

    settings: SessionSettings
    model: SessionModel
    rails: Rails
    hooks: Hooks
    results: ResultStore
    scheduling: Scheduling
    features: frozenset[str]
    compact: Compact | None
    custom_tools: tuple[AnyTool, ...]
    skills: SessionSkills | None = None
    style: StyleNotes | None = None
    language_servers: SessionLanguageServers | None = None
    can_defer: bool = True
    can_ask: bool = False
    observer: RunObserver | None = None
    state: StateStore = field(default_factory=StateStore)
    """The state of the session's tools."""
    at_work: set[str] = field(default_factory=set)
    """The ids of the sub-agents that work now."""


@record
class ConversationSpec:
    """What one conversation has of its own."""

    cwd: Path
    model: ChosenModel
    system: tuple[str, ...]
    services: Callable[[], ToolServices]
    options: RunOptions
    chain: Chain
    denied: DenyFilter = deny_nothing
    deferral: Deferral = Deferral()
    identity: AgentIdentity = AgentIdentity()
    request: RequestOptions = RequestOptions()
    context: SessionContext | None = None
    transcript: OpenTranscript | None = None
    history: Sequence[Message] = ()
    mcp_tools: tuple[AnyTool, ...] = ()
    structured: StructuredOutput | None = None
    files: FileMemory | None = None
    """What its agent has read before; None = nothing."""
    own_tools: tuple[AnyTool, ...] = ()
    """Tools that no other conversation of the session has."""


def open_conversation(parts: SharedParts, spec: ConversationSpec, limits: Limits = NO_LIMITS) -> Conversation:
    """A conversation with its tools and its history, ready for a first prompt."""
    settings, identity, transcript = parts.settings, spec.identity, spec.transcript
    can_ask = parts.can_ask and identity.is_main
    catalog = make_catalog(
        variables=settings.loaded.env,
        custom=(*parts.custom_tools, *spec.own_tools),
        deferral=spec.deferral,
        denied=spec.denied,
        planning=lambda: not can_ask and "plan" in (settings.mode, identity.mode),
        services=spec.services,
        features=parts.features,
        interactive=spec.options.interactive,
        can_ask=can_ask,
        mcp=spec.mcp_tools,
        offers={
            SKILL_TOOL: parts.skills.has_any if parts.skills else bool,
            LSP_TOOL: parts.language_servers.is_available if parts.language_servers else bool,
        },
        expects_servers=bool(spec.options.mcp_servers()),
    )
    notes = (
        SkillNotes(parts.skills, lambda: catalog.refresh().find_listed(SKILL_TOOL) is not None)
        if parts.skills
        else None
    )

    options = replace(
        spec.options,
        model=spec.model.name,
        thinking=spec.request.thinking.mode,
        tools=lambda: tuple(tool.name for tool in catalog.pool.listed),
        agents=lambda: () if catalog.pool.find_listed("Agent") is None else spec.options.agents(),
    )
    context = RunContext(
        spec.cwd,
        files=spec.files or FileMemory(),
        state=parts.state if identity.is_main else StateStore(parts.state.get()),
        session_state=parts.state,
        undo=lambda: spec.services().undo,
        policy=parts.rails.snapshot,
        agent=identity,
        options=options,
    )
    history = History(spec.history if transcript is None else transcript.messages)
    state = ConversationState(catalog, context, parts.results, history, chain=spec.chain)
    if transcript is not None:
        resume_transcript(state, transcript, settings.folders())
    resumed = transcript is not None and bool(transcript.messages)
    plan = PlanReminder(settings, spec.services) if can_ask else None
    config = RunConfig(
        model=spec.model.model,
        model_name=spec.model.name,
        system=spec.system,
        options=spec.request,
        rails=parts.rails,
        scheduling=parts.scheduling,
        limits=limits,
        cost=spec.model.cost,
        first_attachments=spec.context.first_attachments if spec.context else lambda _run: (),
        reattach=partial(lost_attachments, spec.services),
        attach=partial(_attachments, parts, spec, state, plan=plan, skills=notes, resumed=resumed),
        after_calls=parts.language_servers.after_calls if parts.language_servers else None,
        compact=parts.compact,
        side_usage=parts.model.take_usage if identity.is_main else tuple,
        agent_usage=parts.model.take_agent_usage if identity.is_main else tuple,
        hooks=parts.hooks,
        can_defer=parts.can_defer,
        background_tasks=partial(running_tasks, spec.services),
        observer=parts.observer,
        structured=spec.structured,
    )
    return Conversation(config, state, parts.hooks)


def _attachments(
    parts: SharedParts,
    spec: ConversationSpec,
    state: ConversationState,
    outcomes: Sequence[Outcome],
    run: RunContext,
    *,
    plan: PlanReminder | None,
    skills: SkillNotes | None,
    resumed: bool,
) -> Iterable[Attachment]:
    if spec.context is not None:
        yield from spec.context.attachments(outcomes, run)
    if plan is not None:
        yield from plan.attachments()
    if parts.style is not None and spec.identity.is_main and not outcomes:
        yield from parts.style.attachments(run.history)
    if skills is not None:
        yield from skills.attachments(outcomes, run)
    agent, history = spec.identity.id, state.history.messages
    yield from task_attachments(spec.services, partial(hears_of, parts, agent), history, resumed=resumed)
    yield from mail_attachments(spec.services, agent, history, resumed=resumed)


def hears_of(parts: SharedParts, agent: str, owner: str) -> bool:
    """Whether an agent is told of the end of background work: its own; the main one also of agents that have ended."""
    return owner == agent or (agent == "main" and owner not in parts.at_work)
