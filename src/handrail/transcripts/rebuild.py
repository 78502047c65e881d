"""
Rebuilds a history that every model accepts from the records of a transcript. Nothing here reads or writes.

Whatever the file holds, every call of the history has exactly one result, in call order. A call without a recorded
result gets one that says what is known: it never started, or it started and its outcome is unknown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from handrail.conversation.block_json import assistant_block, user_blocks
from handrail.conversation.blocks import AssistantBlock, BrokenToolUse, Text, Thinking, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Attachment, Message, SystemNote, UserMessage
from handrail.conversation.transcript import PUT_OFF
from handrail.records import record
from handrail.transcripts.log import OWN, BrokenLine, Record

NEVER_STARTED = "This call was never started: the program ended before its turn came. Ask for it again if it is needed."
UNKNOWN = (
    "This call had started when the program ended, and its outcome is not known: it may have done all, some or nothing "
    "of its work. Look at what it did before you repeat it."
)
OPENING = "The beginning of this conversation is not kept."
GIVEN_UP = "given_up_calls"
FALLEN = (
    "These calls had begun for an answer that was given up when the program ended:\n{}\nLook before you repeat them."
)


@record
class SpentSoFar:
    """The answers of a session and what they cost; None if the price of one is not known."""

    answers: int = 0
    dollars: float | None = 0.0

    def plus(self, dollars: float | None) -> "SpentSoFar":
        """With one more answer."""
        known = None if self.dollars is None or dollars is None else self.dollars + dollars
        return SpentSoFar(self.answers + 1, known)


@record
class RebuiltTranscript:
    """
    The conversation of a transcript.

    `repairs` lists what was repaired so that it can go on, `problems` what in the file was not understood.
    """

    messages: tuple[Message, ...]
    session_id: str = ""
    cwd: str = ""
    title: str = ""
    model: str = ""
    mode: str = ""
    last: str | None = None
    """The id of the newest line, the parent of the next one."""
    repairs: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    note: Attachment | None = None
    """A note for the model before it goes on, which is not part of the file yet."""
    moved: str = ""
    """The last working folder of calls, if it is not the first one."""
    deferred: ToolUse | None = None
    """The deferred call at the end; its result in the messages is a placeholder."""
    spent: SpentSoFar = SpentSoFar()


def rebuild(records: Iterable[Record | BrokenLine], *, upto: str = "") -> RebuiltTranscript:
    """The conversation. With `upto`, it ends with the message of that id."""
    rebuilder = _Rebuilder(upto)
    for each in records:
        if isinstance(each, BrokenLine):
            rebuilder.problems.append(f"line {each.number}: {each.problem}")
            continue
        try:
            rebuilder.take(each)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            rebuilder.problems.append(f"a record of type {each['type']!r} is not understood: {error!r}")
        if rebuilder.done:
            break
    return rebuilder.finish()


class _AssistantTurn:
    """An answer of the model and the known results of its calls."""

    def __init__(self, message_id: str, model: str) -> None:
        self.id = message_id
        self.model = model
        self.stop_reason = ""
        self.blocks: list[tuple[int, AssistantBlock]] = []
        self.content: tuple[AssistantBlock, ...] | None = None
        self.settled = False
        self.deferred, self.whole = "", False
        self.results: dict[str, ToolResult] = {}

    def message(self) -> AssistantMessage:
        blocks = tuple(block for _, block in sorted(self.blocks, key=lambda pair: pair[0]))
        return AssistantMessage(blocks if self.content is None else self.content, self.model, self.stop_reason)


class _Rebuilder:
    """Collects the conversation while its records are read."""

    def __init__(self, upto: str) -> None:
        self.problems: list[str] = []
        self.done = False
        self._upto = upto
        self._messages: list[Message] = []
        self._answer: _AssistantTurn | None = None
        self._began: dict[str, str] = {}
        self._given_up: list[str] = []
        self._repairs: list[str] = []
        self._last: str | None = None
        self._facts: dict[str, str] = {}
        self._places: dict[str, int] = {}
        self._lines: list[str] = []
        self._ids: set[str] = set()
        self._spent = SpentSoFar()

    def take(self, line: Record) -> None:
        if line.get("isSidechain") and not self._is_of_subagent(line):
            return  # messages of sub-agents are not part of this conversation
        for name in ("sessionId", "cwd"):
            if isinstance(line.get(name), str):
                self._facts.setdefault(name, line[name])
        match line["type"]:
            case "assistant":
                self._assistant(line)
            case "user":
                self._user(line)
            case "system":
                self._system(line)
            case "summary":
                self._facts["title"] = line["summary"]
            case kind if kind == OWN:
                self._event(line)
            case _:
                pass  # other programs write more types
        if isinstance(line.get("uuid"), str):
            self._reach(line["uuid"])

    def _is_of_subagent(self, line: Record) -> bool:
        """Whether this is the transcript of the sub-agent of the line, as its first record says."""
        if line.get("event") == "opened":
            self._facts["agent"] = line["agentId"]
        return "agent" in self._facts and line.get("agentId") == self._facts["agent"]

    def _reach(self, uuid: str) -> None:
        self._last = uuid
        self._lines.append(uuid)
        if self._answer is None:
            self._place_lines()
        if uuid == self._upto:
            self._close()
            self.done = True

    def _place_lines(self) -> None:
        """Map the lines since the last message to its position, for prompts that continue from one of them."""
        self._places.update(dict.fromkeys(self._lines, len(self._messages)))
        self._lines.clear()

    def _assistant(self, line: Record) -> None:
        message = line["message"]
        message_id = message.get("id") or ""
        if self._answer is None or self._answer.settled or self._answer.id != message_id:
            self._close()
            self._answer = _AssistantTurn(message_id, message.get("model") or "")
        answer = self._answer
        blocks = [assistant_block(value) for value in message["content"]]
        first = line.get("slot", answer.blocks[-1][0] + 1 if answer.blocks else 0)
        answer.blocks += [(first + place, block) for place, block in enumerate(blocks)]
        answer.stop_reason = message.get("stop_reason") or answer.stop_reason
        self._facts["model"] = message.get("model") or self._facts.get("model", "")

    def _user(self, line: Record) -> None:
        blocks = user_blocks(line["message"]["content"])
        results = {block.tool_use_id: block for block in blocks if isinstance(block, ToolResult)}
        words = tuple(block for block in blocks if not isinstance(block, ToolResult))
        if self._answer is not None:
            self._answer.results |= results
        elif results:
            self.problems.append(f"results of the calls {', '.join(results)}, which have no call, were left out")
        if not words:
            return
        self._close()
        if not line.get("isMeta"):
            self._branch(line)
        attachment = line.get("attachment")
        self._add(Attachment(attachment, words) if isinstance(attachment, str) else UserMessage(words))

    def _branch(self, line: Record) -> None:
        """A prompt whose parent is an earlier line replaces everything after that line."""
        place = self._places.get(line.get("parentUuid") or "")
        if place is not None and line.get("parentUuid") != self._last and place < len(self._messages):
            del self._messages[place:]

    def _system(self, line: Record) -> None:
        match line.get("subtype"):
            case "note":
                self._close()
                self._add(SystemNote(line["content"], line.get("level") or "info"))
            case "compact_boundary":  # other programs write it when a summary replaces all before
                self._close()
                self._messages.clear()
                self._places.clear()
            case _:
                pass

    def _event(self, line: Record) -> None:
        match line["event"]:
            case "opened":
                self._facts |= {"cwd": line["cwd"], "own": "yes"}
            case "began":
                self._began[line["id"]] = line["name"]
            case "deferred" if self._answer is not None:
                self._answer.deferred, self._answer.whole = line["id"], line.get("whole") is True
            case "settled":
                self._settle(line)
            case "discarded":
                self._discard()
            case "replaced":
                self._close()
                self._messages = [message for value in line["messages"] for message in self._replacement(value)]
                self._places.clear()
            case "repaired":
                self._close()
                self._repairs.clear()
                self.problems.clear()
            case "title" | "mode" | "model" | "moved" as name:
                self._facts[name] = line["cwd" if name == "moved" else name]
            case "answered":
                self._spent = self._spent.plus(line.get("dollars"))
            case _:
                pass

    def _settle(self, line: Record) -> None:
        if self._answer is None or self._answer.settled:
            self._close()
            self._answer = _AssistantTurn("", "")
        answer = self._answer
        answer.settled = True
        answer.model, answer.stop_reason = line.get("model") or answer.model, line.get("stop_reason") or ""
        if "content" in line:
            answer.content = tuple(assistant_block(value) for value in line["content"])
        self._given_up.clear()

    def _discard(self) -> None:
        if self._answer is None:
            return
        for call in self._answer.message().calls:
            if call.id in self._began:
                known = "it ran" if call.id in self._answer.results else "what it did is not known"
                self._given_up.append(f"- {call.name} ({call.id}): {known}")
        self._answer = None

    def _replacement(self, value: Mapping[str, Any]) -> list[Message]:
        if "keep" in value:
            first, end = value["keep"]
            return self._messages[first:end]
        match value["role"]:
            case "assistant":
                blocks = tuple(assistant_block(block) for block in value["content"])
                return [AssistantMessage(blocks, value["model"], value["stop_reason"])]
            case "system":
                return [SystemNote(value["content"], value["level"])]
            case _ if "attachment" in value:
                return [Attachment(value["attachment"], user_blocks(value["content"]))]
            case _:
                return [UserMessage(user_blocks(value["content"]))]

    # Closing an answer

    def _close(self) -> None:
        """Finish the answer: add it to the history, with one result for each of its calls."""
        answer, self._answer = self._answer, None
        if answer is None:
            return
        message = self._without_doubles(answer.message())
        if not _is_empty(message):
            if not answer.settled and "own" in self._facts:
                self._repairs.append("an answer was cut off; what had arrived of it is kept")
            self._add(message)
            if message.calls:
                results = tuple(self._result(answer, call.id, call.name) for call in message.calls)
                self._add(UserMessage(results))
        self._place_lines()

    def _without_doubles(self, message: AssistantMessage) -> AssistantMessage:
        """No model accepts two calls with one id, which files edited by hand may contain."""
        kept = []
        for block in message.content:
            if isinstance(block, ToolUse | BrokenToolUse):
                if block.id in self._ids:
                    self._repairs.append(f"a second call of the id {block.id!r} was left out")
                    continue
                self._ids.add(block.id)
            kept.append(block)
        return message if len(kept) == len(message.content) else replace(message, content=tuple(kept))

    def _result(self, answer: _AssistantTurn, call_id: str, name: str) -> ToolResult:
        known = answer.results.get(call_id)
        if known is not None:
            return known
        started = call_id in self._began
        if call_id == answer.deferred and not started:
            return ToolResult(call_id, (Text(PUT_OFF),), is_error=True)
        self._repairs.append(f"{name} ({call_id}): " + ("started, outcome unknown" if started else "never started"))
        return ToolResult(call_id, (Text(UNKNOWN if started else NEVER_STARTED),), is_error=True)

    def _add(self, message: Message) -> None:
        if isinstance(message, AssistantMessage) and all(isinstance(each, SystemNote) for each in self._messages):
            self._add(Attachment("resumed", (Text(OPENING),)))
        if isinstance(message, Attachment) and message.kind == GIVEN_UP:
            self._given_up.clear()
        self._messages.append(message)

    def finish(self) -> RebuiltTranscript:
        deferred = self._deferred_call()
        self._close()
        note = Attachment(GIVEN_UP, (Text(FALLEN.format("\n".join(self._given_up))),)) if self._given_up else None
        if note:
            self._repairs.append("calls of an answer that was given up are reported")
        if self._upto and not self.done:
            self.problems.append(f"there is no message {self._upto!r}")
        facts = self._facts
        return RebuiltTranscript(
            tuple(self._messages),
            facts.get("sessionId", ""),
            facts.get("cwd", ""),
            facts.get("title", ""),
            facts.get("model", ""),
            facts.get("mode", ""),
            self._last,
            tuple(self._repairs),
            tuple(self.problems),
            note,
            facts.get("moved", ""),
            deferred,
            self._spent,
        )

    def _deferred_call(self) -> ToolUse | None:
        """The deferred call at the end of the conversation, if nothing more is known of it."""
        answer = self._answer
        if answer is None or not answer.settled or not answer.whole or answer.deferred in self._began:
            return None
        waiting = [call for call in answer.message().calls if call.id == answer.deferred not in answer.results]
        return next((call for call in waiting if isinstance(call, ToolUse)), None)


def _is_empty(message: AssistantMessage) -> bool:
    return all(
        isinstance(block, Thinking) or (isinstance(block, Text) and not block.text.strip()) for block in message.content
    )
