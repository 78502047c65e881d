"""
Reads of files that no word names: those in a folder that is gone through, and those of a listing.

`grep -r x src`, `find src -exec cat {} +` and `git ls-files | xargs cat` read what lies below a folder. Which files
those are, and where the links among them lead, only the file system can tell.
"""

from collections.abc import Iterator
from itertools import pairwise

from handrail.shell.model import PLAIN_NAMES, WHOLE_NAME, Below, Does, Effect, Kind, Segment, Word, literal_word

# Print whole paths, as seen from where they run. What `ls` prints lies in one folder and is looked for in another.
WHOLE_PATHS = frozenset(("find", "fd", "fdfind", "git ls-files"))
SEARCHES = "searches this folder"
FED = "<input>"  # a word that is one word of what was read, and nothing else
MIXED = "<mixed>"  # one that is made with it
NOT_ALL_OF_THESE = frozenset("-o -or , ! -not ( ) -L -H -follow".split())
ACTIONS = frozenset("-exec -execdir -ok -okdir -print -print0 -printf -ls -fprint -fprint0 -fls -fprintf".split())


def gone_through(segment: Segment) -> Iterator[tuple[Segment, Word, Below]]:
    """The folders whose contents are read, each with the command that names it."""
    for effect in segment.effects:
        word = effect.word
        if effect.does is not Does.READS or word is None:
            continue
        kinds = {piece.kind for piece in word.pieces}
        if kinds & {Kind.FOUND, Kind.FILE}:
            start = tuple(piece for piece in word.pieces if piece.kind is Kind.LITERAL)
            yield segment, word._replace(pieces=start), Below(links=Kind.FOUND in kinds)
        elif from_listing(segment, effect, word):
            yield from listed(origin(segment))
        elif effect.below is not None:
            yield segment, word, effect.below


def listed(source: Segment) -> Iterator[tuple[Segment, Word, Below]]:
    below = Below(links=source.entry != "find" or not only_files(source.argv[1:]))
    for word in source.reads:
        yield source, word, below
    if source.entry != "find":  # it may print more than paths, and that is looked for here
        yield source, literal_word("."), below


def origin(segment: Segment) -> Segment:
    """The command that made the names that a segment is fed; filters between them leave names as they are."""
    source = segment.fed_by or segment
    while source.fed_by is not None and source.fed_by.lists_paths:
        source = source.fed_by
    return source


def from_listing(segment: Segment, effect: Effect, word: Word) -> bool:
    """
    Names made by a listing of checked folders, and looked for where it ran.

    Contents are read only of names that are paths and come in whole.
    """
    if (
        segment.fed_by is None
        or not segment.fed_by.lists_paths
        or {piece.kind for piece in word.pieces} != {Kind.INPUT}
        or segment.cwds != origin(segment).cwds
    ):
        return False
    texts = {piece.text for piece in word.pieces}
    if effect.does is Does.LOOKS:
        return MIXED not in texts
    if word.pieces == WHOLE_NAME.pieces:
        return True
    return texts == {FED} and PLAIN_NAMES in segment.requires and origin(segment).entry in WHOLE_PATHS


def only_files(words: tuple[Word, ...]) -> bool:
    """True if a find with these words comes to its first action with ordinary files only, and never with links."""
    texts = [word.literal for word in words]
    if None in texts or NOT_ALL_OF_THESE.intersection(filter(None, texts)):
        return False
    first = next((at for at, text in enumerate(texts) if text in ACTIONS), len(texts))
    return any(pair == ("-type", "f") for pair in pairwise(texts[:first]))
