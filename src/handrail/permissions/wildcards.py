"""Patterns with `*` wildcards, matched in linear time and without compiling a regular expression."""

from handrail.named_tuples import NamedTuple

WORD_END = "\0"  # between words; cannot be part of one


class WildcardPattern(NamedTuple):
    """The literal text that a match begins with, and the text after each wildcard."""

    literal: str
    rest: tuple[str, ...] = ()
    """Empty = there is no wildcard."""
    tail: bool = False
    """More words may follow."""

    @property
    def exact(self) -> bool:
        """Whether the literal is all there is."""
        return not self.rest and not self.tail

    def matches(self, text: str) -> bool:
        """Whether it matches a whole text. Text between wildcards is matched at its first occurrence."""
        literal, rest, tail = self
        if not text.startswith(literal):
            return False
        at = len(literal)
        if not rest:
            return at == len(text) or (tail and text[at] == WORD_END)
        for piece in rest[:-1]:
            found = text.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
        last = rest[-1]
        ends = len(text) - len(last) >= at and text.endswith(last)
        return ends or (tail and text.find(last + WORD_END, at) >= 0)


def parse_wildcards(text: str) -> WildcardPattern:
    """Parse a pattern in which `*` is any text and everything else is literal."""
    first, *rest = text.split("*")
    return WildcardPattern(first, tuple(rest))
