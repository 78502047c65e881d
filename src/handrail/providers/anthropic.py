"""Anthropic's Messages format: writes requests; `anthropic_reader` reads the answers."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from handrail.conversation.blocks import (
    UNKNOWN,
    AssistantBlock,
    BrokenToolUse,
    Document,
    Image,
    ResultBlock,
    ServerBlock,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
    UserBlock,
)
from handrail.conversation.messages import AssistantMessage
from handrail.conversation.request import Request, ToolDefinition
from handrail.lazy import lazy_pattern
from handrail.providers.anthropic_reader import AnthropicReader
from handrail.providers.api import Api, Headers, SharedPrefix, insert_marks, loaded_tools, wire_id, wire_name
from handrail.providers.quirks import Quirks
from handrail.providers.wire import dump, string

CACHE_MARK = b',"cache_control":{"type":"ephemeral"}'
DEFERRED_TOOLS_BETA = "advanced-tool-use-2025-11-20"
DEFAULT_MAX_TOKENS = 32_000
LOADED, MISSING = "is loaded now", "is not available now"
NO_NOTES: Mapping[str, str] = {}
MAX_TOKENS = (("claude-3-haiku", 4096), ("claude-3-opus", 4096), ("claude-3-sonnet", 4096), ("claude-3-5", 8192))
THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})


class AnthropicWriter:
    """
    Order on the wire: options, tools, system, messages. What changes from turn to turn is at the end.

    Cache marks go after the last built-in tool, the system prompt and the two newest user turns: the next request will
    hit the newest, this request hits the one before.
    """

    def __init__(self, quirks: Quirks, notes: Mapping[str, str] = NO_NOTES) -> None:
        self._quirks = quirks
        self._notes = notes
        """What is said of a tool in place of a reference: the api takes those to deferred tools of the request only."""
        self._ids = lazy_pattern(quirks.call_ids)
        self._mark = CACHE_MARK if quirks.cache_marks else b""
        self.key = f"anthropic:{quirks.tool_references}:{quirks.call_ids}:{sorted(notes.items())}"
        self._prefix = SharedPrefix(lambda request: self._tools(request) + self._system(request))

    def body(self, request: Request, stream: bool) -> bytes:
        options = dump(self._options(request, stream))[:-1]
        messages = insert_marks(request.history.encode(self._encoder(request)), self._mark)
        return b"".join((options, self._prefix.of(request), b',"messages":[', *messages, b"]}"))

    def _encoder(self, request: Request) -> "AnthropicWriter":
        """This one, or one with notes on tools that are gone with their server or by a rule, or are sent in full."""
        if not self._quirks.tool_references or not request.history.references:
            return self
        deferred = {tool.name: tool.deferred for tool in request.tools}
        others = [name for name in request.history.references if not deferred.get(name)]
        notes = {name: LOADED if name in deferred else MISSING for name in others}
        return AnthropicWriter(self._quirks, notes) if notes else self

    def headers(self, request: Request) -> Headers:
        """The beta features that this request uses."""
        betas = list(request.betas)
        if self._quirks.tool_references and any(tool.deferred for tool in request.tools):
            betas.append(DEFERRED_TOOLS_BETA)
        return (("anthropic-beta", ",".join(dict.fromkeys(betas))),) if betas else ()

    def assistant(self, message: AssistantMessage) -> bytes:
        """An answer with its thinking unchanged. An empty one is left out, because the api refuses it."""
        finished = {string(block.raw.get("tool_use_id")) for block in message.content if isinstance(block, ServerBlock)}
        blocks = [wire for block in message.content if (wire := self._assistant_block(block, finished)) is not None]
        return dump({"role": "assistant", "content": blocks}) if blocks else b""

    def user(self, blocks: Sequence[UserBlock]) -> tuple[bytes, int]:
        """A user's turn; the mark goes into its last block."""
        wire = [self._user_block(block) for block in blocks if not (isinstance(block, Text) and not block.text.strip())]
        body = dump({"role": "user", "content": wire or [{"type": "text", "text": "(nothing)"}]})
        return body, len(body) - len("}]}")

    def _options(self, request: Request, stream: bool) -> dict[str, Any]:
        limit = next((limit for name, limit in MAX_TOKENS if request.model.startswith(name)), DEFAULT_MAX_TOKENS)
        options: dict[str, Any] = {"model": request.model, "max_tokens": request.max_tokens or limit, "stream": stream}
        thinking = request.thinking
        if thinking.budget is not None:
            options["thinking"] = {"type": "enabled", "budget_tokens": thinking.budget}
            options["max_tokens"] = max(options["max_tokens"], thinking.budget + 1024)
        elif thinking.mode != "default":
            options["thinking"] = {"type": "disabled" if thinking.mode == "off" else "adaptive"}
        if thinking.display and options.get("thinking", {}).get("type") in ("enabled", "adaptive"):
            options["thinking"]["display"] = thinking.display
        output: dict[str, Any] = {}
        if request.task_budget is not None:
            output["task_budget"] = {"type": "tokens", "total": request.task_budget}
        if request.effort is not None:
            output["effort"] = "low" if request.effort == "minimal" else request.effort
        if request.schema is not None and self._quirks.json_schema:
            output["format"] = {"type": "json_schema", "schema": json.loads(request.schema)}
        if output:
            options["output_config"] = output
        return options

    def _tools(self, request: Request) -> bytes:
        if not request.tools:
            return b""
        native = self._quirks.tool_references
        tools = list(request.tools) if native else loaded_tools(request)
        last = request.tools[request.last_builtin] if request.last_builtin >= 0 else None
        return b',"tools":[' + b",".join(self._tool(tool, tool is last and not tool.deferred) for tool in tools) + b"]"

    def _tool(self, tool: ToolDefinition, last_builtin: bool) -> bytes:
        added = b',"defer_loading":true' if tool.deferred and self._quirks.tool_references else b""
        added += self._mark if last_builtin else b""
        return tool.definition[:-1] + added + b"}" if added else tool.definition

    def _system(self, request: Request) -> bytes:
        parts = [part for part in request.system if part.strip()]
        if not parts:
            return b""
        blocks = dump([{"type": "text", "text": part} for part in parts])
        return b',"system":' + blocks[:-2] + self._mark + b"}]"

    def _assistant_block(self, block: AssistantBlock, finished: set[str]) -> Mapping[str, Any] | None:
        match block:
            case Text():
                return {"type": "text", "text": block.text} if block.text.strip() else None
            case Thinking():
                return block.raw if block.raw.get("type") in THINKING_TYPES else None
            case ToolUse() | BrokenToolUse():
                extra = block.extra if isinstance(block, ToolUse) else {}
                caller = {"caller": extra["caller"]} if "caller" in extra else {}
                call = {"type": "tool_use", "id": wire_id(block.id, self._ids), "name": wire_name(block.name, 128)}
                return {**call, "input": block.input if isinstance(block, ToolUse) else {}, **caller}
            case ServerBlock():
                foreign = block.type == UNKNOWN or block.type.endswith("_call") or block.type.startswith("mcp_list")
                unfinished = block.type.endswith("_tool_use") and string(block.raw.get("id")) not in finished
                return None if foreign or unfinished else block.raw

    def _user_block(self, block: UserBlock | ResultBlock) -> Mapping[str, Any]:
        match block:
            case Text():
                return {"type": "text", "text": block.text}
            case Image():
                source = {"type": "base64", "media_type": block.media_type, "data": block.data}
                return {"type": "image", "source": source}
            case Document():
                return _document(block)
            case ToolReference() if self._is_reference(block):
                return {"type": "tool_reference", "tool_name": block.name}
            case ToolReference():
                return {"type": "text", "text": f"The tool {block.name} {self._notes.get(block.name, LOADED)}."}
            case ToolResult():
                return self._result(block)

    def _is_reference(self, block: UserBlock | ResultBlock) -> bool:
        return self._quirks.tool_references and isinstance(block, ToolReference) and block.name not in self._notes

    def _result(self, result: ToolResult) -> Mapping[str, Any]:
        parts = [part for part in result.content if not (isinstance(part, Text) and not part.text.strip())]
        if self._notes and any(map(self._is_reference, parts)):  # the api may not take references with notes
            parts = [part for part in parts if self._is_reference(part) or not isinstance(part, ToolReference)]
        content: object = [self._user_block(part) for part in parts]
        if len(parts) == 1 and isinstance(parts[0], Text):
            content = parts[0].text
        wire: dict[str, Any] = {"type": "tool_result", "tool_use_id": wire_id(result.tool_use_id, self._ids)}
        wire["content"] = content or ""
        if result.is_error:
            wire["content"] = content or "(no text)"
            wire["is_error"] = True
        return wire


def _document(block: Document) -> Mapping[str, Any]:
    title = {"title": block.title} if block.title else {}
    if block.media_type == "application/pdf":
        source = {"type": "base64", "media_type": block.media_type, "data": block.data}
    else:
        text = base64.b64decode(block.data).decode("utf-8", "replace")
        source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source, **title}


API = Api(
    name="anthropic",
    path="/v1/messages",
    auth="x-api-key",
    headers=(("anthropic-version", "2023-06-01"),),
    writer=AnthropicWriter,
    reader=AnthropicReader,
)
