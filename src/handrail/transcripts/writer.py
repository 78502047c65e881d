"""
Writes a conversation to its transcript as it happens.

    answer     one `assistant` line per block, as soon as the block is complete; `settled` when it joins the history
    calls      `began` before a call starts, a `user` line with its result when it is over
    the rest   one line per message
    compaction `replaced`: the messages that stay, and the new ones
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from handrail.conversation.block_json import OWN as BLOCK_OWN
from handrail.conversation.block_json import THOUGHTS, Block, Value, block_value
from handrail.conversation.blocks import AssistantBlock, Text, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Attachment, Message, SystemNote, UserMessage
from handrail.conversation.redact import Redactor
from handrail.errors import SessionError
from handrail.transcripts.log import OWN, VERSION, Log
from handrail.transcripts.rebuild import SpentSoFar

SHOWN = 500
FIXED_KEYS = frozenset({"type", "id", "tool_use_id", "name"})

Clean: TypeAlias = Callable[[Any], Any]
"""Removes the secrets from a JSON value."""


def new_id() -> str:
    """A random UUID; the uuid module costs start-up time."""
    digits = bytearray(os.urandom(16))
    digits[6], digits[8] = digits[6] & 0x0F | 0x40, digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def timestamp() -> str:
    """Now, in the form that transcripts use."""
    now = time.time()
    return f"{_second(int(now))}.{int(now * 1000) % 1000:03d}Z"


@lru_cache(maxsize=1)
def _second(now: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))


class TranscriptWriter:
    """
    Writes one conversation to one log; see `conversation.transcript.Transcript` for the promise.

    `kept` are the messages that the log already holds when a session continues. `agent` is the id of the sub-agent that
    has it, if any. Secrets are removed before writing.
    """

    def __init__(
        self,
        log: Log,
        session_id: str,
        cwd: str,
        redactor: Redactor,
        *,
        kept: Sequence[Message] = (),
        last: str | None = None,
        parent: str = "",
        title: str = "",
        agent: str = "",
        spent: SpentSoFar = SpentSoFar(),  # noqa: B008  # frozen
        now: Callable[[], str] = timestamp,
    ) -> None:
        self.session_id = session_id
        self.failure: SessionError | None = None
        self._log = log
        self._cwd = cwd
        self._clean: Clean = redactor.value
        self._now = now
        self._sidechain: Value = {"isSidechain": True, "agentId": agent} if agent else {}
        self._messages = list(kept)
        self._has_written = False
        self._last = last
        self._blocks: dict[int, AssistantBlock] = {}
        self._results: dict[str, ToolResult] = {}
        self._title = title
        self._spent = spent
        self.next_id = ""
        """The id that the next message of the user gets; empty = a new one."""
        self.ids: dict[int, str] | None = None
        """The ids of the lines of blocks and results, by the identity of these objects; None = not collected."""
        # nothing is written before the first message: a run that fails at its start leaves no transcript behind
        opened = {"type": OWN, "event": "opened", "version": VERSION, "cwd": cwd}
        self._waiting: list[Value] = [{**opened, "parent": parent} if parent else opened] if log.new else []

    @property
    def path(self) -> Path:
        """The file of the transcript; it is made with the first message."""
        return self._log.path

    # What happens in a conversation

    def begin_prompt(self, prompt_id: str) -> None:
        """Give the next message of the user this id, and forget the ids of older lines."""
        self.next_id = prompt_id
        if self.ids:
            self.ids.clear()  # else another object at the same address could get an old id

    def add_message(self, message: Message) -> None:
        """Write a message that joins the history."""
        match message:
            case AssistantMessage():
                self._settle(message)
            case UserMessage(content):
                self._user(content)
            case Attachment(kind, content):
                self._line("user", _with_role("user", content, self._clean), {"isMeta": True, "attachment": kind})
            case SystemNote(text, level):
                self._add({"type": "system", "subtype": "note", "content": self._clean(text), "level": level})
        self._messages.append(message)

    def replace_messages(self, messages: Sequence[Message]) -> None:
        """Write that these messages replace the history; those that stay are only referred to."""
        self._event("replaced", {"messages": self._differences(messages)})
        self._messages = list(messages)

    def add_block(self, message_id: str, model: str, block: AssistantBlock, slot: int) -> None:
        """Write a complete block of an unfinished answer."""
        self._blocks[slot] = block
        message = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [_clean_value(block, self._clean)],
            "stop_reason": None,
        }
        self._line("assistant", message, {"slot": slot})
        self._remember(block)

    def discard_blocks(self) -> None:
        """Write that the blocks since the last message are void."""
        if self._blocks:
            self._blocks, self._results = {}, {}
            self._event("discarded")

    def start_call(self, use: ToolUse) -> None:
        """Write that a call starts; raises `failure` if it cannot be written."""
        self._event("began", {"id": use.id, "name": use.name})
        if self.failure is not None:
            raise self.failure

    def end_call(self, result: ToolResult, facts: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Write the result of a call, and how it ended."""
        self._results[result.tool_use_id] = result
        self._line("user", _with_role("user", (result,), self._clean), {"ending": dict(facts)} if facts else facts)
        self._remember(result)

    def add_fact(self, event: str, values: Mapping[str, Any]) -> None:
        """Write what happens to the run, once something was said in it."""
        if not self._waiting and self.failure is None:
            if event == "answered":
                self._spent = self._spent.plus(values.get("dollars"))
            spent = {"answers": self._spent.answers, "dollars": self._spent.dollars}
            so_far = {"session": spent} if event == "ended" else {}  # lists read only the end of a long file
            self._event(event, self._clean({**values, **so_far}))
            self.failure = None  # the conversation is whole without it

    def defer_call(self, use: ToolUse, result: ToolResult) -> None:
        """
        Write that a call is deferred. Its placeholder result is not written; readers derive it from this record.

        A call that lost a secret is another call, which must not be resumed in place of this one: it is not `whole`.
        """
        self._results[use.id] = result
        value = block_value(use)
        self._event("deferred", {"id": use.id, "whole": clean_block(value, self._clean) == value})

    def amend_results(self, results: UserMessage) -> None:
        """Write results that replace the newest message."""
        self._user(results.content)
        self._messages[-1] = results

    def change_folder(self, cwd: str) -> None:
        """Write that later calls start in this folder."""
        self._cwd = cwd
        self._event("moved", {"cwd": cwd})

    def adopt(self, messages: Sequence[Message]) -> None:
        """Begin with the conversation of another transcript."""
        if prompt := next((text for each in messages if (text := _prompt(each))), ""):
            self._event("adopted", {"prompt": self._clean(prompt[:SHOWN])})  # lists do not read what follows
        self._event("replaced", {"messages": [message_value(message, self._clean) for message in messages]})
        self._messages = list(messages)

    def set_title(self, title: str) -> None:
        """Write the title. In a new transcript it waits for the first message."""
        self._title = title
        if self._waiting:
            self._waiting.append({"type": OWN, "event": "title", "title": self._clean(title)})
        else:
            self._event("title", {"title": self._clean(title)})

    def close(self) -> None:
        """Close the file."""
        if self._title and self._has_written:
            self._event("title", {"title": self._clean(self._title)})  # lists read only both ends of a long file
        self._log.close()

    # How it is written

    def _settle(self, message: AssistantMessage) -> None:
        written = tuple(self._blocks[slot] for slot in sorted(self._blocks))
        values: Value = {"model": message.model, "stop_reason": message.stop_reason}
        if written != message.content:
            values["content"] = _with_role("assistant", message.content, self._clean)["content"]
        self._event("settled", values)
        self._blocks = {}

    def _user(self, content: Sequence[Any]) -> None:
        unwritten = tuple(
            block
            for block in content
            if not (isinstance(block, ToolResult) and self._results.get(block.tool_use_id) == block)
        )
        self._results = {}
        if unwritten:
            self._line("user", _with_role("user", unwritten, self._clean), {"uuid": self.next_id or new_id()})
            self.next_id = ""

    def _remember(self, block: AssistantBlock | ToolResult) -> None:
        if self.ids is not None and self._last is not None:
            self.ids[id(block)] = self._last

    def _line(self, kind: str, message: Value, extra: Mapping[str, Any] = MappingProxyType({})) -> None:
        line = {"type": kind, "uuid": new_id(), "parentUuid": self._last, **extra, "message": message}
        self._add(line)
        self._last = line["uuid"]

    def _event(self, event: str, values: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._add({"type": OWN, "event": event, **values})

    def _add(self, value: Value) -> None:
        """Write a new record behind those that wait for it."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            self._write(each)
        self._write(value)

    def _write(self, value: Value) -> None:
        """Write a record; when and where it was made becomes part of it."""
        if self.failure is not None:
            return
        value["sessionId"] = self.session_id
        value["timestamp"] = self._now()
        value |= self._sidechain
        if value["type"] != OWN:
            value["cwd"] = self._cwd
        try:
            self._log.add(value)
        except SessionError as error:
            self.failure = error
        self._has_written = True

    def _differences(self, after: Sequence[Message]) -> list[Value]:
        """The new messages as values, and runs of old ones as `{"keep": [first, end]}`."""
        places = {id(message): place for place, message in enumerate(self._messages)}
        found: list[Value] = []
        for message in after:
            place = places.get(id(message))
            if place is None:
                found.append(message_value(message, self._clean))
            elif found and "keep" in found[-1] and found[-1]["keep"][1] == place:
                found[-1]["keep"][1] = place + 1
            else:
                found.append({"keep": [place, place + 1]})
        return found


def _prompt(message: Message) -> str:
    """The text of a user message."""
    words = message.content if isinstance(message, UserMessage) else ()
    return " ".join(block.text for block in words if isinstance(block, Text))


def message_value(message: Message, clean: Clean = lambda value: value) -> Value:
    """A message as one JSON value."""
    match message:
        case SystemNote(text, level):
            return {"role": "system", "content": clean(text), "level": level}
        case AssistantMessage(content, model, stop_reason):
            return {**_with_role("assistant", content, clean), "model": model, "stop_reason": stop_reason}
        case Attachment(kind, content):
            return {**_with_role("user", content, clean), "attachment": kind}
        case UserMessage(content):
            return _with_role("user", content, clean)


def _with_role(role: str, content: Sequence[Any], clean: Clean) -> Value:
    return {"role": role, "content": [_clean_value(block, clean) for block in content]}


def _clean_value(block: Block, clean: Clean) -> Value:
    """A block as a JSON value without secrets."""
    if type(block) is ToolResult:
        parts = [_clean_value(part, clean) for part in block.content]
        return {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": parts, "is_error": block.is_error}
    if type(block) is Text:
        return {"type": "text", "text": clean(block.text)}
    return clean_block(block_value(block), clean)


def clean_block(value: Value, clean: Clean) -> Value:
    """A block, as a JSON value, without secrets; ids, types and encoded data stay as they are."""
    match value["type"]:
        case "tool_result":
            return {**value, "content": [clean_block(part, clean) for part in value["content"]]}
        case "image":
            return value
        case "document":
            return {**value, "title": clean(value["title"])}
        case kind if kind in THOUGHTS:
            return _clean_thinking(value, clean)
        case _:
            return {key: each if key in FIXED_KEYS else clean(each) for key, each in value.items()}


def _clean_thinking(value: Value, clean: Clean) -> Value:
    """The provider rejects a signed thought that was changed, so one with a secret loses its signature."""
    content = {key: each for key, each in value.items() if key in ("thinking", BLOCK_OWN)}
    if clean(content) == content:
        return value
    return {"type": "thinking", "thinking": clean(value["thinking"]), "signature": ""}
