"""
Assembles the calls of a chat.completions stream.

Nothing in this format marks the end of a call, and servers disagree on almost everything else. The rules:

    which call a piece belongs to     its index; else its id, its name, its place in the chunk; else the last call
    a new call under an old index     another id, or a name although the arguments so far are whole
    early end                         a later call has begun, this one's arguments are a whole object, as are all before
    certain end                       finish_reason, [DONE]
"""

from collections.abc import Mapping, Sequence
from typing import Any

from handrail.providers.failures import broken
from handrail.providers.reader import CUT_REASONS, AnswerReader, Block
from handrail.providers.wire import arguments, count, echo, mapping, string


class CallAssembler:
    """The calls of one answer, in the order they began."""

    def __init__(self, reader: AnswerReader) -> None:
        self._reader = reader
        self._calls: list[Block] = []
        self._by_index: dict[int, Block] = {}
        self._touched: list[Block] = []
        self._ended = 0

    def feed(self, entries: Sequence[Any]) -> None:
        """The `tool_calls` list of one chunk."""
        self._touched.clear()
        alone = len(entries) == 1
        for position, entry in enumerate(entries):
            if isinstance(entry, dict):
                self._piece(entry, None if alone else position)

    def go_on(self, entry: Any) -> bool:
        """Add the next fragment of the newest call, as `feed` would, if the only entry of a chunk is nothing else."""
        if not self._calls or not isinstance(entry, dict) or entry.get("id") or "extra_content" in entry:
            return False
        call, function = self._calls[-1], entry.get("function")
        if call.ended or not isinstance(function, dict) or function.get("name"):
            return False
        index, fragment = count(entry.get("index")), function.get("arguments")
        if index is None or self._by_index.get(index) is not call or not isinstance(fragment, str):
            return False
        if not fragment or len(fragment) == call.size:  # it may repeat what has come
            return False
        self._reader.add(call, fragment)
        return True

    def finish(self, reason: str) -> None:
        """No more pieces come: every call ends, whole or broken."""
        stray = any(call.size and not call.name for call in self._calls)
        last = self._calls[-1] if self._calls else None
        for call in self._calls:
            if call.ended:
                continue
            problem = ""
            given = arguments(call.text)
            if reason in CUT_REASONS and ((call is last and not call.size) or isinstance(given, str)):
                problem = f"the answer was cut by the output limit (finish_reason {reason!r})"
            elif stray and call.name and not call.size:
                problem = "its arguments arrived under another call and cannot be told apart"
            self._reader.close_call(call, problem, given)

    def _piece(self, entry: Mapping[str, Any], position: int | None) -> None:
        function = mapping(entry.get("function"))
        call_id, name, given = string(entry.get("id")), string(function.get("name")), function.get("arguments")
        fragment = given if isinstance(given, str) else echo(given).decode() if isinstance(given, dict) else ""
        index = count(entry.get("index"))
        call = self._find(index, position, call_id, name, fragment)
        if call is None:
            call = self._begin(index, call_id, name)
        else:
            call.id = call.id or call_id
            if name and name != call.name:
                self._rename(call, name)
        self._touched.append(call)
        extra = entry.get("extra_content")
        if extra:
            call.extra = {"extra_content": extra}
        if fragment and not self._repeats(call, fragment):
            self._append(call, fragment)

    def _find(self, index: int | None, position: int | None, call_id: str, name: str, fragment: str) -> Block | None:
        call = self._calls[-1] if self._calls else None
        if index is not None:
            call = self._by_index.get(index)
        elif call_id:
            nameless = call if call and not (call.id and call.name) else None
            call = next((each for each in self._calls if each.id == call_id), nameless)
        elif name:
            if call in self._touched:  # two entries of one chunk are two calls
                return None
        elif position is not None:
            call = self._calls[position] if position < len(self._calls) else None
        if call is None or not self._is_new(call, call_id, name, fragment):
            return call
        return None

    def _is_new(self, call: Block, call_id: str, name: str, fragment: str) -> bool:
        if call_id and call.id and call_id != call.id:
            # some servers make up a new id for every piece; without a name it continues an unfinished call
            return bool(name) or not call.size or self._whole(call)
        if not name or not call.name:
            return False
        if self._whole(call):
            return fragment.lstrip().startswith("{") and not self._repeats(call, fragment)
        return name in self._reader.tools and call.name in self._reader.tools and name != call.name

    def _begin(self, index: int | None, call_id: str, name: str) -> Block:
        call = self._reader.open("tool_use", call_id, name)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        self._end_early()
        return call

    def _rename(self, call: Block, name: str) -> None:
        if not call.name or (name in self._reader.tools and name.startswith(call.name)):
            call.name = name
        elif call.name not in self._reader.tools and not call.size:
            call.name += name

    def _append(self, call: Block, fragment: str) -> None:
        if not call.ended:
            self._reader.add(call, fragment)
            if call is not self._calls[-1]:
                self._end_early()
        elif fragment.strip():
            message = f"more arguments came for call {call.id!r} after it was complete: {fragment[:80]!r}"
            self._reader.fail(broken("inconsistent", message))

    def _end_early(self) -> None:
        for call in self._calls[self._ended : -1]:
            if not call.ended:
                # without arguments it is not certain: they may still come
                given = self._whole_input(call) if call.size and call.name else None
                if given is None:
                    return
                self._reader.close_call(call, given=given)
            self._ended += 1

    def _repeats(self, call: Block, fragment: str) -> bool:
        return call.size == len(fragment) and fragment == call.text and self._whole(call)

    def _whole(self, call: Block) -> bool:
        return self._whole_input(call) is not None

    @staticmethod
    def _whole_input(call: Block) -> Mapping[str, Any] | None:
        """The arguments if they are a complete object, to which no further character can belong."""
        last = call.parts[-1].rstrip() if call.parts else "-"
        if last and not last.endswith("}"):
            return None
        text = call.text
        given = arguments(text) if text.lstrip().startswith("{") else ""
        return None if isinstance(given, str) else given
