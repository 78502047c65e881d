"""Opens cassettes for this user and folder, for `--record`, `--replay` and the pytest fixture."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from handrail.conversation.redact import Redactor, build_redactor
from handrail.errors import CassetteError
from handrail.providers.cassette.normalize import Normalizer, build_normalizer
from handrail.providers.cassette.replay import ReplayClock, Replayer, log_warning
from handrail.providers.cassette.tape import Cassette, load
from handrail.providers.choose import ADAPTERS, DEFAULT_URLS, Choice, ModelOptions, open_provider
from handrail.providers.client import Provider

NO_PLACES: Mapping[str, Path] = {}


def session_normalizer(
    cwd: Path,
    env: Mapping[str, str],
    *,
    secrets: Iterable[str] = (),
    volatile: Iterable[str] = (),
    places: Mapping[str, Path] = NO_PLACES,
    redactor: Redactor | None = None,
) -> Normalizer:
    """
    The normalizer for cassettes of this folder and environment.

    It removes what `redactor` finds, by default the secrets of the environment and the patterns `secrets`. It replaces
    the working, home and state folder, `places` by name, and text that the patterns `volatile` match.
    """
    own = {"cwd": str(cwd), "state": env.get("HANDRAIL_STATE_DIR"), "home": env.get("HOME")}
    places = {**places, **{name: Path(path) for name, path in own.items() if path}}
    return build_normalizer(redactor or build_redactor(env, secrets), places, volatile)


def open_replayer(
    path: Path,
    normalizer: Normalizer,
    *,
    match: str = "conversation",
    on_warning: Callable[[str], None] = log_warning,
    speed: float = 0.0,
    in_order: bool = False,
) -> Replayer:
    """A transport that replays `path`; see `Replayer` for what the options mean."""
    return Replayer(load(path), normalizer, match=match, on_warning=on_warning, speed=speed, in_order=in_order)


def replayed_choice(cassette: Cassette, options: ModelOptions) -> Choice:
    """
    The recorded provider and model, unless the options name others. No key is needed.

    Raises:
        CassetteError: neither the recording nor the options name a known provider.
    """
    provider = options.provider or cassette.header.provider
    if provider not in ADAPTERS:
        raise CassetteError(
            f"{cassette.path} names an unknown provider, {provider!r}. Give --provider: {', '.join(ADAPTERS)}."
        )
    base_url = options.base_url or cassette.header.base_url or DEFAULT_URLS[provider]
    return Choice(provider, options.model or cassette.header.model, base_url, fallback_models=options.fallback_models)


def open_replayed_provider(replayer: Replayer, options: ModelOptions) -> Provider:
    """A provider that answers from a cassette and does not wait between attempts."""
    provider = open_provider(replayed_choice(replayer.cassette, options), {}, replayer)
    provider.clock = ReplayClock()
    return provider
