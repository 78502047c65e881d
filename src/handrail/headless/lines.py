"""Loop events as JSON lines, in the shape that programs around agents already read."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from handrail import __version__
from handrail.app.answers import WHAT_HAPPENED
from handrail.conversation.blocks import (
    AssistantBlock,
    BrokenToolUse,
    Document,
    Image,
    ServerBlock,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
    UserBlock,
)
from handrail.conversation.messages import UserMessage
from handrail.conversation.stream import (
    BlockEnd,
    BlockStart,
    Delta,
    MessageEnd,
    MessageStart,
    StreamRetry,
    Usage,
    UsageUpdate,
)
from handrail.hooks.news import HookNews
from handrail.loop.events import (
    AnswerDiscarded,
    BlockComplete,
    Compacted,
    LoopEvent,
    MessageAdded,
    QueuedMessageTaken,
    RunEnded,
    RunStarted,
)
from handrail.loop.spending import Spent
from handrail.loop.state import Why
from handrail.tools.delegation import AgentNews
from handrail.tools.events import CallFinished, CallProgress
from handrail.tools.outcome import Outcome

Line = dict[str, Any]

SUBTYPES = {
    Why.COMPLETED: "success",
    Why.REFUSED: "success",
    Why.HOOK_STOPPED: "success",
    Why.MODEL_FAILED: "success",  # readers expect an API failure as an erroneous success with its status
    Why.MAX_TURNS: "error_max_turns",
    Why.MAX_DOLLARS: "error_max_budget_usd",
    Why.UNFIT_ANSWERS: "error_max_structured_output_retries",
}


def new_id() -> str:
    """A random id in the usual form; the uuid module costs start-up time."""
    digits = bytearray(os.urandom(16))
    digits[6], digits[8] = digits[6] & 0x0F | 0x40, digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Lines:
    """Turns the events of one run into lines. Every line carries the session and an id of its own."""

    def __init__(
        self, session_id: str, *, partial: bool = False, mode: str = "default", hook_events: bool = False
    ) -> None:
        self.session_id = session_id
        self._partial = partial
        self.mode = mode
        self._hook_events = hook_events
        self.facts: Line = {}
        """What `init` lines say beside that: servers, commands, agents."""
        self.ids: Mapping[Any, str] = {}
        """The ids that blocks and results have in the session, see `SessionScribe.ids`."""
        self._kinds: dict[int, str] = {}

    def of(self, event: LoopEvent) -> Iterator[Line]:
        """The lines that tell of an event; none for what readers of lines do not need."""
        for line in self._of(event):
            yield {**line, "session_id": self.session_id, "uuid": self.ids.get(_key(event), "") or new_id()}

    def said(self, message: UserMessage, uuid: str) -> Line:
        """A prompt, said back to whoever gave it."""
        line = _user([wire_block(block) for block in message.content])
        return {**line, "session_id": self.session_id, "uuid": uuid, "isReplay": True}

    def _of(self, event: LoopEvent) -> Iterable[Line]:
        match event:
            case RunStarted():
                yield self._init(event)
            case BlockComplete():
                yield _assistant(event)
            case CallFinished(outcome=outcome):
                yield _result_line(outcome)
            case CallProgress(use=use, progress=AgentNews(event=inner)):
                yield from self._inside(inner, use.id)
            case QueuedMessageTaken(message) | MessageAdded(UserMessage() as message):
                yield _user([wire_block(block) for block in message.content])
            case RunEnded():
                yield result(event)
            case Compacted() | StreamRetry() | AnswerDiscarded():
                yield _aside(event)
            case _:
                yield from self._hook(news_of(event))
        if self._partial:
            yield from ({"type": "stream_event", "event": raw, "parent_tool_use_id": None} for raw in self._raw(event))

    def _inside(self, event: object, call_id: str) -> Iterator[Line]:
        """What a sub-agent says and does, as part of the call that it works for."""
        match event:
            case BlockComplete():
                yield {**_assistant(event), "parent_tool_use_id": call_id}
            case CallFinished(outcome=outcome):
                yield {**_result_line(outcome), "parent_tool_use_id": call_id}
            case _:
                pass

    def _hook(self, news: HookNews | None) -> Iterator[Line]:
        """What hooks say to a person is always told; that they ran only on request."""
        if news is None:
            return
        about = {"hook_id": news.id, "hook_name": news.name, "hook_event": news.event}
        if news.stage == "message":
            yield _system("informational", text=news.message, hook_event=news.event)
        elif self._hook_events and news.stage == "started":
            yield _system("hook_started", **about, status_message=news.message)
        elif self._hook_events:
            outcome = {"exit_code": news.exit_code, "outcome": news.outcome}
            yield _system("hook_response", **about, stdout=news.stdout, stderr=news.stderr, **outcome)

    def _init(self, event: RunStarted) -> Line:
        return (
            _system(
                "init",
                cwd=str(event.cwd),
                tools=list(event.tools),
                mcp_servers=[],
                model=event.model,
                permissionMode=self.mode,
                slash_commands=[],
                agents=[],
                skills=[],
                plugins=[],
                output_style="default",
                handrail_version=__version__,
            )
            | self.facts
        )

    def _raw(self, event: LoopEvent) -> Iterator[Line]:
        """A stream event the way the Messages API sends it, whatever provider it came from."""
        match event:
            case MessageStart(id=message_id, model=model):
                message = {"id": message_id, "type": "message", "role": "assistant", "model": model, "content": []}
                yield {"type": "message_start", "message": message}
            case BlockStart(slot, kind):
                self._kinds[slot] = kind
                yield {"type": "content_block_start", "index": slot, "content_block": _opening(event)}
            case Delta(slot, text):
                yield {
                    "type": "content_block_delta",
                    "index": slot,
                    "delta": _delta(self._kinds.get(slot, "text"), text),
                }
            case BlockEnd(slot):
                yield {"type": "content_block_stop", "index": slot}
            case UsageUpdate(used):
                yield {"type": "message_delta", "delta": {}, "usage": usage(used)}
            case MessageEnd(stop_reason):
                yield {"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": None}}
                yield {"type": "message_stop"}
            case _:
                pass


def _key(event: LoopEvent) -> object:
    """Under which key the session knows what the event tells of."""
    match event:
        case BlockComplete(message_id=message_id, slot=slot):
            return message_id, slot
        case CallFinished(outcome=outcome):
            return outcome.use.id
        case _:
            return None


def news_of(event: LoopEvent) -> HookNews | None:
    """What an event tells of hooks: of those of a run, or of those of a call."""
    match event:
        case (HookNews() as news) | CallProgress(progress=HookNews() as news):
            return news
        case _:
            return None


def _opening(event: BlockStart) -> Line:
    match event.kind:
        case "tool_use":
            return {"type": "tool_use", "id": event.id, "name": event.name, "input": {}}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case _:
            return {"type": "text", "text": ""}


def _delta(kind: str, text: str) -> Line:
    match kind:
        case "tool_use":
            return {"type": "input_json_delta", "partial_json": text}
        case "thinking":
            return {"type": "thinking_delta", "thinking": text}
        case _:
            return {"type": "text_delta", "text": text}


def _aside(event: Compacted | StreamRetry | AnswerDiscarded) -> Line:
    match event:
        case Compacted():
            return _system("compact_boundary", trigger=event.kind, pre_tokens=event.tokens_before, note=event.note)
        case StreamRetry(failure=failure):
            return _system(
                "api_retry",
                attempt=event.attempt,
                retry_delay_ms=round(event.delay * 1000),
                error_status=failure.status,
                error=failure.message,
            )
        case AnswerDiscarded(failure=failure):
            return _system("informational", text=f"the answer broke off and is asked for again: {failure.message}")


def _system(subtype: str, **values: Any) -> Line:
    return {"type": "system", "subtype": subtype, **values}


def _user(content: list[Line]) -> Line:
    return {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}


def _assistant(event: BlockComplete) -> Line:
    message = {
        "id": event.message_id,
        "type": "message",
        "role": "assistant",
        "model": event.model,
        "content": [wire_block(event.block)],
        "stop_reason": None,
    }
    return {"type": "assistant", "message": message, "parent_tool_use_id": None}


def _result_line(outcome: Outcome) -> Line:
    line = _user([wire_block(outcome.result)])
    data = outcome.output.data if outcome.output else None
    line["tool_use_result"] = f"Error: {outcome.result.text}" if outcome.result.is_error else jsonable(data)
    return line


def jsonable(value: object) -> Any:
    """The value as JSON has it; what it has no word for becomes text."""
    from pydantic_core import to_jsonable_python  # noqa: PLC0415  # no first request waits for it

    return to_jsonable_python(value, fallback=str)


def wire_block(block: AssistantBlock | UserBlock | ToolReference) -> Line:
    """A block in the Messages format."""
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text, raw):
            return dict(raw) or {"type": "thinking", "thinking": text, "signature": ""}
        case ToolUse(call_id, name, value):
            return {"type": "tool_use", "id": call_id, "name": name, "input": jsonable(value)}
        case BrokenToolUse(call_id, name):
            return {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        case ServerBlock(raw=raw):
            return dict(raw)
        case Image(data, media_type):
            return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
        case Document(data, media_type, title):
            source = {"type": "base64", "media_type": media_type, "data": data}
            return {"type": "document", "source": source, "title": title}
        case ToolReference(name):
            return {"type": "tool_reference", "tool_name": name}
        case ToolResult(call_id, content, is_error):
            return {
                "type": "tool_result",
                "tool_use_id": call_id,
                "content": [wire_block(part) for part in content],
                "is_error": is_error,
            }


def usage(used: Usage) -> Line:
    """Token counts under the names readers know; what the provider did not say is zero."""
    return {
        "input_tokens": used.fresh_input,
        "output_tokens": used.whole_output,
        "cache_read_input_tokens": used.cache_read_tokens or 0,
        "cache_creation_input_tokens": used.cache_write_tokens or 0,
    }


def result(event: RunEnded) -> Line:
    """The one result of a run."""
    line: Line = {
        "type": "result",
        "subtype": SUBTYPES.get(event.why, "error_during_execution"),
        "is_error": event.is_error,
        "duration_ms": round(event.seconds * 1000),
        "duration_api_ms": round(event.model_seconds * 1000),
        "num_turns": event.turns,
        "result": problem_of(event) or event.text if event.is_error else event.text,
        "stop_reason": event.stop_reason or None,
        "terminal_reason": event.why.value,
        "total_cost_usd": event.dollars,
        "usage": _total(event.spent),
        "modelUsage": {model: _model_usage(spent) for model, spent in event.spent.items()},
        "permission_denials": [
            {"tool_name": d.use.name, "tool_use_id": d.use.id, "tool_input": jsonable(d.use.input)}
            for d in event.denials
        ],
    }
    if event.structured is not None:
        line["structured_output"] = jsonable(event.structured)
    if event.failure and event.failure.status:
        line["api_error_status"] = event.failure.status
    if event.is_error:
        line["errors"] = [problem_of(event)]
    return line


def problem_of(event: RunEnded) -> str:
    """What went wrong, in one line; the reason's name where nobody said more."""
    said = (event.problem, event.failure.message if event.failure else "")
    return ": ".join(part for part in said if part) or WHAT_HAPPENED.get(event.why, event.why.value)


def _total(spent: Mapping[str, Spent]) -> Line:
    every = list(spent.values())
    return {
        "input_tokens": sum(s.input_tokens for s in every),
        "output_tokens": sum(s.output_tokens for s in every),
        "cache_read_input_tokens": sum(s.cache_read_tokens for s in every),
        "cache_creation_input_tokens": sum(s.cache_write_tokens for s in every),
    }


def _model_usage(spent: Spent) -> Line:
    return {
        "inputTokens": spent.input_tokens,
        "outputTokens": spent.output_tokens,
        "cacheReadInputTokens": spent.cache_read_tokens,
        "cacheCreationInputTokens": spent.cache_write_tokens,
        "costUSD": spent.dollars,
    }
