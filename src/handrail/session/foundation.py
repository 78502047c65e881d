"""
The foundation of a session, opened first.

    settings -> plugins and skills -> transcript -> model
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.config.execution import SearchChoice, search_choice
from handrail.config.remote_servers import remote_servers
from handrail.conversation.redact import Redactor
from handrail.errors import HandrailError
from handrail.extensions.places import config_folders
from handrail.lazy import lazy
from handrail.providers.model_aliases import alias_note
from handrail.records import record
from handrail.session.models.choose import (
    ChosenModel,
    SessionModel,
    Tape,
    choose_model,
    cost_for,
    model_by_object,
    searches_itself,
)
from handrail.session.models.facts import ModelFacts, model_facts
from handrail.session.models.options import model_options, thinking_options, with_family
from handrail.session.redactor import redactor_for
from handrail.session.settings.caller_names import caller_names
from handrail.session.settings.session_settings import SessionSettings, open_settings
from handrail.session.skills.notes import SessionSkills
from handrail.session.spec import SessionHost, SessionSpec
from handrail.session.state_folder import session_store, state_folder
from handrail.session.transcript import TranscriptOptions, mirror_folder, open_transcript
from handrail.transcripts.log import Durability, Mirror
from handrail.transcripts.rebuild import RebuiltTranscript
from handrail.transcripts.sdk_copy import SdkCopy
from handrail.transcripts.store import OpenTranscript, TranscriptStore
from handrail.transcripts.writer import new_id

if TYPE_CHECKING:
    from handrail.extensions import unsupported
    from handrail.session import with_agent
    from handrail.session.skills import plugins as session_plugins
else:
    session_plugins = lazy("handrail.session.skills.plugins")
    unsupported = lazy("handrail.extensions.unsupported")
    with_agent = lazy("handrail.session.with_agent")


@record
class ModelParts:
    """The model of a session, what is known of models, and the way to another one."""

    current: SessionModel
    facts: ModelFacts
    choose: Callable[[str], ChosenModel]
    search: SearchChoice | None
    """The service that WebSearch asks."""


@record
class Foundation:
    """What all other parts of a session stand on."""

    spec: SessionSpec
    host: SessionHost
    start_env: Mapping[str, str]
    settings: SessionSettings
    redactor: Redactor
    store: TranscriptStore
    kept: OpenTranscript | RebuiltTranscript | None
    skills: SessionSkills
    models: ModelParts
    session_id: str

    @property
    def env(self) -> Mapping[str, str]:
        """The variables that count, those of settings included."""
        return self.settings.loaded.env

    @property
    def transcript(self) -> OpenTranscript | None:
        """The transcript that is written; None if none is."""
        return self.kept if isinstance(self.kept, OpenTranscript) else None


def lay_foundation(spec: SessionSpec, env: Mapping[str, str] | None, host: SessionHost) -> Foundation:
    """Read settings and extensions, and open the transcript; HandrailError if one of them cannot be had."""
    if host.gate is not None and host.can_use_tool is not None:
        raise HandrailError("can_use_tool is asked by the gate that the settings make. Give either it or a gate.")
    start_env = os.environ if env is None else env
    state, told = state_folder(start_env), list[str]()
    names = caller_names(spec.tools.custom, host.hooks)

    def tell(note: str) -> None:
        told.append(note)
        host.on_warning(note)

    def tell_new(note: str) -> None:
        told.remove(note) if note in told else host.on_warning(note)

    settings = open_settings(spec.cwd, start_env, state, spec.flags, tell, names=names)
    plugins = _plugins(spec, settings)
    spec, family = _with_lead(spec, start_env, settings, plugins, host)
    if spec.lead is not None:  # it may forbid more
        settings = open_settings(spec.cwd, start_env, state, spec.flags, tell_new, names=names)
    skills = SessionSkills(spec.cwd, settings)
    skills.plugins = plugins
    for note in (*(skills.plugins.problems if skills.plugins else ()), *_found_notes(spec.cwd, settings, skills)):
        host.on_warning(note)
    spec = _with_model(spec, settings, family, host)
    redactor = _open_redactor(spec, settings, skills.plugins)
    loaded = settings.loaded
    durability: Durability = "power" if loaded.settings.get("durability") == "power" else "process"
    store = session_store(loaded.env, redactor, durability, _mirror(spec, start_env, settings, host))
    kept = open_transcript(spec.transcript, spec.cwd, store, loaded.env)
    try:
        models = _open_models(spec, settings, redactor, host)
    except BaseException:
        if isinstance(kept, OpenTranscript):
            kept.writer.close()
        raise
    session_id = _session_id(spec.transcript, kept)
    return Foundation(spec, host, start_env, settings, redactor, store, kept, skills, models, session_id)


def _with_lead(
    spec: SessionSpec,
    env: Mapping[str, str],
    settings: SessionSettings,
    plugins: "session_plugins.SessionPlugins | None",
    host: SessionHost,
) -> tuple[SessionSpec, str]:
    """The specification as the agent that leads changes it, by the flag, the settings or a plugin; none = as it is."""
    of_plugins = plugins.agent() if plugins else ""
    name = spec.agent or (settings.loaded.settings.get("agent") if spec.flags.flags_widen else "") or of_plugins
    if not name:
        return spec, ""
    try:
        return with_agent.with_named_agent(name, spec, env, settings, plugins.folders() if plugins else ())
    except HandrailError as error:
        if spec.agent:
            raise
        host.on_warning(f"the setting `agent` has no effect: {str(error).removeprefix('--agent: ')}")
        return spec, ""


def foundation_of_next(base: Foundation) -> Foundation:
    """The same for a session in which nothing was said yet; SessionError if its transcript cannot be kept."""
    spec = replace(base.spec, transcript=base.spec.transcript.for_next())
    skills = SessionSkills(spec.cwd, base.settings)
    skills.plugins = base.skills.plugins
    kept = open_transcript(spec.transcript, spec.cwd, base.store, base.env)
    base.settings.on_change.clear()  # those who listened belong to the session before
    return replace(
        base,
        spec=spec,
        host=replace(base.host, history=()),
        kept=kept,
        skills=skills,
        session_id=_session_id(spec.transcript, kept),
    )


def _session_id(options: TranscriptOptions, kept: OpenTranscript | RebuiltTranscript | None) -> str:
    return kept.writer.session_id if isinstance(kept, OpenTranscript) else options.session_id or new_id()


def _open_models(spec: SessionSpec, settings: SessionSettings, redactor: Redactor, host: SessionHost) -> ModelParts:
    loaded = settings.loaded
    env, facts = loaded.env, model_facts(loaded.settings, loaded.env)
    tape = Tape(spec.cwd, spec.record, spec.replay, spec.replay_match, redactor, host.on_warning)

    def choose(name: str) -> ChosenModel:
        options = replace(spec.model, model=name or spec.model.model)
        chosen = choose_model(options, env, tape) if host.model is None else model_by_object(host.model, options.model)
        return replace(chosen, cost=cost_for(chosen.name, facts.price))

    model = SessionModel(choose(""))
    service = search_choice(loaded.settings, env, by_provider=searches_itself(model.chosen))
    return ModelParts(model, facts, choose, service)


def _with_model(spec: SessionSpec, settings: SessionSettings, family: str, host: SessionHost) -> SessionSpec:
    """The specification with what settings say of model and requests."""
    if not spec.replay and host.model is None:
        options = model_options(settings.loaded, spec.model)
        spec = replace(spec, model=with_family(options, family, settings.loaded.env) if family else options)
        if note := alias_note(spec.model.model):
            host.on_warning(note)
    return replace(spec, request=thinking_options(settings.loaded, spec.request))


def _open_redactor(
    spec: SessionSpec, settings: SessionSettings, plugins: "session_plugins.SessionPlugins | None"
) -> Redactor:
    loaded = settings.loaded
    servers = {**loaded.settings.servers, **spec.tools.mcp_servers, **(plugins.servers() if plugins else {})}
    patterns = tuple(loaded.settings.get("redact") or ())
    tokens = [each.token for each in remote_servers(loaded.settings, loaded.env).servers.values()]
    secrets = (*(plugins.secrets if plugins else ()), *tokens)
    return redactor_for(_with_secrets(loaded.env, secrets), patterns, servers, spec.model.api_key)


def _plugins(spec: SessionSpec, settings: SessionSettings) -> "session_plugins.SessionPlugins | None":
    """The plugins of the session; None if none is wanted, or if nothing may widen."""
    wanted = spec.tools.plugins or settings.loaded.settings.get("enabledPlugins")
    return session_plugins.session_plugins(settings, spec.tools.plugins) if wanted and spec.flags.flags_widen else None


def _with_secrets(env: Mapping[str, str], secrets: Sequence[str]) -> Mapping[str, str]:
    """The variables with the secrets of plugins and servers, which must not reach a log either."""
    return {**env, **{f"OTHER_{number}_SECRET": text for number, text in enumerate(secrets)}} if secrets else env


def _mirror(spec: SessionSpec, env: Mapping[str, str], settings: SessionSettings, host: SessionHost) -> Mirror | None:
    """What gets every record of the transcript besides its file."""
    if host.mirror is not None or not spec.transcript.copied or settings.loaded.settings.get("sdkSessionCopy") is False:
        return host.mirror
    return SdkCopy(mirror_folder(spec.cwd, env), host.on_warning).add


def _found_notes(cwd: Path, settings: SessionSettings, skills: SessionSkills) -> tuple[str, ...]:
    """What a person should know of the folders for extensions: what in them has no effect."""
    env = settings.loaded.env
    folders = config_folders(cwd, env, settings.flags.instruction_sources)
    if not folders and not skills.problems:
        return ()
    return unsupported.start_notes((*unsupported.extension_notes(folders), *skills.problems))
