"""The reading position of the parser: blanks, comments, tokens and words of one text."""

from collections.abc import Callable

from handrail.errors import UnclearError
from handrail.shell.model import Word
from handrail.shell.syntax import Script
from handrail.shell.words import META, WordReader


class Cursor:
    """A position in one text. Offsets it hands out are bytes."""

    def __init__(self, text: str) -> None:
        self.text, self.end, self.at = text, len(text), 0
        self.byte = offsets(text)
        self.words = WordReader(text, self.byte, self.substitution)

    def substitution(self, at: int, closer: str) -> tuple[Script, int]:
        """The script from `at` to `closer`, and the offset behind the closer."""
        raise NotImplementedError

    def line_ends(self) -> None:
        """Called behind every newline that is not inside a word."""

    def refuse(self, what: str, size: int = 1, node: str = "command") -> UnclearError:
        return UnclearError(what, self.byte(self.at), self.byte(min(self.at + size, self.end)), node)

    def blanks(self, *, lines: bool = False) -> None:
        while self.at < self.end:
            char = self.text[self.at]
            if char in " \t":
                self.at += 1
            elif char == "#":
                close = self.text.find("\n", self.at, self.end)
                self.at = self.end if close < 0 else close
            elif char == "\n" and lines:
                self.at += 1
                self.line_ends()
            else:
                return

    def token(self) -> str:
        """The unquoted text up to the next metacharacter, not consumed: enough to see a keyword."""
        at = self.at
        while at < self.end and self.text[at] not in META:
            at += 1
        return self.text[self.at : at]

    def expect(self, keyword: str) -> None:
        self.blanks(lines=True)
        if self.token() != keyword:
            raise self.refuse(f"{keyword!r} expected")
        self.at += len(keyword)

    def close(self, char: str) -> None:
        if not self.text.startswith(char, self.at, self.end):
            raise self.refuse(f"{char!r} expected")
        self.at += len(char)

    def word(self) -> Word:
        if self.at >= self.end:
            raise self.refuse("a word expected")
        word, after = self.words.word(self.at, self.end)
        if after == self.at:
            raise self.refuse("a word expected")
        self.at = after
        return word


def offsets(text: str) -> Callable[[int], int]:
    """From offsets in the text to offsets in its UTF-8."""
    if text.isascii():
        return int
    table = [0]
    for char in text:
        table.append(table[-1] + len(char.encode()))
    last = len(text)
    return lambda at: table[min(at, last)]
