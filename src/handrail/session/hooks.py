"""From the settings' hooks to the hooks of an agent."""

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from handrail.dispatch.call_hooks import CallHooks
from handrail.dispatch.gate import Rails
from handrail.errors import HandrailError
from handrail.hooks.invoke import HookEnvironment
from handrail.hooks.runner import Hooks
from handrail.hooks.specs import HookCallback, HookSource
from handrail.records import record
from handrail.session.gate import FolderGate
from handrail.session.load_settings import LoadedSettings
from handrail.session.state_folder import state_folder

# Of several hooks that rewrite one input the last counts: nearer files come after farther ones, the policy last of all.
ORDER = ("user", "plugin", "project", "local", "skill", "flag", "session", "callback", "policy")


@record
class HookOptions:
    """
    What settings say about hooks besides the hooks themselves.

    `disabled` switches all off but those of the policy, `policy_disabled` (set by the policy) those as well, and
    `policy_only` lets no others run. `urls` and `variables` limit HTTP hooks; None = no limit.
    """

    strict: bool = True
    disabled: bool = False
    policy_disabled: bool = False
    policy_only: bool = False
    urls: tuple[str, ...] | None = None
    variables: tuple[str, ...] | None = None


NO_WISHES = HookOptions()


def make_hooks(
    sources: Iterable[tuple[HookSource, object]],
    env: Mapping[str, str],
    project: Path,
    options: HookOptions = NO_WISHES,
    *,
    session_id: str = "",
    transcript: str = "",
) -> Hooks:
    """The hooks of a session from the `hooks` sections of settings and the places they come from."""
    environment = HookEnvironment(
        env,
        str(project),
        transcript=transcript,
        folder=hook_folder(env),
        urls=options.urls,
        variables=options.variables,
    )
    if session_id:
        environment = replace(environment, session_id=session_id)
    return Hooks(sources=in_order(sources, options), environment=environment, strict=options.strict)


def in_order(
    sources: Iterable[tuple[HookSource, object]], options: HookOptions = NO_WISHES
) -> list[tuple[HookSource, object]]:
    """The sections that may have hooks, in the order in which they count (also for `Hooks.reload`)."""
    wanted = [each for each in sources if _may_run(each[0], options)]
    return sorted(wanted, key=lambda each: _rank(each[0].name))


def hooked(rails: Rails, hooks: Hooks, env: Mapping[str, str]) -> Rails:
    """
    The rails with hooks around calls.

    Raises:
        HandrailError: the rails have hooks of their own.
    """
    if rails.hooks is not None:
        raise HandrailError("There are hooks in the rails and hooks beside them. Give them in one place.")
    if hooks.environment.folder is None:
        hooks.environment = replace(hooks.environment, folder=hook_folder(env))
    gate = rails.gate
    if isinstance(gate, FolderGate):
        hooks.mode = lambda: gate.mode
    return replace(rails, hooks=CallHooks(hooks))


def hook_folder(env: Mapping[str, str]) -> Path:
    """Where long texts of hooks go; nothing is made before there is one."""
    return state_folder(env) / "hooks" / f"{os.getpid()}-{secrets.token_hex(4)}"


def _may_run(source: HookSource, options: HookOptions) -> bool:
    if source.name == "policy":
        return not options.policy_disabled
    return not (options.disabled or options.policy_disabled or options.policy_only)


def _rank(name: str) -> int:
    kind = name.partition(":")[0]
    return ORDER.index(kind) if kind in ORDER else 0


def session_hooks(
    loaded: LoadedSettings,
    env: Mapping[str, str],
    project: Path,
    callbacks: Mapping[str, Sequence[HookCallback]],
    *,
    session_id: str,
    transcript: str,
) -> Hooks:
    """The hooks that the settings of a session name, and functions of the program around it."""
    options = hook_options(loaded)
    environment = HookEnvironment(
        env,
        str(project),
        session_id=session_id,
        transcript=transcript,
        folder=hook_folder(env),
        urls=options.urls,
        variables=options.variables,
    )
    return Hooks(
        sources=in_order(sources_of(loaded), options),
        callbacks=callbacks,
        environment=environment,
        strict=options.strict,
    )


def reload_hooks(hooks: Hooks, loaded: LoadedSettings) -> None:
    """The settings have changed, and with them perhaps their hooks and what limits these."""
    options = hook_options(loaded)
    hooks.strict = options.strict
    hooks.environment = replace(hooks.environment, urls=options.urls, variables=options.variables)
    hooks.reload(in_order(sources_of(loaded), options))


def sources_of(loaded: LoadedSettings) -> list[tuple[HookSource, object]]:
    """The sections of the settings, each with its place. Those of folders that are not trusted are not among them."""
    return [
        (
            HookSource(each.source, ".claude" if each.family == ".claude" else ".handrail", each.file, each.folder),
            each.section,
        )
        for each in loaded.hooks
    ]


def hook_options(loaded: LoadedSettings) -> HookOptions:
    """What the settings say about hooks besides the hooks themselves."""
    settings = loaded.settings
    urls, variables = settings.get("allowedHttpHookUrls"), settings.get("httpHookAllowedEnvVars")
    return HookOptions(
        strict=settings.get("strictHooks") is not False,
        urls=None if urls is None else tuple(urls),
        variables=None if variables is None else tuple(variables),
    )
