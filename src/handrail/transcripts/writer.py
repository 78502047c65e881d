"""
Writes a conversation into its session as it happens.

    answer     one `assistant` line per block, as soon as the block is complete; `settled` when it stands in the history
    calls      `began` before a call starts, a `user` line with its result when it is over
    the rest   one line per message
    compaction `replaced`: which messages stay, and the new ones
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from handrail.conversation.blocks import AssistantBlock, Text, ToolResult, ToolUse
from handrail.conversation.coding import Value, block_value
from handrail.conversation.messages import AssistantMessage, Attachment, Message, SystemNote, UserMessage
from handrail.conversation.redact import Redactor
from handrail.errors import SessionError
from handrail.transcripts.clean import Clean, as_it_is, clean_block
from handrail.transcripts.log import OWN, VERSION, Log

SHOWN = 500


def new_id() -> str:
    """A random id in the usual form; the uuid module costs start-up time."""
    digits = bytearray(os.urandom(16))
    digits[6], digits[8] = digits[6] & 0x0F | 0x40, digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def timestamp() -> str:
    """Now, in the form that transcripts use."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"


class TranscriptWriter:
    """
    Keeps one conversation in one log; see `conversation.scribe.Scribe` for the promise.

    `kept` are the messages that the log already holds, when a session goes on. `agent` is the sub-agent whose
    conversation it is, if it is one's. Secrets are taken out on the way in.
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
        now: Callable[[], str] = timestamp,
    ) -> None:
        self.session_id = session_id
        self.failure: SessionError | None = None
        self._log = log
        self._cwd = cwd
        self._clean: Clean = redactor.value
        self._now = now
        self._aside: Value = {"isSidechain": True, "agentId": agent} if agent else {}
        self._messages = list(kept)
        self._said_something = False
        self._last = last
        self._blocks: dict[int, AssistantBlock] = {}
        self._results: dict[str, ToolResult] = {}
        self._title = title
        self.next_id = ""
        """The id that the next message of the user gets; empty = a new one."""
        self.ids: dict[int, str] | None = None
        """If somebody wants them: the ids of the lines of blocks and results, by the identity of these objects."""
        # nothing is written before something is said: a run that fails at its start leaves no session behind
        opened = {"type": OWN, "event": "opened", "version": VERSION, "cwd": cwd}
        self._waiting: list[Value] = [{**opened, "parent": parent} if parent else opened] if log.new else []

    # What happens in a conversation

    def begin_prompt(self, prompt_id: str) -> None:
        """The next message of the user gets this id. What was said before it and never asked for is let go of."""
        self.next_id = prompt_id
        if self.ids:
            self.ids.clear()  # else an id could be given to another object at the same place in memory

    def add_message(self, message: Message) -> None:
        """It stands in the history from now on."""
        match message:
            case AssistantMessage():
                self._settle(message)
            case UserMessage(content):
                self._user(content)
            case Attachment(kind, content):
                self._line("user", self._said("user", content), isMeta=True, attachment=kind)
            case SystemNote(text, level):
                self._add({"type": "system", "subtype": "note", "content": self._clean(text), "level": level})
        self._messages.append(message)

    def replace_history(self, messages: Sequence[Message]) -> None:
        """These stand in the history now; those that were there before are only named."""
        self._own("replaced", messages=[*self._differences(messages)])
        self._messages = list(messages)

    def add_block(self, message_id: str, model: str, block: AssistantBlock, slot: int) -> None:
        """A block is complete."""
        self._blocks[slot] = block
        message = {"id": message_id, "type": "message", "role": "assistant", "model": model}
        content = [clean_block(block_value(block), self._clean)]
        self._line("assistant", {**message, "content": content, "stop_reason": None}, slot=slot)
        self._remember(block)

    def discard_blocks(self) -> None:
        """The blocks since the last message are void."""
        if self._blocks:
            self._blocks, self._results = {}, {}
            self._own("discarded")

    def start_call(self, use: ToolUse) -> None:
        """The call starts now."""
        self._own("began", id=use.id, name=use.name)
        if self.failure is not None:
            raise self.failure

    def end_call(self, result: ToolResult) -> None:
        """The call is over."""
        self._results[result.tool_use_id] = result
        self._line("user", self._said("user", (result,)))
        self._remember(result)

    def defer_call(self, use: ToolUse, result: ToolResult) -> None:
        """
        The call is put off. Its result for now is not written: it is what a reader makes of this record.

        A call that lost a secret on the way in is another one, which must not be taken up in the place of this.
        """
        self._results[use.id] = result
        said = block_value(use)
        self._own("deferred", id=use.id, whole=clean_block(said, self._clean) == said)

    def amend_last(self, results: UserMessage) -> None:
        """These stand in the place of the newest message."""
        self._user(results.content)
        self._messages[-1] = results

    def change_folder(self, cwd: str) -> None:
        """Later calls start in this folder."""
        self._cwd = cwd
        self._own("moved", cwd=cwd)

    def adopt(self, messages: Sequence[Message]) -> None:
        """Begin with a conversation that was had elsewhere."""
        if prompt := next((text for each in messages if (text := _prompt(each))), ""):
            self._own("adopted", prompt=self._clean(prompt[:SHOWN]))  # lists do not read what may follow
        self._own("replaced", messages=[self._value(message) for message in messages])
        self._messages = list(messages)

    def note(self, event: str, **values: Any) -> None:
        """Something about the session itself, for example its title. In a new one it waits until something is said."""
        self._title = values.get("title", self._title)
        if self._waiting:
            self._waiting.append({"type": OWN, "event": event, **self._clean(values)})
        else:
            self._own(event, **self._clean(values))

    def close(self) -> None:
        """Let go of the file."""
        if self._title and self._said_something:
            self._own("title", title=self._clean(self._title))  # lists look at both ends of a long file only
        self._log.close()

    # How it is written

    def _settle(self, message: AssistantMessage) -> None:
        said = tuple(self._blocks[slot] for slot in sorted(self._blocks))
        extra = {} if said == message.content else {"content": self._said("assistant", message.content)["content"]}
        self._own("settled", model=message.model, stop_reason=message.stop_reason, **extra)
        self._blocks = {}

    def _user(self, content: Sequence[Any]) -> None:
        unwritten = tuple(
            block
            for block in content
            if not (isinstance(block, ToolResult) and self._results.get(block.tool_use_id) == block)
        )
        self._results = {}
        if unwritten:
            self._line("user", self._said("user", unwritten), uuid=self.next_id or new_id())
            self.next_id = ""

    def _remember(self, block: AssistantBlock | ToolResult) -> None:
        if self.ids is not None and self._last is not None:
            self.ids[id(block)] = self._last

    def _line(self, kind: str, message: Value, **extra: Any) -> str:
        line = {"type": kind, "uuid": new_id(), "parentUuid": self._last, **extra, "message": message}
        self._add(line)
        line_id: str = line["uuid"]
        self._last = line_id
        return line_id

    def _own(self, event: str, **values: Any) -> None:
        self._add({"type": OWN, "event": event, **values})

    def _add(self, value: Mapping[str, Any]) -> None:
        waiting, self._waiting = self._waiting, []
        for each in (*waiting, value):
            if self.failure is not None:
                return
            where = {"sessionId": self.session_id, "timestamp": self._now(), **self._aside}
            if each["type"] != OWN:
                where["cwd"] = self._cwd
            try:
                self._log.add({**each, **where})
            except SessionError as error:
                self.failure = error
        self._said_something = True

    def _said(self, role: str, content: Sequence[Any]) -> Value:
        return _said(role, content, self._clean)

    def _value(self, message: Message) -> Value:
        return message_value(message, self._clean)

    def _differences(self, after: Sequence[Message]) -> list[Value]:
        """The new messages as values; runs of those that were there before as `{"keep": [first, end]}`."""
        places = {id(message): place for place, message in enumerate(self._messages)}
        found: list[Value] = []
        for message in after:
            place = places.get(id(message))
            if place is None:
                found.append(self._value(message))
            elif found and "keep" in found[-1] and found[-1]["keep"][1] == place:
                found[-1]["keep"][1] = place + 1
            else:
                found.append({"keep": [place, place + 1]})
        return found


def _prompt(message: Message) -> str:
    """The words of a person."""
    words = message.content if isinstance(message, UserMessage) else ()
    return " ".join(block.text for block in words if isinstance(block, Text))


def message_value(message: Message, clean: Clean = as_it_is) -> Value:
    """A message as one value, for those that stand in the place of others."""
    match message:
        case SystemNote(text, level):
            return {"role": "system", "content": clean(text), "level": level}
        case AssistantMessage(content, model, stop_reason):
            return {**_said("assistant", content, clean), "model": model, "stop_reason": stop_reason}
        case Attachment(kind, content):
            return {**_said("user", content, clean), "attachment": kind}
        case UserMessage(content):
            return _said("user", content, clean)


def _said(role: str, content: Sequence[Any], clean: Clean) -> Value:
    return {"role": role, "content": [clean_block(block_value(block), clean) for block in content]}
