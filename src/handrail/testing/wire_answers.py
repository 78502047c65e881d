"""Answers as model servers send them: the events of three wire formats, and their non-streaming forms."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from handrail.conversation.blocks import AssistantBlock, BrokenToolUse, ServerBlock, Text, Thinking, ToolUse
from handrail.records import record

Json = dict[str, Any]


@record
class ScriptedAnswer:
    """The content of an answer. `piece` is the number of characters per delta (0 = one delta per block)."""

    content: Sequence[AssistantBlock]
    stop_reason: str
    model: str
    input_tokens: int
    output_tokens: int
    piece: int = 0

    @property
    def has_calls(self) -> bool:
        """Whether it asks for tools."""
        return any(isinstance(block, ToolUse | BrokenToolUse) for block in self.content)

    def pieces(self, text: str) -> Iterator[str]:
        """`text` in deltas."""
        step = self.piece or max(1, len(text))
        return (text[at : at + step] for at in range(0, len(text), step))


def _arguments(block: ToolUse | BrokenToolUse) -> str:
    return json.dumps(block.input) if isinstance(block, ToolUse) else block.raw_input


def _event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def anthropic_events(answer: ScriptedAnswer) -> Iterator[bytes]:
    """The Messages stream."""
    usage = {"input_tokens": answer.input_tokens, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": answer.model, "content": []}
    yield _event("message_start", message={**message, "usage": usage})
    for index, block in enumerate(answer.content):
        start, kind, key, text = _anthropic_parts(block)
        yield _event("content_block_start", index=index, content_block=start)
        for piece in answer.pieces(text):
            yield _event("content_block_delta", index=index, delta={"type": kind, key: piece})
        if isinstance(block, Thinking):
            signature = block.raw.get("signature", "signed")
            yield _event("content_block_delta", index=index, delta={"type": "signature_delta", "signature": signature})
        yield _event("content_block_stop", index=index)
    reason = answer.stop_reason or ("tool_use" if answer.has_calls else "end_turn")
    yield _event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": answer.output_tokens})
    yield _event("message_stop")


def _anthropic_parts(block: AssistantBlock) -> tuple[Json, str, str, str]:
    match block:
        case Text():
            return {"type": "text", "text": ""}, "text_delta", "text", block.text
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking", block.text
        case ToolUse() | BrokenToolUse():
            start = {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
            return start, "input_json_delta", "partial_json", _arguments(block)
        case ServerBlock():
            return dict(block.raw), "", "", ""


def anthropic_whole(answer: ScriptedAnswer) -> Json:
    """The Messages answer in one piece."""
    content: list[Json] = []
    for block in answer.content:
        start, _, _, text = _anthropic_parts(block)
        match block:
            case Text():
                start["text"] = text
            case Thinking():
                start |= {"thinking": text, "signature": block.raw.get("signature", "signed")}
            case ToolUse():
                start["input"] = dict(block.input)
            case _:
                pass
        content.append(start)
    reason = answer.stop_reason or ("tool_use" if answer.has_calls else "end_turn")
    usage = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": answer.model}
    return {**head, "content": content, "stop_reason": reason, "usage": usage}


def chat_events(answer: ScriptedAnswer) -> Iterator[bytes]:
    """The chat.completions stream."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": answer.model}

    def chunk(delta: Json, reason: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        return b"data: " + json.dumps({**head, "choices": choices}).encode() + b"\n\n"

    yield chunk({"role": "assistant", "content": ""})
    number = 0
    for block in answer.content:
        match block:
            case Text():
                yield from (chunk({"content": piece}) for piece in answer.pieces(block.text))
            case Thinking():
                yield from (chunk({"reasoning_content": piece}) for piece in answer.pieces(block.text))
            case ToolUse() | BrokenToolUse():
                function = {"name": block.name, "arguments": ""}
                yield chunk(
                    {"tool_calls": [{"index": number, "id": block.id, "type": "function", "function": function}]}
                )
                for piece in answer.pieces(_arguments(block)):
                    yield chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
                number += 1
            case ServerBlock():
                pass
    yield chunk({}, answer.stop_reason or ("tool_calls" if answer.has_calls else "stop"))
    usage = {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens}
    yield b"data: " + json.dumps({**head, "choices": [], "usage": usage}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def chat_whole(answer: ScriptedAnswer) -> Json:
    """The chat.completions answer in one piece."""
    message: Json = {"role": "assistant"}
    message["content"] = "".join(block.text for block in answer.content if isinstance(block, Text)) or None
    thinking = "".join(block.text for block in answer.content if isinstance(block, Thinking))
    if thinking:
        message["reasoning_content"] = thinking
    calls = [block for block in answer.content if isinstance(block, ToolUse | BrokenToolUse)]
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
            for call in calls
        ]
    reason = answer.stop_reason or ("tool_calls" if calls else "stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens},
    }


def _item(number: int, block: AssistantBlock) -> Json:
    match block:
        case Text():
            content = [{"type": "output_text", "text": block.text, "annotations": []}]
            return {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}
        case Thinking():
            summary = [{"type": "summary_text", "text": block.text}]
            return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": "sealed"}
        case ToolUse() | BrokenToolUse():
            call = {"type": "function_call", "id": f"fc_{number}", "call_id": block.id, "name": block.name}
            return {**call, "arguments": _arguments(block), "status": "completed"}
        case ServerBlock():
            return dict(block.raw)


def responses_events(answer: ScriptedAnswer) -> Iterator[bytes]:
    """The Responses stream."""
    yield _event("response.created", response={"id": "resp_1", "model": answer.model, "status": "in_progress"})
    for number, block in enumerate(answer.content):
        item = _item(number, block)
        place = {"output_index": number, "item_id": item.get("id", "")}
        bare = item | {key: type(item[key])() for key in ("content", "summary", "arguments") if key in item}
        yield _event("response.output_item.added", output_index=number, item=bare)
        match block:
            case Text():
                for piece in answer.pieces(block.text):
                    yield _event("response.output_text.delta", **place, content_index=0, delta=piece)
            case Thinking():
                for piece in answer.pieces(block.text):
                    yield _event("response.reasoning_summary_text.delta", **place, summary_index=0, delta=piece)
            case ToolUse() | BrokenToolUse():
                for piece in answer.pieces(_arguments(block)):
                    yield _event("response.function_call_arguments.delta", **place, delta=piece)
            case ServerBlock():
                pass
        yield _event("response.output_item.done", output_index=number, item=item)
    whole = responses_whole(answer)
    yield _event(f"response.{whole['status']}", response=whole)


def responses_whole(answer: ScriptedAnswer) -> Json:
    """The Responses answer in one piece."""
    return {
        "id": "resp_1",
        "object": "response",
        "model": answer.model,
        "status": answer.stop_reason or "completed",
        "output": [_item(number, block) for number, block in enumerate(answer.content)],
        "usage": {
            "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
        },
    }


# by the end of the request's path
FORMATS: dict[str, tuple[str, Callable[[ScriptedAnswer], Iterator[bytes]], Callable[[ScriptedAnswer], Json]]] = {
    "/messages": ("anthropic", anthropic_events, anthropic_whole),
    "/chat/completions": ("openai", chat_events, chat_whole),
    "/responses": ("openai-responses", responses_events, responses_whole),
}
