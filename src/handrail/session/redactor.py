"""What must not reach a session or log: the secrets of the environment, of the settings and of servers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from handrail.conversation.redact import Redactor, build_redactor

CUSTOM_HEADERS = "ANTHROPIC_CUSTOM_HEADERS"


def redactor_for(
    env: Mapping[str, str], patterns: Iterable[str] = (), servers: Mapping[str, Any] | None = None, api_key: str = ""
) -> Redactor:
    """Knows the secrets of environment and MCP servers, and the user's patterns; PatternError if one is invalid."""
    configs = [config for config in (servers or {}).values() if isinstance(config, Mapping)]
    variables = dict(env) | ({"API_KEY": api_key} if api_key else {})
    headers = [tuple(map(str.strip, line.split(":", 1))) for line in env.get(CUSTOM_HEADERS, "").splitlines()]
    known = [(header[0], header[1]) for header in headers if len(header) == 2]
    return build_redactor(variables, patterns, [*known, *_texts(configs, "headers"), *_texts(configs, "env")])


def _texts(configs: Iterable[Mapping[str, Any]], section: str) -> Iterator[tuple[str, str]]:
    for config in configs:
        values = config.get(section)
        if isinstance(values, Mapping):
            yield from ((str(name), value) for name, value in values.items() if isinstance(value, str))
