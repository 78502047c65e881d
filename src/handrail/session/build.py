"""
Opens a session from a specification: each part is made by a function that takes what it needs.

    settings -> transcript -> hooks -> model -> tools -> agents -> conversation -> session

The gate is opened with the first call that needs it.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from handrail.config.execution import agent_settings, run_features, scheduling_of
from handrail.dispatch.call_hooks import CallHooks
from handrail.dispatch.gate import Gate, Rails
from handrail.dispatch.results import ResultStore
from handrail.hooks.runner import Hooks
from handrail.lazy import lazy, once
from handrail.loop.conversation_state import new_chain
from handrail.session.agents.records import AgentRecords
from handrail.session.agents.state import AgentHost
from handrail.session.agents.subagents import Subagents
from handrail.session.build_parts import (
    ServiceParts,
    choose_deferral,
    open_context,
    open_definitions,
    open_live,
    open_no_servers,
    open_own_servers,
    open_results,
    open_servers,
    open_services,
    open_session_hooks,
    open_system_prompt,
    open_telemetry,
    run_options,
)
from handrail.session.conversation import Conversation
from handrail.session.foundation import Foundation, foundation_of_next, lay_foundation
from handrail.session.models.classifier import ModelClassifier
from handrail.session.models.compactor import SessionCompactor
from handrail.session.parts import ConversationSpec, SharedParts, open_conversation
from handrail.session.scratch import ScratchFolder
from handrail.session.session import Session
from handrail.session.skills.output_style import StyleNotes
from handrail.session.spec import NO_HOST, SessionHost, SessionSpec
from handrail.session.tools import unwanted_tools
from handrail.tools.pool import DenyFilter
from handrail.transcripts.rebuild import RebuiltTranscript
from handrail.transcripts.store import OpenTranscript

if TYPE_CHECKING:
    from handrail.session import gate as gates
    from handrail.session import skill_use, structured_output, with_agent
    from handrail.session.agents import equipment as agent_equipment
    from handrail.session.live import questions as live_questions
    from handrail.session.servers import parts as server_parts
    from handrail.session.servers import servers as mcp_servers
else:
    agent_equipment = lazy("handrail.session.agents.equipment")
    gates = lazy("handrail.session.gate")
    live_questions = lazy("handrail.session.live.questions")
    server_parts = lazy("handrail.session.servers.parts")
    skill_use = lazy("handrail.session.skill_use")
    structured_output = lazy("handrail.session.structured_output")
    with_agent = lazy("handrail.session.with_agent")


def open_session(spec: SessionSpec, env: Mapping[str, str] | None = None, host: SessionHost = NO_HOST) -> Session:
    """A session that is ready for its first prompt, connected to nothing yet; HandrailError if it cannot be had."""
    session = _open_parts(lay_foundation(spec, env, host))
    session.connect_parts()
    return session


def _open_parts(base: Foundation) -> Session:
    try:
        return _make_parts(base)
    except BaseException:
        if base.transcript is not None:
            base.transcript.writer.close()
        raise


def _make_parts(base: Foundation) -> Session:
    spec, host, settings, transcript = base.spec, base.host, base.settings, base.transcript
    model = base.models
    hooks = open_session_hooks(base)
    context = open_context(base, hooks, spec.cwd, asks_git=True) if spec.prompt.context else None
    scratch = None if spec.keep_files else ScratchFolder(base.env)
    results = open_results(base, scratch)
    style = StyleNotes(spec.cwd, settings, base.skills.plugin_folders)
    if problem := style.problem():
        host.on_warning(problem)
    tools = open_services(base, hooks, context, scratch)
    live, telemetry = open_live(base), open_telemetry(base)

    def server_doors() -> "server_parts.SessionDoors":
        return server_parts.SessionDoors(hooks, results.folder, tools.services, lambda: conversation.state.context)

    servers = open_servers(base, server_doors)

    def open_late_servers() -> "mcp_servers.Servers":
        nonlocal servers
        servers = servers or open_no_servers(base, server_doors)
        return servers

    wanted, automatic = spec.auto_compact, settings.loaded.settings.get("autoCompactEnabled") is not False
    compactor = SessionCompactor(
        model.current,
        results.folder,
        automatic=automatic if wanted is None else wanted,
        window=model.facts.window,
    )
    parts = SharedParts(
        settings=settings,
        model=model.current,
        rails=Rails(
            partial(_open_gate, base, hooks, tools=tools, results=results, live=live),
            CallHooks(hooks),
            telemetry,
            host.places,
        ),
        hooks=hooks,
        results=results,
        scheduling=host.scheduling or scheduling_of(settings.loaded.settings, base.env, spec.early_start),
        features=run_features(settings.loaded.settings, base.env, model.search),
        compact=compactor,
        custom_tools=spec.tools.custom,
        skills=base.skills,
        style=style,
        language_servers=tools.language_servers,
        can_defer=not spec.interactive,
        can_ask=host.handler is not None or host.can_use_tool is not None or live is not None,
        observer=telemetry,
    )

    def equipment_doors() -> "agent_equipment.EquipmentDoors":
        return agent_equipment.EquipmentDoors(
            settings,
            hooks,
            base.skills,
            lambda own: open_own_servers(base, server_doors, own),
            lambda: servers.offered if servers else (),
            lambda: servers.offers if servers else None,
        )

    chain = new_chain(base.session_id)
    deferral = choose_deferral(base, model.facts.window(model.current.chosen.name))
    agents = Subagents(
        open_definitions(base),
        parts,
        AgentHost(
            settings=lambda: agent_settings(settings.loaded.settings),
            services=tools.services,
            chain=chain,
            deferral=deferral,
            records=AgentRecords(transcript.path.with_suffix("") / "subagents" if transcript else None),
            open_transcript=partial(_open_agent_transcript, base),
            mcp_tools=lambda: servers.offered if servers else (),
            tells_ends=host.stays,
            context=partial(open_context, base, hooks, asks_git=False) if spec.prompt.context else None,
            equipment=equipment_doors,
        ),
    )
    conversation = _open_main(
        base,
        parts,
        ConversationSpec(
            cwd=spec.cwd,
            model=model.current.chosen,
            system=open_system_prompt(spec.prompt, style, interactive=spec.interactive),
            services=once(lambda: replace(tools.services(), delegate=agents)),
            options=run_options(base, agents, lambda: servers),
            chain=chain,
            denied=_denied_tools(base),
            deferral=deferral,
            identity=spec.identity,
            request=spec.request,
            context=context,
            transcript=transcript,
            history=base.kept.messages if isinstance(base.kept, RebuiltTranscript) else host.history,
        ),
        tools,
    )
    lead = spec.lead
    return Session(
        spec=spec,
        settings=settings,
        redactor=base.redactor,
        transcript=transcript,
        id=base.session_id,
        model=model.current,
        model_facts=model.facts,
        choose_model=model.choose,
        services=tools.services,
        hooks=hooks,
        context=context,
        agents=agents,
        skills=base.skills,
        style=style,
        servers=servers,
        language_servers=tools.language_servers,
        schedules=tools.schedules,
        conversation=conversation,
        auto_compact=compactor.automatic,
        on_warning=host.on_warning,
        open_servers=open_late_servers,
        open_next=lambda: _open_parts(foundation_of_next(base)),
        scratch=scratch,
        worktrees=tools.worktrees,
        equipment=with_agent.lead_equipment(lead, equipment_doors()) if lead and lead.needs_equipment else None,
        live=live,
        telemetry=telemetry,
    )


def _open_gate(
    base: Foundation,
    hooks: Hooks,
    *,
    tools: ServiceParts,
    results: ResultStore,
    live: "live_questions.LiveQuestions | None",
) -> Gate:
    if base.host.gate is not None:
        return base.host.gate
    services = tools.services()
    return gates.open_gate(
        base.settings,
        can_use_tool=base.host.can_use_tool,
        handler=base.host.handler,
        hooks=CallHooks(hooks),
        classifier=ModelClassifier(base.models.current),
        redactor=base.redactor,
        readable=(results.folder, services.state, *filter(None, (hooks.environment.folder,))),
        plan_file=services.plan_file,
        session_id=base.session_id,
        origin=base.spec.origin,
        keep_audit=base.spec.keep_files,
        with_live=partial(live_questions.LiveHandler, live) if live else None,
    )


def _denied_tools(base: Foundation) -> DenyFilter:
    settings, lead = base.settings, base.spec.lead
    unwanted = unwanted_tools(base.spec.tools.builtin)
    return lambda name, mcp: (
        name in unwanted
        or settings.denies_tool(name, mcp)
        or (lead is not None and with_agent.leaves_out(lead, name, mcp))
    )


def _open_agent_transcript(base: Foundation, agent_id: str) -> OpenTranscript | None:
    beside = base.transcript
    return base.store.open_subagent(beside.path, agent_id, str(base.spec.cwd)) if beside else None


def _open_main(base: Foundation, parts: SharedParts, wanted: ConversationSpec, tools: ServiceParts) -> Conversation:
    """The conversation with the person or program, and what only it has."""
    spec, skills = base.spec, base.skills
    # the validator costs start-up time that only its users pay
    output = None if spec.output is None else structured_output.open_structured(spec.output, parts.model)
    if output is not None:
        wanted = replace(wanted, structured=output[0], own_tools=(output[1],))
    conversation = open_conversation(parts, wanted, spec.limits)
    conversation.config = replace(
        conversation.config,
        choose_answer=base.host.choose_answer,
        first_words=spec.prompt.first,
        session_crons=tools.schedules.own_facts,
    )
    skills.make_loader = lambda: skill_use.SkillLoader(
        lambda: skills.skills,
        base.settings,
        parts.hooks,
        wanted.services,
        conversation=lambda: conversation,
        session_id=base.session_id,
    )
    return conversation
