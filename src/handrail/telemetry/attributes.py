"""The attributes of spans, from what a run is made of."""

import json
from collections.abc import Sequence
from typing import Any

from handrail.conversation.blocks import Text, Thinking, ToolUse
from handrail.conversation.messages import AssistantMessage, UserMessage
from handrail.conversation.redact import Redactor
from handrail.conversation.stream import Usage
from handrail.records import record
from handrail.telemetry import conventions as names
from handrail.tools.outcome import Outcome, Status
from handrail.tools.permission import Decision, Opinion
from handrail.tools.pool import AnyTool

MAX_NAME = 200
MAX_CONTENT = 20_000
FAILED = frozenset((Status.ERROR, Status.DENIED, Status.CANCELLED, Status.DISCARDED))


def safe(text: str, most: int = MAX_NAME) -> str:
    """The text as every receiver can read it: whole characters only, and not too many of them."""
    text = text[:most]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@record
class Contents:
    """What may be told of what was said. Off, nothing is."""

    redactor: Redactor
    on: bool = False

    def write(self, value: Any) -> str:
        """A value as JSON, without secrets, cut if it is long."""
        return safe(json.dumps(self.redactor.value(value), ensure_ascii=False, default=str), MAX_CONTENT)

    def prompt(self, message: UserMessage) -> dict[str, object]:
        """The prompt of a run."""
        return {names.INPUT_MESSAGES: self.write([_message("user", message.content)])} if self.on else {}

    def answer(self, message: AssistantMessage) -> dict[str, object]:
        """An answer of a model."""
        return {names.OUTPUT_MESSAGES: self.write([_message("assistant", message.content)])} if self.on else {}

    def call(self, outcome: Outcome) -> dict[str, object]:
        """The input and the result of a call."""
        if not self.on:
            return {}
        given, result = self.write(dict(outcome.use.input)), self.write(outcome.result.text)
        return {names.CALL_ARGUMENTS: given, names.CALL_RESULT: result}

    def reason(self, opinion: Opinion) -> dict[str, object]:
        """Why a layer decided so: this may quote a command."""
        return {names.REASON: safe(self.redactor.text(opinion.reason), MAX_CONTENT)} if self.on else {}


def _message(role: str, blocks: Sequence[object]) -> dict[str, object]:
    parts: list[dict[str, object]] = []
    for block in blocks:
        match block:
            case Text(text):
                parts.append({"type": "text", "content": text})
            case ToolUse(call_id, name, given):
                parts.append({"type": "tool_call", "id": call_id, "name": name, "arguments": dict(given)})
            case Thinking(text):
                parts.append({"type": "reasoning", "content": text})
            case _:
                parts.append({"type": type(block).__name__.lower()})
    return {"role": role, "parts": parts}


def usage_attributes(usage: Usage) -> dict[str, object]:
    """The tokens of a request and its answer."""
    counts = {
        names.INPUT_TOKENS: usage.whole_input,
        names.OUTPUT_TOKENS: usage.whole_output,
        names.CACHE_READ_TOKENS: usage.cache_read_tokens,
        names.CACHE_WRITE_TOKENS: usage.cache_write_tokens,
    }
    return {name: count for name, count in counts.items() if count is not None}


def call_attributes(outcome: Outcome, tool: AnyTool | None) -> dict[str, object]:
    """What a call was, how it ended, and how long each stage took."""
    times, status = outcome.timings, outcome.status
    found: dict[str, object] = {
        names.OPERATION: names.EXECUTE_TOOL,
        names.TOOL_NAME: safe(outcome.use.name),
        names.TOOL_TYPE: "function",
        names.CALL_ID: safe(outcome.use.id),
        names.STATUS: status.value,
        names.QUEUED: times.queued,
        names.VALIDATED: times.validated,
        names.DECIDED: times.decided,
        names.RAN: times.ran,
        names.FITTED: times.fitted,
    }
    if tool is not None and tool.mcp is not None:
        found |= {
            names.TOOL_TYPE: "extension",
            names.MCP_METHOD: "tools/call",
            names.MCP_SERVER: safe(tool.mcp.server),
        }
    if status in FAILED:
        found[names.ERROR_TYPE] = error_type(outcome)
        found[names.CAUSE] = outcome.cause.value
    return found


def error_type(outcome: Outcome) -> str:
    """Why a call did not succeed, in a word; that of a refused one is always the same."""
    return names.DENIED if outcome.status is Status.DENIED else outcome.cause.value


def deciding_opinion(decision: Decision) -> Opinion | None:
    """The opinion that decided: the strongest with this verdict."""
    if len(decision.opinions) == 1:
        return decision.opinions[0]
    same = [each for each in decision.opinions if each.verdict is decision.verdict]
    return max(same, key=lambda each: each.strength, default=None)


def decision_attributes(decision: Decision, contents: Contents) -> dict[str, object]:
    """Whether a call was allowed, by which layer, and by which rule of which file."""
    opinion = deciding_opinion(decision)
    if opinion is None:
        return {names.VERDICT: decision.verdict.value}
    found: dict[str, object] = {names.VERDICT: decision.verdict.value, names.LAYER: opinion.layer}
    if opinion.source:
        place, _, rule = opinion.source.partition(": ")
        found[names.SOURCE], found[names.RULE] = safe(place), safe(rule)
    return {**found, **contents.reason(opinion)} if contents.on else found
