"""
Matches rules against shell commands, by the words that they begin with.

A rule is compared with the text of one part of a command line, in which words are separated by `WORD_END`.
"""

import re
from collections.abc import Iterable

from handrail.lazy import lazy_pattern
from handrail.permissions.rules import Behaviour, Rule
from handrail.permissions.wildcards import WORD_END, WildcardPattern

# They run the command after them unchanged, so an allow rule sees through them.
TRANSPARENT = frozenset(("timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "noglob"))
# Their arguments matter so much that a rule with a wildcard does not cover them.
EXACT_ONLY = frozenset(("watch", "setsid", "ionice", "flock"))
QUOTED = lazy_pattern(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", re.DOTALL)
ODD, OPERATORS = frozenset("'\"\\\0"), frozenset("|&;<>`\n")
STARS, BLANKS = lazy_pattern(r"\*+"), lazy_pattern(r"\s+")


def compile_shell(spec: str) -> WildcardPattern:
    """Compile words between blanks without quotes; `*` is any text, `\\*` a star; `x:*` and `x *` also match `x`."""
    pieces = cut(spec)
    tail = len(pieces) > 1 and pieces[-1] is None and (pieces[-2] or "").endswith(WORD_END)
    if tail:
        pieces = [*pieces[:-2], (pieces[-2] or "")[:-1]]
    texts = [""]
    for piece in pieces:
        if piece is None:
            texts.append("")
        else:
            texts[-1] += piece
    return WildcardPattern(texts[0], tuple(texts[1:]), tail)


def climbs(pattern: WildcardPattern, text: str) -> bool:
    """Whether a word that begins like a path with a wildcard goes up from there: `build/../x` is not in `build/*`."""
    before = [piece.rpartition(WORD_END)[2] for piece in (pattern.literal, *pattern.rest[:-1])] if pattern.rest else []
    words = text.split(WORD_END)
    return any(
        word.split("/").count("..") > start.split("/").count("..")
        for start in before
        if "/" in start
        for word in words
        if word.startswith(start)
    )


def cut(spec: str) -> list[str | None]:
    """Split a spec into texts and wildcards (None); blanks outside quotes become the word separator, `x:*` is `x *`."""
    spec = spec[:-2] + " *" if spec.endswith(":*") else spec
    pieces = quoted_cut(spec) if not ODD.isdisjoint(spec) else plain_cut(spec)
    if pieces[-1] is not None:
        pieces[-1] = pieces[-1].rstrip(WORD_END)
    return pieces


def quoted_cut(spec: str) -> list[str | None]:
    quotes = has_balanced_quotes(spec)
    pieces: list[list[str] | None] = [[]]
    quote, at = "", 0
    while at < len(spec):
        char = spec[at]
        at += 1
        if char == "*":
            if pieces[-1] is not None:
                pieces.append(None)
            continue
        if char == "\\" and at < len(spec) and quote != "'":
            char, at = spec[at], at + 1
        elif quotes and char in "'\"" and quote in ("", char):
            quote = "" if quote else char
            continue
        elif char.isspace() and not quote:
            char = WORD_END
        last = pieces[-1]
        if last is None:
            pieces.append([char])
        elif char != WORD_END or last[-1:] != [WORD_END]:
            last.append(char)
    return [None if piece is None else "".join(piece) for piece in pieces]


def plain_cut(spec: str) -> list[str | None]:
    """The same for a text without quotes and backslashes, the common case."""
    first, *others = [BLANKS.sub(WORD_END, text) for text in STARS.split(spec)]
    pieces: list[str | None] = [first]
    for text in others:
        pieces.append(None)
        if text:
            pieces.append(text)
    return pieces


def has_balanced_quotes(spec: str) -> bool:
    return re.fullmatch(r"""(?:[^'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")*""", spec, re.DOTALL) is not None


def has_operator(spec: str) -> bool:
    """Whether it contains a shell operator outside quotes."""
    if not ODD.isdisjoint(spec) and has_balanced_quotes(spec):
        spec = QUOTED.sub("", spec)
    return "$(" in spec or not OPERATORS.isdisjoint(spec)


class ShellIndex:
    """Finds the Bash rules that match a command, by what they begin with."""

    __slots__ = ("exact", "lengths", "starts", "whole")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.exact: dict[str, list[Rule]] = {}
        self.starts: dict[str, list[tuple[WildcardPattern, Rule]]] = {}
        self.whole: list[tuple[WildcardPattern, Rule]] = []
        for rule in rules:
            pattern = compile_shell(rule.spec or "")
            if has_operator(rule.spec or ""):
                self.whole.append((pattern, rule))
            elif pattern.exact:
                self.exact.setdefault(pattern.literal, []).append(rule)
            else:
                self.starts.setdefault(pattern.literal, []).append((pattern, rule))
        self.lengths = tuple(sorted({len(start) for start in self.starts}))

    @property
    def empty(self) -> bool:
        return not (self.exact or self.starts or self.whole)

    def find(self, text: str, *, exact_only: bool = False, narrow: bool = False) -> list[Rule]:
        """The rules that match one command; `narrow`: not those with a wildcard in a path that the command leaves."""
        found = list(self.exact.get(text, ()))
        if exact_only:
            return found
        for length in self.lengths:
            if length > len(text):
                break
            for pattern, rule in self.starts.get(text[:length], ()):
                if pattern.matches(text) and not (narrow and ".." in text and climbs(pattern, text)):
                    found.append(rule)
        return found

    def possible_matches(self, opening: str) -> list[Rule]:
        """The rules that may match a command with this known beginning and an unknown rest."""
        exact = [rule for text, rules in self.exact.items() if text.startswith(opening) for rule in rules]
        starts = (found for text, found in self.starts.items() if text and text.startswith(opening))
        return exact + [rule for found in starts for _, rule in found]

    def find_whole(self, command: str, behaviour: Behaviour) -> list[Rule]:
        """The rules that name a whole line with its operators. An allow rule has to equal the line."""
        if not self.whole:
            return []
        text = WORD_END.join(command.split())
        narrow = behaviour is Behaviour.ALLOW
        return [
            rule
            for pattern, rule in self.whole
            if ((pattern.exact or not narrow) and pattern.matches(text))
            or (narrow and " ".join((rule.spec or "").split()) == " ".join(command.split()))
        ]
