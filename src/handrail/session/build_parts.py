"""Makes the parts of a session, each from its foundation and the parts before it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail import __version__
from handrail.builtin.services import ToolServices
from handrail.config.execution import result_limits
from handrail.dispatch.results import ResultStore
from handrail.extensions.places import ConfigFolder, config_folders
from handrail.hooks.runner import Hooks
from handrail.lazy import lazy, once
from handrail.loop.prompt import system_parts, system_prompt
from handrail.records import record
from handrail.session.agents.definitions import LiveDefinitions, session_agents
from handrail.session.agents.subagents import Subagents
from handrail.session.context.session_context import SessionContext
from handrail.session.foundation import Foundation
from handrail.session.hooks import env_file, follow_settings, object_to_task, open_hooks
from handrail.session.language_servers import SessionLanguageServers
from handrail.session.models.choose import (
    is_taped,
)
from handrail.session.schedules import SessionSchedules
from handrail.session.scratch import ScratchFolder
from handrail.session.skills.output_style import StyleNotes
from handrail.session.spec import PromptOptions
from handrail.session.state_folder import result_store, state_folder
from handrail.session.tools import deferral_of
from handrail.tools.context import RunOptions
from handrail.tools.pool import Deferral

if TYPE_CHECKING:
    from handrail.session import services as session_services
    from handrail.session import worktrees as session_worktrees
    from handrail.session.live import questions as live_questions
    from handrail.session.servers import servers as mcp_servers
    from handrail.session.servers import setup as server_setup
    from handrail.session.servers.parts import SessionDoors
    from handrail.session.web import page_reader, search
    from handrail.telemetry import setup as telemetry_setup
    from handrail.telemetry.observer import SessionTelemetry
else:
    live_questions = lazy("handrail.session.live.questions")
    page_reader = lazy("handrail.session.web.page_reader")
    search = lazy("handrail.session.web.search")
    server_setup = lazy("handrail.session.servers.setup")
    session_services = lazy("handrail.session.services")
    session_worktrees = lazy("handrail.session.worktrees")
    telemetry_setup = lazy("handrail.telemetry.setup")


@record
class ServiceParts:
    """What tools are given, made with the first call that needs it."""

    services: Callable[[], ToolServices]
    worktrees: "Callable[[], session_worktrees.SessionWorktrees]"
    language_servers: SessionLanguageServers
    schedules: SessionSchedules


def open_context(base: Foundation, hooks: Hooks, folder: Path, *, asks_git: bool) -> SessionContext:
    """What requests say of a folder: its memory files and facts."""
    excludes = base.settings.loaded.settings.get("claudeMdExcludes") or ()
    sources, warn = base.spec.flags.instruction_sources, base.host.on_warning
    return SessionContext(folder, base.env, sources, hooks, excludes=excludes, asks_git=asks_git, on_warning=warn)


def open_services(
    base: Foundation,
    hooks: Hooks,
    context: SessionContext | None,
    scratch: ScratchFolder | None,
) -> ServiceParts:
    """What tools are given: undo, tasks, worktrees, language servers, schedules, the readers of web pages."""
    spec, settings, skills = base.spec, base.settings, base.skills
    env, loaded, model = base.env, settings.loaded, base.models
    by_name = is_taped(model.current.chosen.model)

    @once
    def services() -> ToolServices:
        return replace(
            _plain_services(base, hooks, scratch, sorts_by_name=by_name),
            skills=base.skills,
            worktrees=worktrees,
            language_servers=language_servers,
            schedules=schedules,
            object_to_task=partial(object_to_task, hooks),
            programs=lambda: skills.plugins.programs() if skills.plugins else (),
            page_reader=page_reader.open_page_reader(
                loaded.settings.get("webFetch", "model") or "", model.current, model.choose
            ),
            search=search.open_search(model.search, env, model.current) if model.search else None,
        )

    @once
    def worktrees() -> "session_worktrees.SessionWorktrees":
        return session_worktrees.SessionWorktrees(settings, services, hooks, context)

    language_servers = SessionLanguageServers(
        settings,
        services,
        lambda: {**(skills.plugins.language_servers() if skills.plugins else {}), **spec.tools.lsp_servers},
        base.host.on_warning,
    )
    schedules = SessionSchedules(
        str(spec.cwd),
        state_folder(base.start_env) / "schedules.json" if spec.keep_files else None,
        lambda: settings.loaded.env,
        stays=base.host.stays,
    )
    return ServiceParts(services, worktrees, language_servers, schedules)


def _plain_services(
    base: Foundation, hooks: Hooks, scratch: ScratchFolder | None, *, sorts_by_name: bool
) -> ToolServices:
    folder = None if scratch is None else scratch.path / "run"
    made = session_services.tool_services(base.settings, base.session_id, folder)
    made = replace(made, sorts_by_name=sorts_by_name)
    if (file := env_file(hooks)) is None:
        return made
    # what hooks of the session's start set for later commands reaches these through a file
    return replace(made, env={**made.env, "CLAUDE_ENV_FILE": str(file)})


def open_results(base: Foundation, scratch: ScratchFolder | None) -> ResultStore:
    """Big results lie beside the transcript, so that they can still be read when it is resumed."""
    limits, transcript = result_limits(base.settings.loaded.settings, base.env), base.transcript
    if scratch is not None:
        return ResultStore(scratch.path / "results" / "run", limits)
    if transcript is None:
        return result_store(base.env, limits)
    return ResultStore(transcript.path.with_suffix("") / "tool-results", limits)


def open_session_hooks(base: Foundation) -> Hooks:
    """The hooks of settings, plugins and the program."""
    settings, plugins, transcript = base.settings, base.skills.plugins, base.transcript
    hooks = open_hooks(
        settings.loaded,
        base.spec.cwd,
        base.host.hooks,
        session_id=base.session_id,
        transcript=str(transcript.path) if transcript else "",
    )
    if plugins is not None:
        plugins.add_hooks(hooks, settings)
    hooks.mode = str if base.host.gate else lambda: settings.mode
    hooks.on_title = transcript.writer.set_title if transcript else str
    follow_settings(hooks, settings, base.host.on_warning)
    return hooks


def open_live(base: Foundation) -> "live_questions.LiveQuestions | None":
    """Its questions for pages that show them, where that is asked for."""
    if base.host.gate is not None or not (base.spec.live or base.env.get("HANDRAIL_LIVE") == "1"):
        return None
    return live_questions.LiveQuestions(state_folder(base.env), base.session_id, base.host.on_warning)


def open_telemetry(base: Foundation) -> "SessionTelemetry | None":
    """What sends spans and metrics. Only variables of the process count: no project may say where they go."""
    env = base.start_env
    if not any(name.startswith("OTEL_") for name in env):
        return None
    return telemetry_setup.open_telemetry(
        env,
        base.redactor,
        base.host.on_warning,
        version=__version__,
        session_id=base.session_id,
        provider=base.spec.model.provider,
    )


def open_servers(base: Foundation, doors: "Callable[[], SessionDoors]") -> "mcp_servers.Servers | None":
    """The servers of flags, settings and plugins; None if there are none."""
    spec, found, plugins = base.spec, base.settings.loaded.settings, base.skills.plugins
    of_plugins = plugins.servers() if plugins else {}
    given = spec.tools.mcp_servers if spec.flags.flags_widen else {}
    others = {} if spec.tools.strict_mcp else found.servers
    if any(each.scope == "policy" for each in found.written_servers):  # then there are no others
        given, others, of_plugins = {}, found.servers, {}
    if not given and not others and not of_plugins:
        return None
    return server_setup.open_servers(
        spec, base.host, base.settings, doors(), given=given, others=others, of_plugins=of_plugins
    )


def open_no_servers(base: Foundation, doors: "Callable[[], SessionDoors]") -> "mcp_servers.Servers":
    """None yet: those of plugins may be added."""
    return server_setup.open_servers(base.spec, base.host, base.settings, doors(), given={}, others={})


def open_own_servers(
    base: Foundation, doors: "Callable[[], SessionDoors]", own: Mapping[str, Any]
) -> "mcp_servers.Servers | None":
    """The servers that an agent brings along; None if the policy names the only ones."""
    written = base.settings.loaded.settings.written_servers
    if any(each.scope == "policy" for each in written) or not base.spec.flags.flags_widen:
        return None
    return server_setup.open_servers(base.spec, base.host, base.settings, doors(), given=own, others={})


def choose_deferral(base: Foundation, window: int) -> Deferral:
    """Which definitions wait until they are searched for."""
    wanted, loaded = base.spec.tools, base.settings.loaded
    if wanted.deferral:
        return wanted.deferral
    otherwise = Deferral(wanted.defer or ("auto" if wanted.custom else "on"))
    return deferral_of(loaded.env, otherwise, loaded.settings, window)


def open_definitions(base: Foundation) -> LiveDefinitions:
    """The definitions of sub-agents; what is wrong with one is told."""
    spec, settings, env = base.spec, base.settings, base.start_env

    def of_plugins() -> tuple[ConfigFolder, ...]:
        return base.skills.plugins.folders() if base.skills.plugins else ()

    def folders() -> tuple[ConfigFolder, ...]:
        return (*config_folders(spec.cwd, env, settings.flags.instruction_sources), *of_plugins())

    return LiveDefinitions(
        lambda: session_agents(spec.cwd, env, spec.tools.agents, settings, of_plugins()),
        folders,
        settings,
        base.host.on_warning,
    )


def run_options(base: Foundation, agents: Subagents, servers: "Callable[[], mcp_servers.Servers | None]") -> RunOptions:
    """What tools may know of the session."""
    spec, skills = base.spec, base.skills
    return RunOptions(
        interactive=spec.interactive,
        debug=spec.debug,
        verbose=spec.verbose,
        commands=lambda: {name: each.description for name, each in skills.all().items()},
        agents=agents.types,
        mcp_servers=lambda: now.by_status() if (now := servers()) else {},
        mcp_resources=lambda: now.offers.resources() if (now := servers()) else {},
        mcp_instructions=lambda: now.offers.instructions() if (now := servers()) else {},
    )


def open_system_prompt(prompt: PromptOptions, style: StyleNotes, *, interactive: bool) -> tuple[str, ...]:
    """The system prompt, without the words on work where the output style replaces them."""
    if prompt.system == "":
        return (prompt.append,) if prompt.append else ()
    parts = system_parts(replacement=prompt.system or "", addition=prompt.append, interactive=interactive)
    chosen = style.chosen_style()
    leaves_out = chosen is not None and not chosen.keeps_work
    return system_prompt(part for part in parts if part.name != "work") if leaves_out else system_prompt(parts)
