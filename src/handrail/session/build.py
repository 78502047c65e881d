"""
Opens a session: from a specification to living parts, each made by a function that takes what it needs.

    settings -> transcript -> hooks -> model -> tools -> agents -> conversation -> session

The gate is opened with the first call that needs it.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail import __version__
from handrail.agents.definitions import AgentDefinition
from handrail.builtin.services import ToolServices
from handrail.config.execution import agent_settings, result_limits, run_features, scheduling_of, search_choice
from handrail.conversation.redact import Redactor
from handrail.dispatch.call_hooks import CallHooks
from handrail.dispatch.gate import Gate, Rails
from handrail.dispatch.results import ResultStore
from handrail.errors import HandrailError
from handrail.extensions.places import config_folders
from handrail.hooks.runner import Hooks
from handrail.lazy import lazy
from handrail.loop.conversation_state import new_chain
from handrail.loop.prompt import system_parts, system_prompt
from handrail.providers.choose import ModelOptions
from handrail.providers.model_aliases import alias_note
from handrail.records import record
from handrail.session.agent_definitions import session_agents
from handrail.session.agent_records import AgentRecords
from handrail.session.agent_state import AgentHost
from handrail.session.caller_names import caller_names
from handrail.session.classifier import ModelClassifier
from handrail.session.compactor import SessionCompactor
from handrail.session.context import SessionContext
from handrail.session.hooks import env_file, follow_settings, object_to_task, open_hooks
from handrail.session.language_servers import SessionLanguageServers
from handrail.session.model_facts import ModelFacts, model_facts
from handrail.session.model_options import model_options, thinking_options, with_family
from handrail.session.models import (
    ChosenModel,
    SessionModel,
    Tape,
    choose_model,
    cost_for,
    is_taped,
    model_by_object,
    searches_itself,
)
from handrail.session.output_style import StyleNotes
from handrail.session.parts import ConversationSpec, SharedParts, open_conversation
from handrail.session.redactor import redactor_for
from handrail.session.schedules import SessionSchedules
from handrail.session.scratch import ScratchFolder
from handrail.session.session import Session
from handrail.session.session_settings import SessionSettings, open_settings
from handrail.session.skill_notes import SessionSkills
from handrail.session.spec import NO_HOST, PromptOptions, SessionHost, SessionSpec
from handrail.session.state_folder import result_store, session_store, state_folder
from handrail.session.subagents import Subagents
from handrail.session.tools import deferral_of, unwanted_tools
from handrail.session.transcript import mirror_folder, open_transcript
from handrail.tools.context import RunOptions
from handrail.tools.pool import Deferral
from handrail.transcripts.log import Durability, Mirror
from handrail.transcripts.rebuild import RebuiltTranscript
from handrail.transcripts.sdk_copy import SdkCopy
from handrail.transcripts.store import OpenTranscript, TranscriptStore
from handrail.transcripts.writer import new_id

if TYPE_CHECKING:
    from handrail.extensions import unsupported
    from handrail.session import (
        agent_equipment,
        live_questions,
        mcp_servers,
        page_reader,
        search,
        server_parts,
        server_setup,
        skill_use,
        structured_output,
        with_agent,
    )
    from handrail.session import gate as gates
    from handrail.session import plugins as session_plugins
    from handrail.session import services as session_services
    from handrail.session import worktrees as session_worktrees
    from handrail.telemetry import setup as telemetry_setup
    from handrail.telemetry.observer import SessionTelemetry
else:
    agent_equipment = lazy("handrail.session.agent_equipment")
    gates = lazy("handrail.session.gate")
    live_questions = lazy("handrail.session.live_questions")
    page_reader = lazy("handrail.session.page_reader")
    search = lazy("handrail.session.search")
    server_parts = lazy("handrail.session.server_parts")
    session_plugins = lazy("handrail.session.plugins")
    server_setup = lazy("handrail.session.server_setup")
    session_services = lazy("handrail.session.services")
    session_worktrees = lazy("handrail.session.worktrees")
    skill_use = lazy("handrail.session.skill_use")
    structured_output = lazy("handrail.session.structured_output")
    telemetry_setup = lazy("handrail.telemetry.setup")
    unsupported = lazy("handrail.extensions.unsupported")
    with_agent = lazy("handrail.session.with_agent")


def open_session(spec: SessionSpec, env: Mapping[str, str] | None = None, host: SessionHost = NO_HOST) -> Session:
    """A session that is ready for its first prompt, connected to nothing yet; HandrailError if it cannot be had."""
    if host.gate is not None and host.can_use_tool is not None:
        raise HandrailError("can_use_tool is asked by the gate that the settings make. Give either it or a gate.")
    start_env = os.environ if env is None else env
    family = ""
    state = state_folder(start_env)
    if spec.agent:
        spec, family = with_agent.with_named_agent(spec, start_env, state)
    names = caller_names(spec.tools.custom, host.hooks)
    settings = open_settings(spec.cwd, start_env, state, spec.flags, host.on_warning, names=names)
    skills = SessionSkills(spec.cwd, settings)
    skills.plugins = plugins = _plugins(spec, settings)
    for note in plugins.problems if plugins else ():
        host.on_warning(note)
    for note in found_notes(spec.cwd, settings, skills):
        host.on_warning(note)
    if not spec.replay and host.model is None:
        options = model_options(settings.loaded, spec.model)
        spec = replace(spec, model=with_family(options, family, settings.loaded.env) if family else options)
        if note := alias_note(spec.model.model):
            host.on_warning(note)
    spec = replace(spec, request=thinking_options(settings.loaded, spec.request))
    loaded = settings.loaded
    servers = {**loaded.settings.servers, **spec.tools.mcp_servers, **(plugins.servers() if plugins else {})}
    known = _with_secrets(loaded.env, plugins)
    redactor = redactor_for(known, tuple(loaded.settings.get("redact") or ()), servers, spec.model.api_key)
    durability: Durability = "power" if loaded.settings.get("durability") == "power" else "process"
    store = session_store(loaded.env, redactor, durability, _mirror(spec, start_env, settings, host))
    kept = open_transcript(spec.transcript, spec.cwd, store, loaded.env)
    try:
        models = _open_models(spec, host, settings, redactor)
        session = _open_parts(Foundation(spec, host, start_env, settings, redactor, store, kept, skills, models))
    except BaseException:
        if isinstance(kept, OpenTranscript):
            kept.writer.close()
        raise
    session.connect_parts()
    return session


def _plugins(spec: SessionSpec, settings: SessionSettings) -> "session_plugins.SessionPlugins | None":
    """The plugins of the session; None if none is wanted, or if nothing may widen."""
    wanted = spec.tools.plugins or settings.loaded.settings.get("enabledPlugins")
    return session_plugins.session_plugins(settings, spec.tools.plugins) if wanted and spec.flags.flags_widen else None


def _with_secrets(env: Mapping[str, str], plugins: "session_plugins.SessionPlugins | None") -> Mapping[str, str]:
    """The variables with the secrets of plugins, which must not reach a log either."""
    secrets = plugins.secrets if plugins else ()
    return {**env, **{f"PLUGIN_{number}_SECRET": text for number, text in enumerate(secrets)}} if secrets else env


def _mirror(spec: SessionSpec, env: Mapping[str, str], settings: SessionSettings, host: SessionHost) -> Mirror | None:
    """What gets every record of the transcript besides its file."""
    if host.mirror is not None or not spec.transcript.copied or settings.loaded.settings.get("sdkSessionCopy") is False:
        return host.mirror
    return SdkCopy(mirror_folder(spec.cwd, env), host.on_warning).add


def found_notes(cwd: Path, settings: SessionSettings, skills: SessionSkills) -> tuple[str, ...]:
    """What a person should know of the folders for extensions: what in them has no effect."""
    env = settings.loaded.env
    folders = config_folders(cwd, env, settings.flags.instruction_sources)
    if not folders and not skills.problems:
        return ()
    return unsupported.start_notes((*unsupported.extension_notes(folders), *skills.problems))


@record
class ModelParts:
    """The model that a session asks, what is known of models, and how another one is chosen by its name."""

    asked: SessionModel
    facts: ModelFacts
    choose: Callable[[str], ChosenModel]


def _open_models(spec: SessionSpec, host: SessionHost, settings: SessionSettings, redactor: Redactor) -> ModelParts:
    env = settings.loaded.env
    tape = Tape(spec.cwd, spec.record, spec.replay, spec.replay_match, redactor, host.on_warning)
    facts = model_facts(settings.loaded.settings, env)

    def choose(name: str) -> ChosenModel:
        options = replace(spec.model, model=name or spec.model.model)
        chosen = _choose_model(options, env, tape, host)
        return replace(chosen, cost=cost_for(chosen.name, facts.price))

    return ModelParts(SessionModel(choose("")), facts, choose)


@record
class Foundation:
    """What is opened first, and what all other parts stand on."""

    spec: SessionSpec
    host: SessionHost
    start_env: Mapping[str, str]
    settings: SessionSettings
    redactor: Redactor
    store: TranscriptStore
    kept: OpenTranscript | RebuiltTranscript | None
    skills: SessionSkills
    models: ModelParts


def _open_next(base: Foundation) -> Session:
    """Another session on the same foundation, in which nothing was said yet; SessionError if it cannot be kept."""
    settings, skills = base.settings, SessionSkills(base.spec.cwd, base.settings)
    skills.plugins = base.skills.plugins
    options = base.spec.transcript.for_next()
    kept = open_transcript(options, base.spec.cwd, base.store, settings.loaded.env)
    settings.on_change.clear()  # those who listened belong to the session before
    host = replace(base.host, history=())
    return _open_parts(replace(base, spec=replace(base.spec, transcript=options), host=host, kept=kept, skills=skills))


def _open_live(base: Foundation, session_id: str) -> "live_questions.LiveQuestions | None":
    """Its questions for pages that show them, where that is asked for."""
    env = base.settings.loaded.env
    if base.host.gate is not None or not (base.spec.live or env.get("HANDRAIL_LIVE") == "1"):
        return None
    return live_questions.LiveQuestions(state_folder(env), session_id, base.host.on_warning)


def _open_parts(base: Foundation) -> Session:
    spec, host, settings, kept, redactor = base.spec, base.host, base.settings, base.kept, base.redactor
    env, loaded = settings.loaded.env, settings.loaded
    transcript = kept if isinstance(kept, OpenTranscript) else None
    session_id = transcript.writer.session_id if transcript else spec.transcript.session_id or new_id()
    hooks = _open_hooks(base, transcript, session_id)
    plugins = base.skills.plugins
    call_hooks = CallHooks(hooks)
    excludes, sources = loaded.settings.get("claudeMdExcludes") or (), spec.flags.instruction_sources
    context = SessionContext(spec.cwd, env, sources, hooks, excludes=excludes) if spec.prompt.context else None
    model, facts, choose = base.models.asked, base.models.facts, base.models.choose
    scratch = None if spec.keep_files else ScratchFolder(env)
    results = _open_results(settings, transcript, scratch)
    by_name = is_taped(model.chosen.model)
    search_service = search_choice(loaded.settings, env, by_provider=searches_itself(model.chosen))
    skills, style = base.skills, StyleNotes(spec.cwd, settings, plugins)
    if problem := style.problem():
        host.on_warning(problem)

    language_servers = SessionLanguageServers(
        settings,
        lambda: own_services(),  # noqa: PLW0108  # it is made below
        {**(plugins.language_servers() if plugins else {}), **spec.tools.lsp_servers},
        host.on_warning,
    )

    schedules = SessionSchedules(
        str(spec.cwd),
        state_folder(base.start_env) / "schedules.json" if spec.keep_files else None,
        lambda: settings.loaded.env,
        stays=host.stays,
    )

    @cache
    def own_services() -> ToolServices:
        services = _open_services(settings, session_id, hooks, scratch, sorts_by_name=by_name)
        return replace(
            services,
            skills=skills,
            worktrees=worktrees,
            language_servers=language_servers,
            schedules=schedules,
            object_to_task=partial(object_to_task, hooks),
            page_reader=page_reader.open_page_reader(loaded.settings.get("webFetch", "model") or "", model, choose),
            search=search.open_search(search_service, env, model) if search_service else None,
        )

    @cache
    def worktrees() -> "session_worktrees.SessionWorktrees":
        return session_worktrees.SessionWorktrees(settings, own_services, hooks, context)

    live = _open_live(base, session_id)

    def open_gate() -> Gate:
        return host.gate or gates.open_gate(
            settings,
            can_use_tool=host.can_use_tool,
            handler=host.handler,
            hooks=call_hooks,
            classifier=ModelClassifier(model),
            redactor=redactor,
            readable=(results.folder, own_services().state, *filter(None, (hooks.environment.folder,))),
            plan_file=own_services().plan_file,
            session_id=session_id,
            keep_audit=spec.keep_files,
            with_live=partial(live_questions.LiveHandler, live) if live else None,
        )

    def open_beside(agent_id: str) -> OpenTranscript | None:
        return base.store.open_subagent(transcript.path, agent_id, str(spec.cwd)) if transcript else None

    def agent_context(folder: Path) -> SessionContext:
        return SessionContext(folder, env, sources, hooks, excludes=excludes, asks_git=False)

    automatic = (
        loaded.settings.get("autoCompactEnabled") is not False if spec.auto_compact is None else spec.auto_compact
    )

    def server_doors() -> "server_parts.SessionDoors":
        return server_parts.SessionDoors(hooks, results.folder, own_services, lambda: conversation.state.context)

    servers = _open_servers(spec, host, settings, server_doors, plugins)
    telemetry = _open_telemetry(base, session_id)
    parts = SharedParts(
        settings=settings,
        model=model,
        rails=Rails(open_gate, call_hooks, telemetry),
        hooks=hooks,
        results=results,
        scheduling=host.scheduling or scheduling_of(loaded.settings, env, spec.early_start),
        features=run_features(loaded.settings, env, search_service),
        compact=SessionCompactor(model, results.folder, automatic=automatic, window=facts.window),
        custom_tools=spec.tools.custom,
        skills=skills,
        style=style,
        language_servers=language_servers,
        can_defer=not spec.interactive,
        can_ask=host.handler is not None or host.can_use_tool is not None or live is not None,
        observer=telemetry,
    )

    def equipment_doors() -> "agent_equipment.EquipmentDoors":
        return agent_equipment.EquipmentDoors(
            settings,
            hooks,
            skills,
            lambda own: _open_own_servers(spec, host, settings, server_doors, own),
            lambda: servers.offered if servers else (),
        )

    chain = new_chain(session_id)
    deferral = spec.tools.deferral or _deferral(spec, settings, facts.window(model.chosen.name))
    agents = Subagents(
        cache(partial(_find_agents, base)),
        parts,
        AgentHost(
            settings=lambda: agent_settings(settings.loaded.settings),
            services=own_services,
            chain=chain,
            deferral=deferral,
            records=AgentRecords(transcript.path.with_suffix("") / "subagents" if transcript else None),
            open_transcript=open_beside,
            mcp_tools=lambda: servers.offered if servers else (),
            tells_ends=host.stays,
            context=agent_context if spec.prompt.context else None,
            equipment=equipment_doors,
        ),
    )
    lead = spec.lead
    unwanted = unwanted_tools(spec.tools.builtin)
    # the validator costs start-up time that only its users pay
    structured = None if spec.output is None else structured_output.open_structured(spec.output, model)
    services = cache(lambda: replace(own_services(), delegate=agents))
    conversation = open_conversation(
        parts,
        ConversationSpec(
            cwd=spec.cwd,
            model=model.chosen,
            system=_system_prompt(spec.prompt, style, interactive=spec.interactive),
            services=services,
            options=_run_options(spec, skills, agents, servers),
            chain=chain,
            denied=lambda name, mcp: (
                name in unwanted
                or settings.denies_tool(name, mcp)
                or (lead is not None and with_agent.leaves_out(lead, name, mcp))
            ),
            deferral=deferral,
            identity=spec.identity,
            request=spec.request,
            context=context,
            transcript=transcript,
            history=kept.messages if isinstance(kept, RebuiltTranscript) else host.history,
            structured=structured[0] if structured else None,
            own_tools=(structured[1],) if structured else (),
        ),
        spec.limits,
    )
    conversation.config = replace(
        conversation.config,
        choose_answer=host.choose_answer,
        first_words=spec.prompt.first,
        session_crons=schedules.own_facts,
    )
    skills.make_loader = lambda: skill_use.SkillLoader(
        lambda: skills.skills, settings, hooks, services, conversation=lambda: conversation, session_id=session_id
    )
    return Session(
        spec=spec,
        settings=settings,
        redactor=redactor,
        transcript=transcript,
        id=session_id,
        model=model,
        model_facts=facts,
        choose_model=choose,
        services=own_services,
        hooks=hooks,
        context=context,
        agents=agents,
        skills=skills,
        style=style,
        servers=servers,
        language_servers=language_servers,
        schedules=schedules,
        conversation=conversation,
        auto_compact=automatic,
        on_warning=host.on_warning,
        open_next=partial(_open_next, base),
        scratch=scratch,
        worktrees=worktrees,
        equipment=with_agent.lead_equipment(lead, equipment_doors()) if lead and lead.needs_equipment else None,
        live=live,
        telemetry=telemetry,
    )


def _open_telemetry(base: Foundation, session_id: str) -> "SessionTelemetry | None":
    """What sends spans and metrics. Only variables of the process count: no project may say where they go."""
    env = base.start_env
    if not any(name.startswith("OTEL_") for name in env):
        return None
    provider = base.spec.model.provider
    return telemetry_setup.open_telemetry(
        env, base.redactor, base.host.on_warning, version=__version__, session_id=session_id, provider=provider
    )


def _open_hooks(base: Foundation, transcript: OpenTranscript | None, session_id: str) -> Hooks:
    spec, host, settings, plugins = base.spec, base.host, base.settings, base.skills.plugins
    hooks = open_hooks(
        settings.loaded,
        spec.cwd,
        host.hooks,
        session_id=session_id,
        transcript=str(transcript.path) if transcript else "",
    )
    if plugins is not None:
        plugins.add_hooks(hooks, settings)
    hooks.mode = str if host.gate else lambda: settings.mode
    hooks.on_title = transcript.writer.set_title if transcript else str
    follow_settings(hooks, settings, host.on_warning)
    return hooks


def _choose_model(options: ModelOptions, env: Mapping[str, str], tape: Tape, host: SessionHost) -> ChosenModel:
    if host.model is not None:
        return model_by_object(host.model, options.model)
    return choose_model(options, env, tape)


def _open_results(
    settings: SessionSettings, transcript: OpenTranscript | None, scratch: ScratchFolder | None
) -> ResultStore:
    """Big results lie beside the transcript, so that they can still be read when it is resumed."""
    env = settings.loaded.env
    limits = result_limits(settings.loaded.settings, env)
    if scratch is not None:
        return ResultStore(scratch.path / "results" / "run", limits)
    if transcript is None:
        return result_store(env, limits)
    return ResultStore(transcript.path.with_suffix("") / "tool-results", limits)


def _open_services(
    settings: SessionSettings, session_id: str, hooks: Hooks, scratch: ScratchFolder | None, *, sorts_by_name: bool
) -> ToolServices:
    folder = None if scratch is None else scratch.path / "run"
    services = replace(session_services.tool_services(settings, session_id, folder), sorts_by_name=sorts_by_name)
    if (file := env_file(hooks)) is None:
        return services
    # what hooks of the session's start set for later commands reaches these through a file
    return replace(services, env={**services.env, "CLAUDE_ENV_FILE": str(file)})


def _open_servers(
    spec: SessionSpec,
    host: SessionHost,
    settings: SessionSettings,
    doors: "Callable[[], server_parts.SessionDoors]",
    plugins: "session_plugins.SessionPlugins | None",
) -> "mcp_servers.Servers | None":
    found = settings.loaded.settings
    of_plugins = plugins.servers() if plugins else {}
    given = spec.tools.mcp_servers if spec.flags.flags_widen else {}
    others = {} if spec.tools.strict_mcp else found.servers
    if any(each.scope == "policy" for each in found.written_servers):  # then there are no others
        given, others, of_plugins = {}, found.servers, {}
    if not given and not others and not of_plugins:
        return None
    return server_setup.open_servers(spec, host, settings, doors(), given=given, others=others, of_plugins=of_plugins)


def _open_own_servers(
    spec: SessionSpec,
    host: SessionHost,
    settings: SessionSettings,
    doors: "Callable[[], server_parts.SessionDoors]",
    own: Mapping[str, Any],
) -> "mcp_servers.Servers | None":
    """The servers that an agent brings along; None if the policy names the only ones."""
    if any(each.scope == "policy" for each in settings.loaded.settings.written_servers) or not spec.flags.flags_widen:
        return None
    return server_setup.open_servers(spec, host, settings, doors(), given=own, others={})


def _deferral(spec: SessionSpec, settings: SessionSettings, window: int) -> Deferral:
    otherwise = Deferral(spec.tools.defer or ("auto" if spec.tools.custom else "on"))
    return deferral_of(settings.loaded.env, otherwise, settings.loaded.settings, window)


def _find_agents(base: Foundation) -> Mapping[str, AgentDefinition]:
    plugins = base.skills.plugins
    folders = plugins.folders() if plugins else ()
    agents, problems = session_agents(base.spec.cwd, base.start_env, base.spec.tools.agents, base.settings, folders)
    for problem in problems:
        base.host.on_warning(problem)
    return agents


def _run_options(
    spec: SessionSpec, skills: SessionSkills, agents: Subagents, servers: "mcp_servers.Servers | None"
) -> RunOptions:
    """What tools may know of the session."""

    def commands() -> dict[str, str]:
        return {name: each.description for name, each in skills.all().items()}

    return RunOptions(
        interactive=spec.interactive,
        debug=spec.debug,
        verbose=spec.verbose,
        commands=commands,
        agents=agents.types,
        mcp_servers=lambda: servers.by_status() if servers else {},
        mcp_resources=lambda: servers.resources() if servers else {},
    )


def _system_prompt(prompt: PromptOptions, style: StyleNotes, *, interactive: bool) -> tuple[str, ...]:
    if prompt.system == "":
        return (prompt.append,) if prompt.append else ()
    parts = system_parts(replacement=prompt.system or "", addition=prompt.append, interactive=interactive)
    chosen = style.chosen_style()
    leaves_out = chosen is not None and not chosen.keeps_work
    return system_prompt(part for part in parts if part.name != "work") if leaves_out else system_prompt(parts)
