"""
Patterns for names of files, read by bash's rules (bash 5.2, Pattern Matching) in every locale at once.

What a pattern matches depends on the locale: whether `é` is one character or two, which letters `[a-c]` and
`[[:alpha:]]` hold. The answer here is "may match": every name that bash matches in some locale does, and hardly any
other. A form that is not surely understood (`[[=e=]]`, `[[.hyphen.]]`) matches everything from there on, and the
pattern is not `sure`.

In the text of a pattern a backslash stands before each character that was quoted, as in what bash hands to its matcher.
"""

import re
import string
from functools import lru_cache

from handrail.errors import UnclearError
from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple

WILD = lazy_pattern(r"\\.|[*?\[]", re.DOTALL)
ESCAPED = lazy_pattern(r"\\(.)", re.DOTALL)
SPECIAL = lazy_pattern(r"[^\w/.]", re.ASCII)
FIRST_BEYOND_ASCII = 128
ASCII = frozenset(range(FIRST_BEYOND_ASCII))
MAX_ITEMS = 1000  # a name has at most 255 bytes
ANYTHING = "**"

# What each class holds in every locale; the letters beyond ASCII depend on it.
CLASSES = {
    "alpha": string.ascii_letters,
    "digit": string.digits,
    "alnum": string.ascii_letters + string.digits,
    "upper": string.ascii_uppercase,
    "lower": string.ascii_lowercase,
    "punct": string.punctuation,
    "xdigit": string.hexdigits,
    "space": string.whitespace,
    "blank": " \t",
    "cntrl": "".join(map(chr, (*range(32), 127))),
    "graph": string.ascii_letters + string.digits + string.punctuation,
    "print": string.ascii_letters + string.digits + string.punctuation + " ",
    "word": string.ascii_letters + string.digits + "_",
}
CLASS = lazy_pattern(r"\[:([a-z]+):\]")
# A member of a bracket: an escaped character or a plain one. What begins `[:`, `[=` or `[.` is no plain character.
MEMBER = lazy_pattern(r"\\([^/\[\]])|(\[(?![:.=])|[^\\\[\]])", re.DOTALL)


class Characters(NamedTuple):
    """What one place of a pattern may match: these bytes, and a character beyond ASCII."""

    members: frozenset[int]
    beyond: bool = False
    surely: frozenset[int] = frozenset()  # the members that are surely in a bracket, for its negation


ANY = Characters(ASCII, beyond=True)


class NamePattern:
    """
    Tells which names one part of a path may match.

    A set of positions in the pattern is moved along the bytes of a name, all at once, as bits of a number: a name takes
    as many steps as it has bytes, however many stars there are.
    """

    __slots__ = ("_accepts", "_dotted", "_end", "_runs", "_stars", "sure")

    def __init__(self, text: str, *, loose: bool = False) -> None:
        """`loose`: the shell may have been told to ignore case and to let wildcards match a leading dot."""
        items, stars, self.sure = read_items(text)
        self._dotted = loose or (bool(items) and not stars & 1 and items[0].members == {ord(".")})
        self._stars, self._end = stars, 1 << len(items)
        self._accepts = [0] * (FIRST_BEYOND_ASCII * 2)
        self._runs = 0
        for at, item in enumerate(map(ignore_case, items) if loose else items):
            for byte in item.members:
                self._accepts[byte] |= 1 << at
            if item.beyond:
                self._runs |= 2 << at
                for byte in range(FIRST_BEYOND_ASCII, FIRST_BEYOND_ASCII * 2):
                    self._accepts[byte] |= 1 << at

    def may_match(self, name: str) -> bool:
        """Whether bash matches the name in some locale."""
        if name.startswith(".") and not self._dotted:
            return False
        states = 1
        for byte in name.encode("utf-8", "surrogateescape"):
            stay = self._stars | self._runs if byte >= FIRST_BEYOND_ASCII else self._stars
            states = (states & self._accepts[byte]) << 1 | states & stay
            if not states:
                return False
        return bool(states & self._end)


def ignore_case(item: Characters) -> Characters:
    known = {ord(char) for byte in item.members & ASCII for char in (chr(byte).lower(), chr(byte).upper())}
    return Characters(frozenset(known), item.beyond or not item.members <= ASCII)


def read_items(text: str) -> tuple[list[Characters], int, bool]:
    """What stands at each place, a bit for each place with a star before it, and whether all of it is understood."""
    items: list[Characters] = []
    stars, at = 0, 0
    while at < len(text):
        char = text[at]
        if len(items) > MAX_ITEMS:
            return items, stars | 1 << len(items), False
        if char == "*":
            stars |= 1 << len(items)
            at += 1
        elif char == "?":
            items.append(ANY)
            at += 1
        elif char == "[" and "]" in text[at + 2 :]:  # without an end it is a character like others
            try:
                found, at = read_bracket(text, at + 1)
            except UnclearError:
                return items, stars | 1 << len(items), False
            items.append(found)
        else:
            at += char == "\\" and at + 1 < len(text)
            items += [Characters(frozenset((byte,))) for byte in text[at].encode("utf-8", "surrogateescape")]
            at += 1
    return items, stars, True


def read_bracket(text: str, at: int) -> tuple[Characters, int]:
    """The members of a bracket, and the place behind it. Raises UnclearError for what is not surely understood."""
    negated = text[at] in "!^"
    at += negated
    members: list[Characters] = []
    first = True
    while at < len(text):
        if text[at] == "]" and not first:
            return join_members(members, negated=negated), at + 1
        if found := CLASS.match(text, at):
            members.append(read_class(found[1]))
            at = found.end()
            if is_range(text, at):
                raise UnclearError("a range that begins with a class")
        else:
            start, at = ("]", at + 1) if text[at] == "]" else read_member(text, at)
            if is_range(text, at):
                end, at = read_member(text, at + 1)
                members.append(read_range(start, end))
            else:
                members.append(single(start))
        first = False
    raise UnclearError("a bracket that is not closed")


def is_range(text: str, at: int) -> bool:
    return text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("]", "")


def read_class(name: str) -> Characters:
    if name == "ascii":
        return Characters(ASCII, surely=ASCII)
    if name not in CLASSES:
        raise UnclearError(f"[:{name}:] is no class of characters")
    members = frozenset(map(ord, CLASSES[name]))
    return Characters(members, beyond=True, surely=members)


def read_member(text: str, at: int) -> tuple[str, int]:
    found = MEMBER.match(text, at)
    if found is None:
        raise UnclearError("a bracket of a form that is not read")
    return found[1] or found[2], found.end()


def single(char: str) -> Characters:
    """One character; beyond ASCII it is several members where characters are bytes."""
    if not char.isascii():
        return Characters(frozenset(), beyond=True)
    return Characters(frozenset((ord(char),)), surely=frozenset((ord(char),)))


def read_range(start: str, end: str) -> Characters:
    """A range holds what the locale sorts between its ends: digits lie together, letters may be in any order."""
    if start in string.digits and end in string.digits:
        return Characters(frozenset(range(ord(start), ord(end) + 1)), beyond=True)
    if start in string.ascii_letters and end in string.ascii_letters and start.islower() == end.islower():
        return Characters(frozenset(map(ord, string.ascii_letters)), beyond=True)
    return ANY


def join_members(members: list[Characters], *, negated: bool) -> Characters:
    if negated:
        return Characters(ASCII - frozenset().union(*(member.surely for member in members)), beyond=True)
    return Characters(
        frozenset().union(*(member.members for member in members)), any(member.beyond for member in members)
    )


class PathPattern(NamedTuple):
    """A pattern for paths. `text` is what bash leaves in its place if it matches nothing."""

    text: str
    parts: tuple[str | NamePattern, ...]
    sure: bool
    source: str

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=256)
def read_pattern(text: str, *, loose: bool = False) -> PathPattern:
    """
    Read a pattern for paths, part by part.

    With `loose` the shell may have been told to match more: any case, names with a leading dot, and `**` any depth.
    """
    parts = [read_part(part, loose=loose) for part in text.split("/")]
    deep = loose and any(ANYTHING in part for part in text.split("/"))
    sure = all(part.sure for part in parts if isinstance(part, NamePattern)) and not deep
    return PathPattern(unescape(text), tuple(parts), sure, text)


def read_part(text: str, *, loose: bool = False) -> str | NamePattern:
    return NamePattern(text, loose=loose) if is_wild(text) else unescape(text)


def is_wild(text: str) -> bool:
    """Whether a text has a wildcard that is not escaped."""
    return any(found.group()[0] != "\\" for found in WILD.finditer(text))


def escape(text: str) -> str:
    """The text as a pattern that matches nothing else."""
    return SPECIAL.sub(r"\\\g<0>", text)


def unescape(text: str) -> str:
    return ESCAPED.sub(r"\1", text)
