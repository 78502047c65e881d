"""
What settings and flags want of a model.

    flags > variables (ANTHROPIC_MODEL, OPENAI_BASE_URL ...) > settings (model, baseUrl ...)
    for the credential: variables > apiKeyHelper
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.errors import ProviderSetupError
from handrail.lazy import lazy
from handrail.loop.run_config import RequestOptions
from handrail.providers.choose import ANTHROPIC_MODELS, ModelOptions, choose
from handrail.providers.model_aliases import SAME, model_for
from handrail.session.settings.load import LoadedSettings

if TYPE_CHECKING:
    from handrail.config import commands
else:
    commands = lazy("handrail.config.commands")


def model_options(loaded: LoadedSettings, flags: ModelOptions) -> ModelOptions:
    """What flags and settings want of a model; variables go before settings."""
    settings, env = loaded.settings, loaded.env
    model, url, provider = ("", "", "")
    if not any(env.get(name) for name in ("ANTHROPIC_MODEL", "OPENAI_MODEL")):
        model = settings.get("model") or ""
    if not any(env.get(name) for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL")) and not flags.base_url:
        url, provider = settings.get("baseUrl") or "", settings.get("provider") or ""
    wanted = flags.model or model
    return replace(
        flags,
        model="" if wanted.lower() in SAME else wanted,
        base_url=flags.base_url or url,
        provider=flags.provider or provider,
        api_key=flags.api_key or credential(loaded),
        fallback_models=flags.fallback_models or tuple(settings.get("fallbackModel") or ()),
        available=tuple(settings.get("availableModels") or ()),
        overrides=settings.get("modelOverrides") or {},
    )


def with_family(options: ModelOptions, family: str, env: Mapping[str, str]) -> ModelOptions:
    """The options with the model that a short name stands for at the server that they choose."""
    choice = choose(options, env)
    name = model_for(family, choice.model, options, env)
    if name == choice.model:
        return options
    provider = options.provider or ("" if name.startswith(ANTHROPIC_MODELS) else choice.provider)
    available = (*options.available, name) if options.available else ()  # it is named there as the short name
    return replace(options, model=name, provider=provider, available=available)


def named_model(wanted: str, current: str, loaded: LoadedSettings) -> str:
    """The model that a definition file wants, for a caller that asks the `current` one."""
    available, overrides = loaded.settings.get("availableModels"), loaded.settings.get("modelOverrides")
    options = ModelOptions(available=tuple(available or ()), overrides=overrides or {})
    return model_for(wanted, current, options, loaded.env)


def credential(loaded: LoadedSettings) -> str:
    """What apiKeyHelper prints, "" without one or with a key in the environment; ProviderSetupError if it fails."""
    command = loaded.settings.get("apiKeyHelper")
    names = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY")
    if not command or any(loaded.env.get(name) for name in names):
        return ""
    try:
        printed = commands.output_of(("/bin/sh", "-c", command), cwd=_helper_folder(loaded), env=loaded.env, timeout=30)
    except OSError as error:
        raise ProviderSetupError(f"apiKeyHelper gave no credential: {error}. Run it by hand: {command!r}.") from error
    key = printed.decode("utf-8", "replace").strip()
    if not key:
        raise ProviderSetupError(f"apiKeyHelper printed nothing. Run it by hand: {command!r}.")
    return key


def _helper_folder(loaded: LoadedSettings) -> str:
    """A trusted folder's helper runs in that folder; any other must not find a project's files by accident."""
    layer = next(layer for layer in loaded.settings.layers if "apiKeyHelper" in layer.values)
    return layer.document.file.folder if layer.source in ("local", "project") else "/"


def thinking_options(loaded: LoadedSettings, request: RequestOptions) -> RequestOptions:
    """How hard the model should think, by the settings where the request options leave it open."""
    effort = request.effort or loaded.settings.get("effortLevel") or None
    enabled = loaded.settings.get("alwaysThinkingEnabled")
    thinking = request.thinking
    if enabled is not None and thinking.mode == "default":
        thinking = replace(thinking, mode="adaptive" if enabled else "off")
    return replace(request, effort=effort, thinking=thinking)
