"""Posts the input of a hook to its HTTP endpoint, without redirects or kept connections."""

import re
from collections.abc import Collection, Mapping

from handrail.errors import TransportError
from handrail.hooks.results import HookOutput, output_from_bytes
from handrail.hooks.specs import HttpHook
from handrail.http.client import HttpClient
from handrail.http.transport import HttpRequest

VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
Headers = list[tuple[str, str]]
RESERVED = frozenset(("connection", "content-length", "content-type", "host", "transfer-encoding"))


async def post(hook: HttpHook, body: bytes, headers: Headers, env: Mapping[str, str], max_bytes: int) -> HookOutput:
    """
    The output of the endpoint. `env` holds the proxy and CA variables.

    Raises:
        TransportError, UrlError: there was no answer, or its status is not 2xx.
    """
    own = (("connection", "close"), ("content-type", "application/json"))
    async with HttpClient(env, proxy_loopback=False) as client:
        answer = await client.fetch(HttpRequest(hook.url, (*own, *headers), body), max_bytes=max_bytes)
    output = output_from_bytes(answer.body, cut=answer.cut)
    if not 200 <= answer.status < 300:
        raise TransportError("connect", f"it answered with status {answer.status}: {output.text[:200]}")
    return output


def fill_headers(hook: HttpHook, env: Mapping[str, str], limit: Collection[str] | None) -> Headers:
    """The headers with variables filled in; one that hook and settings do not both allow is empty."""
    allowed = hook.variables if limit is None else hook.variables & frozenset(limit)

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return env.get(name, "") if name in allowed else ""

    texts = [(name, text) for name, text in hook.headers if name.lower() not in RESERVED]
    return [(name, _one_line(VARIABLE.sub(value, text))) for name, text in texts]


def _one_line(text: str) -> str:
    """A variable must not be able to add headers of its own."""
    return re.sub(r"[\x00-\x1f\x7f]", "", text).strip()
