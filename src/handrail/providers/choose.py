"""
Which model is asked, at which address, in which wire format: decided purely, from settings and environment.

    explicit provider > provider setting > base URL given or in the environment > model name > keys in the environment

Each provider has a default model, so none must be named. A server with its own base URL needs no key.
"""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from handrail.errors import ProviderSetupError, UrlError
from handrail.http.urls import HttpTarget, parse_target
from handrail.lazy import lazy
from handrail.providers.advice import AskedServer, about_unread_key, next_move
from handrail.records import record

if TYPE_CHECKING:
    from handrail.http import client as http_client
    from handrail.http.transport import Transport
    from handrail.providers import client
    from handrail.providers.api import Api
else:
    client, http_client = lazy("handrail.providers.client"), lazy("handrail.http.client")  # asyncio, TLS: 50 ms

ProviderName: TypeAlias = Literal["anthropic", "openai", "openai-responses"]

# loaded when chosen
ADAPTERS: dict[ProviderName, str] = {
    "anthropic": "handrail.providers.anthropic",
    "openai": "handrail.providers.openai_chat",
    "openai-responses": "handrail.providers.openai_responses",
}
DEFAULT_MODELS: dict[ProviderName, str] = {
    "anthropic": "claude-sonnet-4-6",
    "openai": "gpt-5.2",
    "openai-responses": "gpt-5.2",
}
DEFAULT_URLS: dict[ProviderName, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "openai-responses": "https://api.openai.com/v1",
}
# short names people use, and what they stand for today
ALIASES = {"opus": "claude-opus-4-6", "sonnet": "claude-sonnet-4-6", "haiku": "claude-haiku-4-5"}
HEADER_NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
ANTHROPIC_MODELS = ("claude", "anthropic/", "anthropic.")


@record
class ModelOptions:
    """
    What flags and settings say about the model; empty = they say nothing.

    `available` are the only models that may be used, the first is the default. `overrides` maps models to the names
    that the server has for them.
    """

    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_key: str = ""
    fallback_models: tuple[str, ...] = ()
    available: tuple[str, ...] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)


@record
class Choice:
    """The provider, model and server to ask. Its repr shows no credentials."""

    provider: ProviderName
    model: str
    base_url: str
    key: str = ""
    bearer: bool = False
    fallback_models: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Choice({self.provider!r}, {self.model!r}, {self.base_url!r})"


def choose(options: ModelOptions, env: Mapping[str, str]) -> Choice:
    """What to ask, and where. Raises ProviderSetupError if a name or URL is wrong, or a needed key is missing."""
    if options.available and not any((options.model, env.get("ANTHROPIC_MODEL"), env.get("OPENAI_MODEL"))):
        options = replace(options, model=options.available[0])
    provider = _provider(options, env)
    prefix = "ANTHROPIC" if provider == "anthropic" else "OPENAI"
    base_url = options.base_url or env.get(f"{prefix}_BASE_URL") or DEFAULT_URLS[provider]
    if _target(base_url).credentials:
        raise ProviderSetupError(f"The base URL holds a user name. Leave it out, and set {prefix}_API_KEY instead.")
    model = _resolve_model(options.model or env.get(f"{prefix}_MODEL") or DEFAULT_MODELS[provider], options)
    key, bearer = _key(provider, options, env)
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise ProviderSetupError(f"The key for {base_url} holds characters no key has. Copy it again.")
    if not key and base_url.rstrip("/") == DEFAULT_URLS[provider]:
        either = ("ANTHROPIC", "OPENAI") if not (options.provider or options.model or options.base_url) else (prefix,)
        keys, urls = (" or ".join(f"{name}_{what}" for name in either) for what in ("API_KEY", "BASE_URL"))
        raise ProviderSetupError(
            f"There is no key for {base_url} (model {model!r}). Set {keys}, or set {urls} to a server that needs none."
            f"{about_unread_key(env)}"
        )
    fallbacks = tuple(_resolve_model(name, options) for name in options.fallback_models)
    return Choice(provider, model, base_url, key, bearer, fallbacks)


def load_api(name: ProviderName) -> "Api":
    """The api of this name; its module is imported here."""
    return cast("Api", import_module(ADAPTERS[name]).API)


def open_provider(choice: Choice, env: Mapping[str, str], transport: "Transport | None" = None) -> "client.Provider":
    """A provider that asks over HTTP unless another transport is given. `env` names proxies and CAs."""
    api = load_api(choice.provider)
    headers: tuple[tuple[str, str], ...] = ()
    if choice.key:
        bearer = choice.bearer or api.auth == "authorization"
        headers = (("authorization", f"Bearer {choice.key}"),) if bearer else ((api.auth, choice.key),)
    if transport is None:
        transport = http_client.HttpClient(env)
    if choice.provider == "anthropic":
        headers += custom_headers(env.get("ANTHROPIC_CUSTOM_HEADERS", ""))
    return client.Provider(
        api,
        client.Endpoint(choice.base_url, headers),
        transport,
        model=choice.model,
        fallback_models=choice.fallback_models,
        timeouts=_timeouts(env.get("API_TIMEOUT_MS", "")),
        advise=partial(next_move, AskedServer(choice.provider, choice.base_url, choice.key), env),
    )


def custom_headers(text: str) -> tuple[tuple[str, str], ...]:
    """The headers of ANTHROPIC_CUSTOM_HEADERS, one `Name: value` a line. Raises ProviderSetupError for other lines."""
    headers = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = line.partition(":")
        if not colon or not re.fullmatch(HEADER_NAME, name) or not value.isprintable() or not value.isascii():
            shown = repr(name[:40]) if colon else "a line without a colon"
            raise ProviderSetupError(
                f"ANTHROPIC_CUSTOM_HEADERS holds {shown}. Write one header a line, as Name: value."
            )
        headers.append((name.lower(), value.strip()))
    return tuple(headers)


def _timeouts(milliseconds: str) -> "client.Timeouts":
    """How long a server may say nothing, by API_TIMEOUT_MS."""
    if not milliseconds.isdecimal() or int(milliseconds) == 0:
        return client.TIMEOUTS
    seconds = int(milliseconds) / 1000
    return client.Timeouts(seconds, seconds)


def _provider(options: ModelOptions, env: Mapping[str, str]) -> ProviderName:
    if options.provider:
        if options.provider not in ADAPTERS:
            raise ProviderSetupError(f"{options.provider!r} is not a provider. Choose one of {', '.join(ADAPTERS)}.")
        return options.provider
    if options.base_url:
        return _by_url(options.base_url) or _by_model(options.model) or "openai"
    named = _by_model(options.model)
    if named:
        # a model of any name may be served by the one server the environment points at
        other: ProviderName = "openai" if named == "anthropic" else "anthropic"
        return named if _reachable(named, env) or not _reachable(other, env) else other
    anthropic = _reachable("anthropic", env)
    return "openai" if not anthropic and _reachable("openai", env) else "anthropic"


def _reachable(provider: ProviderName, env: Mapping[str, str]) -> bool:
    names = {
        "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"),
        "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    }
    return any(env.get(name) for name in names.get(provider, ()))


def _by_url(url: str) -> ProviderName | None:
    target = _target(url)
    path = target.path.decode().rstrip("/")
    if target.host.endswith("anthropic.com") or path.endswith(("/anthropic", "/v1/messages")):
        return "anthropic"
    return "openai-responses" if path.endswith("/responses") else None


def _target(url: str) -> HttpTarget:
    try:
        return parse_target(url)
    except UrlError as error:
        raise ProviderSetupError(str(error)) from error


def _by_model(model: str) -> ProviderName | None:
    if not model:
        return None
    return "anthropic" if model.startswith(ANTHROPIC_MODELS) or model in ALIASES else "openai"


def _resolve_model(model: str, options: ModelOptions) -> str:
    """The name that goes to the server."""
    if not model.strip():
        raise ProviderSetupError(f"{model!r} is not the name of a model. Name one, or none at all for the default.")
    if options.available and _full_name(model) not in map(_full_name, options.available):
        raise ProviderSetupError(
            f"The model {model!r} may not be used: "
            f"availableModels in the settings names {', '.join(options.available)}. Choose one of these."
        )
    return options.overrides.get(model) or options.overrides.get(_full_name(model)) or _full_name(model)


def _full_name(model: str) -> str:
    return ALIASES.get(model, model)


def _key(provider: ProviderName, options: ModelOptions, env: Mapping[str, str]) -> tuple[str, bool]:
    if options.api_key:
        return options.api_key, False
    if provider != "anthropic":
        return env.get("OPENAI_API_KEY", ""), True
    if env.get("ANTHROPIC_API_KEY"):
        return env["ANTHROPIC_API_KEY"], False
    return env.get("ANTHROPIC_AUTH_TOKEN", ""), True
