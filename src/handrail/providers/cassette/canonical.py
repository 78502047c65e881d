"""
Canonical requests: two requests share a recording when only volatile parts differ.

Left out or normalized: headers, host, cache marks, vendor metadata, ids of calls (numbered in order of appearance),
facts about the environment, the user's own memory, secrets, the working and home folder, dates, times, durations,
UUIDs, memory addresses, and big binary data (by its digest). Everything else must be equal.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from handrail.conversation.context import without_personal
from handrail.http.transport import HttpRequest
from handrail.providers.cassette.normalize import Normalizer
from handrail.records import record

APIS = {"messages": "anthropic", "chat/completions": "openai", "responses": "openai-responses"}
VOLATILE_FIELDS = frozenset({"metadata", "user", "prompt_cache_key", "safety_identifier", "stream_options"})
ID_FIELDS = frozenset({"id", "call_id", "tool_use_id", "tool_call_id", "item_id"})
BINARY = 2_000


@record
class Canonical:
    """A request as it is compared: `messages` is the conversation, `head` everything else."""

    api: str
    head: Mapping[str, Any]
    messages: tuple[Any, ...]

    @property
    def key(self) -> str:
        """Equal for equal requests."""
        return digest([self.api, self.head, list(self.messages)])


def canonical(outgoing: HttpRequest, normalizer: Normalizer) -> Canonical:
    """The canonical form of a request."""
    api = api_of(outgoing.url)
    try:
        body = json.loads(outgoing.body)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return Canonical(api, {"body": normalizer.normalize(outgoing.body.decode("utf-8", "replace"))}, ())
    conversation = "messages" if "messages" in body else "input"
    content = body.pop(conversation, [])
    values = _RequestNormalizer(normalizer)
    head = values.value({name: value for name, value in body.items() if name not in VOLATILE_FIELDS})
    messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
    return Canonical(api, head, values.conversation(messages))


def renormalize(request: Canonical, normalizer: Normalizer) -> Canonical:
    """A recorded request, normalized again: what is volatile now may not have been so when it was recorded."""
    values = _RequestNormalizer(normalizer)
    head = values.value(dict(request.head))
    return Canonical(request.api, head, values.conversation(request.messages))


def api_of(url: str) -> str:
    """`anthropic`, `openai` or `openai-responses`; the path for anything else."""
    path = urlsplit(url).path
    return next((name for end, name in APIS.items() if path.endswith(f"/{end}")), path)


def digest(value: Any) -> str:
    """Equal for equal JSON values."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:16]


class _RequestNormalizer:
    """Normalizes one request; ids are numbered as they appear."""

    def __init__(self, normalizer: Normalizer) -> None:
        self._normalizer = normalizer
        self._ids: dict[str, str] = {}

    def conversation(self, messages: Iterable[Any]) -> tuple[Any, ...]:
        """All messages but those that only told of the environment: some formats send such a text as one of its own."""
        return tuple(cleaned for cleaned in map(self.message, messages) if not _is_empty(cleaned))

    def message(self, message: Any) -> Any:
        """A message, with its content as a list of blocks, blank ones left out."""
        cleaned = self.value(message, ids=True)
        if isinstance(cleaned, dict) and "content" in cleaned:
            content = cleaned["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            if isinstance(blocks, list):
                cleaned["content"] = [block for block in blocks if not _blank(block)]
        return cleaned

    def value(self, value: Any, *, ids: bool = False) -> Any:
        match value:
            case str():
                return self._text(value)
            case dict():
                return {
                    name: self._id(each)
                    if ids and name in ID_FIELDS and isinstance(each, str)
                    # the input of a tool is the model's own text, also where it calls something an id
                    else self.value(each, ids=ids and not (name == "input" and isinstance(each, dict)))
                    for name, each in value.items()
                    if name != "cache_control"
                }
            case list():
                return [self.value(each, ids=ids) for each in value]
            case _:
                return value

    def _id(self, value: str) -> str:
        return self._ids.setdefault(value, f"id-{len(self._ids) + 1}")

    def _text(self, text: str) -> str:
        text = self._normalizer.normalize(without_personal(text))
        if len(text) > BINARY and " " not in text and "\n" not in text:
            return f"{{{{sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}}}}}"
        return text


def _blank(block: Any) -> bool:
    return isinstance(block, dict) and "text" in block and not str(block["text"]).strip()


def _is_empty(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "user" and message.get("content") == []
