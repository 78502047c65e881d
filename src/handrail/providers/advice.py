"""What a person can try next after a failure of a model server, decided purely."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from handrail.conversation.stream import NOT_AN_API, StreamFailure
from handrail.records import record

REDIRECTS = frozenset({301, 302, 303, 307, 308})
WRONG_ADDRESS = frozenset({404, 405, *REDIRECTS})
VERSION = r"/v\d+[a-z0-9]*(/|$)"
KEY_LIKE = r"(ANTHROPIC|CLAUDE|OPENAI|OPEN_AI|GPT|LLM|MODEL|API)\w*(KEY|TOKEN|SECRET)S?|(API|LLM)_?KEY"
SET_BY = "It is set by --base-url, {}_BASE_URL or baseUrl."
KEY_NAMES = frozenset({"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"})


@record
class AskedServer:
    """The server of a request: its wire format, address and key (empty = none was sent). Its repr shows no key."""

    provider: str
    base_url: str
    key: str

    def __repr__(self) -> str:
        return f"AskedServer({self.provider!r}, {self.base_url!r})"


def next_move(server: AskedServer, env: Mapping[str, str], failure: StreamFailure, model: str) -> str:
    """One or two sentences; empty if there is nothing better than to try again."""
    prefix = "ANTHROPIC" if server.provider == "anthropic" else "OPENAI"
    if failure.status in (401, 403):
        return _about_key(server, prefix, env)
    if failure.status == 402 or failure.kind == "insufficient_quota":
        return "Add credit to the account of this key, or use another key."
    if failure.kind == "model_not_found" or (failure.status == 404 and "model" in failure.message.lower()):
        return f"The server has no model {model!r}. Name another with --model or {prefix}_MODEL."
    if failure.kind == NOT_AN_API or failure.status in WRONG_ADDRESS:
        return _about_address(server, prefix)
    if failure.kind in ("connect", "refused"):
        return (
            f"Is the server running, and is its address right? It is set by --base-url, {prefix}_BASE_URL or baseUrl."
        )
    if failure.kind == "stalled":
        return "Is the server busy? API_TIMEOUT_MS sets how many milliseconds it has."
    if failure.status == 429:
        return "Try again later, or name another model with --fallback-model."
    if failure.status is not None and failure.status >= 500:
        return "The server, or a proxy before it, has a problem of its own. Try again later."
    return ""


def _about_address(server: AskedServer, prefix: str) -> str:
    base = server.base_url.rstrip("/")
    if server.provider == "anthropic":
        other = "For a server with OpenAI's format use --provider openai and OPENAI_BASE_URL."
        return f"Is {base} the address of an API in Anthropic's format? {other}"
    if re.search(VERSION, urlsplit(base).path):
        return f"Is {base} the address of an API in OpenAI's format? {SET_BY.format(prefix)}"
    return f"Most servers have /v1 at the end of their base URL: try {base}/v1."


def about_unread_key(env: Mapping[str, str]) -> str:
    """Names a variable that looks like a key and is not read, after a blank; empty if none is set."""
    unread = [name for name in sorted(env) if env[name] and name not in KEY_NAMES and re.fullmatch(KEY_LIKE, name)]
    return f" {unread[0]} is set, but that name is not read." if unread else ""


def _about_key(server: AskedServer, prefix: str, env: Mapping[str, str]) -> str:
    wanted = f"{prefix}_API_KEY"
    if not server.key:
        other = next((name for name in KEY_NAMES if env.get(name) and not name.startswith(prefix)), "")
        near = about_unread_key(env)
        if other and not near:
            near = f" {other} is set, but requests in this format do not use it."
        return f"No key was sent: set {wanted}.{near}"
    name = next((name for name in sorted(KEY_NAMES) if env.get(name, "").strip() == server.key), "")
    vendor = "Anthropic" if server.key.startswith("sk-ant-") else "OpenAI" if server.key.startswith("sk-proj-") else ""
    if vendor and not vendor.upper().startswith(prefix):
        return f"The key in {name or 'use'} looks like one for {vendor}'s API, and this server speaks another format."
    if name == "ANTHROPIC_API_KEY":
        return (
            f"Check the key in {name}. Some servers want it in ANTHROPIC_AUTH_TOKEN, which is sent as a bearer token."
        )
    return f"Check the key in {name}." if name else "Check the key that apiKeyHelper or the program gives."
