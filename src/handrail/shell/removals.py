"""
Finds what a command would remove, wherever its words come from.

A word can stand for paths that another command finds or prints: `find ~ -exec rm {} +`, `find ~ | xargs rm`,
`rm $(ls ~)`, `xargs sh -c 'rm "$@"' _`. Each is followed back to the folders that are searched or the words that are
printed. Where that is not possible, nothing is reported.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from handrail.shell import tables
from handrail.shell.listing import PLACE, fd_finds_all, finds_all, start_of
from handrail.shell.model import Analysis, Does, PieceKind, Segment, Word, literal_word
from handrail.shell.tables.format import Role
from handrail.shell.verdict import judge_command

PRINTERS = frozenset(("echo", "printf", "yes", "realpath", "readlink"))
LISTERS = frozenset(("find", "fd", "fdfind", "ls", "dir", "vdir", "tree", "du", "git ls-files"))
HERE = frozenset(("pwd", "git rev-parse"))
# Print all that comes in. What any other command lets through may be a part of it.
PASS_ALL = frozenset("cat tac sort uniq tee tr nl rev xargs parallel".split())
POSITIONAL = re.compile(r"\$\{?(?:[0-9]+|[@*])\}?\Z")
ESCAPES = re.compile(r"\\[nt0]|%[sbq]")
MAX_FOLLOWED = 200
MAX_DEPTH = 6


class Removal(NamedTuple):
    """A file or folder that is removed, seen from the folders that `segment` runs in."""

    segment: Segment
    word: Word
    whole: bool
    """All that is in it goes, not only what passes a test or a filter."""


def removals(segment: Segment) -> tuple[Removal, ...]:
    """What one command removes, or moves away, with all that is in it."""
    found = [
        removal
        for effect in segment.effects
        if effect.removes and effect.word is not None
        for removal in Follower().follow(segment, effect.word)
    ]
    return tuple(dict.fromkeys(found))


def possible_removals(analysis: Analysis) -> tuple[Removal, ...]:
    """
    What the commands that a line might run besides its segments would remove; their words are taken as plain text.

    How they feed each other is not known: if one removes what it is given, that may be what any of them prints.
    """
    commands = [tuple(map(literal_word, words)) for words in analysis.suspects if tables.lookup(words[0]) is not None]
    found = {command: list(of_words(command)) for command in commands}
    given = any(is_given(command, removed) for command, removed in found.items())
    printing = [segment_of(command) for command in commands] if given else []
    return tuple(
        dict.fromkeys(
            [removal for removed in found.values() for removal in removed]
            + [Removal(*place) for source in printing for place in printed_words(source)]
        )
    )


def is_given(words: tuple[Word, ...], removed: list[Removal]) -> bool:
    """Whether a command removes what another one prints, as far as its words tell."""
    entry = tables.lookup(words[0].literal or "")
    if not removed:
        return entry is not None and entry.rest is Role.REMOVE
    return any(str(removal.word).startswith(("$", "{", "<")) for removal in removed)


def segment_of(words: tuple[Word, ...], arguments: tuple[Word, ...] = ()) -> Segment:
    found = judge_command(words)
    return Segment(words, 0, 0, entry=found.entry, effects=found.effects, arguments=arguments)


def of_words(words: tuple[Word, ...], arguments: tuple[Word, ...] = (), depth: int = 0) -> Iterator[Removal]:
    segment = segment_of(words, arguments)
    yield from removals(segment)
    for effect in segment.effects if depth < MAX_DEPTH else ():
        if effect.child:
            yield from of_words(effect.child, effect.arguments, depth + 1)


class Follower:
    """Follows the pieces of a word to what they stand for, up to a number of steps."""

    def __init__(self) -> None:
        self.left = MAX_FOLLOWED

    def follow(self, segment: Segment, word: Word, whole: bool = True) -> Iterator[Removal]:
        self.left -= 1
        if self.left < 0:
            return
        tests = [piece.narrowed for piece in word.pieces if piece.kind in (PieceKind.FOUND, PieceKind.FILE)]
        if tests:
            word, whole = start_of(word), whole and not all(tests)
            if word.may_be_empty:  # then there is no starting point, and find begins here
                yield Removal(segment, literal_word("."), whole)
        yield Removal(segment, word, whole)
        for at, piece in enumerate(word.pieces):
            if piece.values is not None:
                continue
            for seen_from, source, all_of_it in self.sources(segment, word, at):
                pieces = (*word.pieces[:at], *source.pieces, *word.pieces[at + 1 :])
                yield from self.follow(seen_from, source._replace(pieces=pieces), whole and all_of_it)

    def sources(self, segment: Segment, word: Word, at: int) -> Iterator[tuple[Segment, Word, bool]]:
        """The words that a piece of a word can stand for."""
        piece = word.pieces[at]
        if (piece.kind is PieceKind.INPUT and piece.text == PLACE) or (
            piece.kind is PieceKind.PARAMETER and POSITIONAL.match(piece.text)
        ):
            known = segment._replace(arguments=())
            yield from ((known, argument, True) for argument in segment.arguments)
        elif piece.kind is PieceKind.INPUT:
            yield from fed_words(segment)
        elif piece.kind is PieceKind.SUBSTITUTION:
            picks = any(source.entry not in LISTERS | PRINTERS | HERE | PASS_ALL for source in segment.inserted)
            for source in segment.inserted:
                yield from ((source, found, whole and not picks) for source, found, whole in printed_words(source))


def fed_words(segment: Segment) -> Iterator[tuple[Segment, Word, bool]]:
    """The paths that come in on standard input, followed back through filters."""
    source, whole = segment.fed_by, True
    while source is not None:
        found = list(printed_words(source))
        if found:
            yield from ((seen_from, word, whole and all_of_it) for seen_from, word, all_of_it in found)
            return
        whole = whole and source.entry in PASS_ALL
        source = source.fed_by


def printed_words(source: Segment) -> Iterator[tuple[Segment, Word, bool]]:
    """The folders or words whose names a command prints, and whether it prints all that is there."""
    words = source.argv[1:]
    if source.entry in HERE:
        yield source, literal_word("."), True
    elif source.entry in PRINTERS:
        for word in words:
            text = word.literal
            parts = [word] if text is None else map(literal_word, ESCAPES.sub(" ", text).split())
            yield from ((source, part, True) for part in parts)
    elif source.entry in LISTERS:
        folders = source.words(Does.READS, Does.LOOKS) or (literal_word("."),)
        whole = source.entry != "git ls-files"
        if source.entry == "find":
            whole = finds_all(words)
        elif source.entry in ("fd", "fdfind"):
            whole = fd_finds_all(words)
        yield from ((source, folder, whole) for folder in folders)
