"""From the hooks sections of settings to the hooks of a session."""

import os
import secrets
from collections.abc import Iterable
from dataclasses import replace

from handrail.dispatch.call_hooks import CallHooks
from handrail.hooks.invoke import HookEnvironment
from handrail.hooks.results import NOTHING
from handrail.hooks.runner import Hooks
from handrail.hooks.specs import HookSource
from handrail.records import record
from handrail.session.hook_setup import HookSetup
from handrail.session.load_settings import LoadedSettings
from handrail.session.state_folder import state_folder

__all__ = ["NOTHING", "CallHooks", "hook_options", "in_order", "open_hooks", "reload_hooks", "sources_of"]

# Of several hooks that rewrite one input the last counts: nearer files come after farther ones, the policy last of all.
ORDER = ("user", "plugin", "project", "local", "skill", "flag", "session", "callback", "policy")


@record
class HookOptions:
    """What settings say about hooks besides the hooks; `urls` and `variables` limit HTTP hooks, None = no limit."""

    strict: bool = True
    urls: tuple[str, ...] | None = None
    variables: tuple[str, ...] | None = None


def in_order(sources: Iterable[tuple[HookSource, object]]) -> list[tuple[HookSource, object]]:
    """The sections in the order in which they count."""
    return sorted(sources, key=lambda each: _rank(each[0]))


def _rank(source: HookSource) -> tuple[int, int]:
    """The place of a source; of the files of nested folders, the nearest has the longest path."""
    kind = source.name.partition(":")[0]
    return (ORDER.index(kind) if kind in ORDER else 0), len(source.folder) if kind in ("local", "project") else 0


def open_hooks(loaded: LoadedSettings, setup: HookSetup) -> Hooks:
    """The hooks that the settings of a session name, and those that the program around it gives."""
    env, options = loaded.env, hook_options(loaded)
    hooks = setup.given if isinstance(setup.given, Hooks) else Hooks(callbacks=setup.given, strict=options.strict)
    if hooks is not setup.given:
        hooks.environment = HookEnvironment(
            env,
            str(setup.project),
            session_id=setup.session_id,
            transcript=setup.transcript,
            urls=options.urls,
            variables=options.variables,
        )
    if hooks.environment.folder is None:
        folder = state_folder(env) / "hooks" / f"{os.getpid()}-{secrets.token_hex(4)}"  # made with the first long text
        hooks.environment = replace(hooks.environment, folder=folder)
    hooks.mode, hooks.on_title = setup.mode, setup.on_title
    hooks.reload(in_order(sources_of(loaded)))
    return hooks


def reload_hooks(hooks: Hooks, loaded: LoadedSettings) -> None:
    """The settings have changed, and with them perhaps their hooks and what limits these."""
    options = hook_options(loaded)
    hooks.strict = options.strict
    hooks.environment = replace(hooks.environment, urls=options.urls, variables=options.variables)
    hooks.reload(in_order(sources_of(loaded)))


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
