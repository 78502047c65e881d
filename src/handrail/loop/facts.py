"""What a transcript keeps of a run beside what is said: when the model was asked and answered, and at what cost."""

from hashlib import sha256
from typing import Any

from handrail.conversation.request import Request
from handrail.conversation.stream import Usage
from handrail.loop.events import RequestSent, RunEnded

DIGITS = 12


class RequestFacts:
    """The facts about the requests of one run."""

    def __init__(self) -> None:
        self._last: Request | None = None
        self._prefix: dict[str, str] = {}

    def of(self, sent: RequestSent) -> dict[str, Any]:
        """A request. Its `prefix` is made of digests of the system prompt and of the tools, which caches depend on."""
        request, last = sent.request, self._last
        if last is None or not _has_same_prefix(request, last):
            self._prefix = _prefix_digests(request)
        self._last = request
        return {
            "turn": sent.turn,
            "attempt": sent.attempt,
            "why": sent.why.value,
            "model": request.model,
            "messages": sent.messages,
            "prefix": self._prefix,
        }


def _has_same_prefix(request: Request, other: Request) -> bool:
    """Whether both hold the same objects before the history, as those of a run do unless its tools change."""
    return request.system is other.system and request.tools is other.tools and request.activated is other.activated


def _prefix_digests(request: Request) -> dict[str, str]:
    system, tools = sha256(), sha256()
    for part in request.system:
        system.update(part.encode("utf-8", "replace") + b"\0")
    for tool in request.tools:
        if not tool.deferred or tool.name in request.activated:
            tools.update(tool.definition + b"\0")
    return {"system": system.hexdigest()[:DIGITS], "tools": tools.hexdigest()[:DIGITS]}


def answer_facts(message_id: str, model: str, usage: Usage, dollars: float | None, turn: int) -> dict[str, Any]:
    """A complete answer: its tokens, and what it cost; None if the price is not known."""
    tokens = {
        "input": usage.fresh_input,
        "output": usage.whole_output,
        "cache_read": usage.cache_read_tokens or 0,
        "cache_write": usage.cache_write_tokens or 0,
    }
    return {"id": message_id, "model": model, "turn": turn, "usage": tokens, "dollars": dollars}


def end_facts(ended: RunEnded) -> dict[str, Any]:
    """The end of a run, with what it and its sub-agents used."""
    spent = ended.spent.values()
    return {
        "move": ended.move.value,
        "why": ended.why.value,
        "problem": ended.problem or (ended.failure.message if ended.failure and ended.is_error else ""),
        "turns": ended.turns,
        "seconds": round(ended.seconds, 6),
        "model_seconds": round(ended.model_seconds, 6),
        "tokens": sum(each.tokens for each in spent),
        "dollars": ended.dollars,
    }
