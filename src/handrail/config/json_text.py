"""
Parses strict JSON into nodes that know their position in the text.

The standard library's parser is faster and comes first. This one serves line numbers, error messages and rewriting.
"""

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from handrail.config.json_paths import MAX_DEPTH
from handrail.errors import JsonTextError
from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple

BLANKS = lazy_pattern(r"[ \t\n\r]*")
STRING = lazy_pattern(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
NEXT_PLAIN = lazy_pattern(r'[ \t\n\r]*,[ \t\n\r]*"([^"\\\x00-\x1f]*)"(?=[ \t\n\r]*[,\]])')
"""The next text of a list, without escapes: nearly all there is in a long one."""
NUMBER = lazy_pattern(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])")
WORD = lazy_pattern(r"[A-Za-z_]\w*")
WORDS = {"true": True, "false": False, "null": None}


class Member(NamedTuple):
    """One `"key": value` of an object; `start` is the position of the key's quote."""

    key: str
    start: int
    node: "JsonNode"


class JsonNode(NamedTuple):
    """A value and its position in the text."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()
    items: tuple["JsonNode", ...] = ()

    def child(self, step: str | int) -> "tuple[int, JsonNode] | None":
        """The value of a key or index, if there is one, and where it is written."""
        if isinstance(step, int):
            return (self.items[step].start, self.items[step]) if step < len(self.items) else None
        return next(((member.start, member.node) for member in self.members if member.key == step), None)

    def find(self, path: Sequence[str | int]) -> "JsonNode | None":
        """The value at the end of a path, if there is one."""
        node = self
        for step in path:
            child = node.child(step)
            if child is None:
                return None
            _, node = child
        return node

    def starts(self, path: Sequence[str | int]) -> int:
        """The position of the value at the end of a path, or of its nearest existing parent."""
        at, node = self.start, self
        for step in path:
            child = node.child(step)
            if child is None:
                break
            at, node = child
        return at


def scan(text: str) -> JsonNode:
    """
    The value of a text, with positions.

    Raises:
        JsonTextError: it is not strict JSON, has a key twice, or is nested too deeply.
    """
    return _JsonScanner(text).document()


class _JsonScanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._path: list[str | int] = []

    def document(self) -> JsonNode:
        self._blanks()
        if self._at == len(self._text):
            self._fail("the file is empty; write {} if nothing is to be set")
        node = self._value()
        self._blanks()
        if self._at < len(self._text):
            self._fail(f"there is more text after the end of the JSON: {self._near()!r}")
        return node

    def _value(self) -> JsonNode:
        char = self._text[self._at : self._at + 1]
        if char == "{":
            return self._object()
        if char == "[":
            return self._list()
        if char == '"':
            start, value = self._at, self._string()
            return JsonNode(start, self._at, value)
        return self._number_or_word()

    def _object(self) -> JsonNode:
        start = self._open()
        members: list[Member] = []
        seen: set[str] = set()
        while not self._closes("}", bool(members)):
            at = self._at
            if self._text[at : at + 1] != '"':
                self._fail(f"a key in double quotes is expected here, not {self._near()!r}")
            key = self._string()
            self._path.append(key)
            if key in seen:
                self._fail(f"the key {key!r} appears here a second time", at)
            seen.add(key)
            self._blanks()
            self._expect(":", f"a colon must follow the key {key!r}")
            members.append(Member(key, at, self._value()))
            self._path.pop()
        return JsonNode(start, self._at, {member.key: member.node.value for member in members}, members=tuple(members))

    def _list(self) -> JsonNode:
        start = self._open()
        items: list[JsonNode] = []
        while not self._closes("]", bool(items)):
            self._path.append(len(items))
            items.append(self._value())
            self._path.pop()
            while found := NEXT_PLAIN.match(self._text, self._at):
                items.append(JsonNode(found.start(1) - 1, found.end(), found[1]))
                self._at = found.end()
        return JsonNode(start, self._at, [item.value for item in items], items=tuple(items))

    def _open(self) -> int:
        if len(self._path) >= MAX_DEPTH:
            self._fail(f"it is nested deeper than {MAX_DEPTH} levels")
        self._at += 1
        return self._at - 1

    def _closes(self, bracket: str, behind: bool) -> bool:
        """Whether the bracket closes here; if not, and if something precedes, a comma is consumed."""
        self._blanks()
        if self._text[self._at : self._at + 1] == bracket:
            self._at += 1
            return True
        if behind:
            self._expect(",", f"a comma or {bracket} is expected here, not {self._near()!r}")
            if self._text[self._at : self._at + 1] == bracket:
                self._fail(f"there is a comma before {bracket} with nothing after it")
        elif self._at == len(self._text):
            self._fail(f"the file ends before {bracket}")
        return False

    def _expect(self, char: str, complaint: str) -> None:
        if self._text[self._at : self._at + 1] != char:
            self._fail(complaint if self._at < len(self._text) else f"the file ends in the middle: {complaint}")
        self._at += 1
        self._blanks()

    def _string(self) -> str:
        found = STRING.match(self._text, self._at)
        if not found:
            self._fail("this text in quotes is not closed on its line, or holds an escape that JSON does not know")
        self._at = found.end()
        value: str = json.loads(found[0])
        return value

    def _number(self, text: str) -> int | float:
        start, self._at = self._at, self._at + len(text)
        try:
            number: int | float = json.loads(text)
        except ValueError:
            self._fail("this number is too long", start)
        if isinstance(number, float) and number - number != 0:
            self._fail("this number is too large", start)
        return number

    def _number_or_word(self) -> JsonNode:
        start = self._at
        if found := NUMBER.match(self._text, start):
            return JsonNode(start, found.end(), self._number(found[0]))
        word = WORD.match(self._text, start)
        if word and word[0] in WORDS:
            self._at = word.end()
            return JsonNode(start, self._at, WORDS[word[0]])
        return self._fail(f"a value is expected here, not {self._near()!r}")

    def _blanks(self) -> None:
        found = BLANKS.match(self._text, self._at)
        assert found
        self._at = found.end()
        if self._text.startswith(("//", "/*", "#"), self._at):
            self._fail("comments are not allowed in strict JSON")

    def _near(self) -> str:
        return self._text[self._at : self._at + 12].partition("\n")[0] or "the end of the file"

    def _fail(self, message: str, offset: int | None = None) -> NoReturn:
        raise JsonTextError(message, self._at if offset is None else offset, tuple(self._path))
