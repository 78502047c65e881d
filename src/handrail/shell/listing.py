"""
Finds reads of files that no word names: of all files in a folder, and of the files in a listing.

`grep -r x src`, `find src -exec cat {} +` and `git ls-files | xargs cat` read what lies below a folder. Which files
those are, and where the links among them lead, only the file system can tell.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from handrail.lazy import lazy_pattern
from handrail.shell.model import (
    PLAIN_NAMES,
    WHOLE_NAME,
    Below,
    CommandVerdict,
    Does,
    Effect,
    Piece,
    PieceKind,
    Segment,
    Word,
    literal_word,
)

# Print whole paths, as seen from where they run. What `ls` prints lies in one folder and is looked for in another.
WHOLE_PATHS = frozenset(("find", "fd", "fdfind", "git ls-files"))
LISTERS = frozenset(("ls", "dir", "vdir"))
# Print names of files of the repository.
GIT_LISTINGS = frozenset(("git ls-files", "git diff"))
SEARCHES = "searches this folder"
PLACE = "{}"  # a word that is made with the path that a find found
FED = "<input>"  # a word that is one word of what was read, and nothing else
MIXED = "<mixed>"  # one that is made with it
NOT_ALL_OF_THESE = frozenset("-o -or , ! -not ( ) -L -H -follow".split())
NAME_TESTS = frozenset("-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname".split())
# A name, or an ending. One that begins with a dash may be a test, behind a test with the value `-name`.
PLAIN_PATTERN = lazy_pattern(r"(?!-)\*?[\w.-]*\w[\w.-]*\Z", re.ASCII)
ACTIONS = frozenset("-exec -execdir -ok -okdir -print -print0 -printf -ls -fprint -fprint0 -fls -fprintf".split())


def gone_through(segment: Segment, *, checked: bool = False) -> Iterator[tuple[Segment, Word, Below]]:
    """
    The folders whose contents are read, each with the command that names it.

    `checked`: not those of a listing whose names are looked at one by one.
    """
    for effect in segment.effects:
        word = effect.word
        if effect.does is not Does.READS or word is None or (checked and checked_listing(segment, word)):
            continue
        kinds = {piece.kind for piece in word.pieces}
        if kinds & {PieceKind.FOUND, PieceKind.FILE}:
            name = next((piece.name for piece in word.pieces if piece.name), "")
            yield segment, start_of(word), Below(links=PieceKind.FOUND in kinds, name=name)
        elif from_listing(segment, effect, word):
            yield from listed_folders(origin(segment))
        elif effect.below is not None:
            yield segment, word, effect.below


def start_of(word: Word) -> Word:
    """The folder in which the path that a word stands for was found."""
    end = next((at for at, piece in enumerate(word.pieces) if piece.kind in (PieceKind.FOUND, PieceKind.FILE)), None)
    return word._replace(pieces=word.pieces[:end])


def fill(word: Word, mark: str, name: str) -> Word:
    """The word with a piece of unknown text in place of each mark."""
    pieces = list[Piece]()
    for at, text in enumerate(str(word).split(mark)):
        pieces += [Piece(PieceKind.INPUT, name, quoted=True)] if at else []
        pieces += [Piece(PieceKind.LITERAL, text, quoted=True)] if text else []
    return word._replace(pieces=tuple(pieces))


def listed_folders(source: Segment) -> Iterator[tuple[Segment, Word, Below]]:
    finds = source.entry == "find"
    below = Below(links=not finds or not only_files(source.argv[1:]), name=found_name(source.argv[1:]) if finds else "")
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
    """Whether a listing of checked folders made the names, which are looked for where it ran and, if read, whole."""
    if (
        segment.fed_by is None
        or not segment.fed_by.lists_paths
        or {piece.kind for piece in word.pieces} != {PieceKind.INPUT}
        or segment.cwds != origin(segment).cwds
        or origin(segment).entry == "git diff"  # its names are seen from the top of the repository
    ):
        return False
    texts = {piece.text for piece in word.pieces}
    if effect.does is Does.LOOKS:
        return MIXED not in texts
    if word.pieces == WHOLE_NAME.pieces:
        return True
    return texts == {FED} and PLAIN_NAMES in segment.requires and origin(segment).entry in WHOLE_PATHS


def lists_one_folder(segment: Segment) -> bool:
    """Whether it shows the names in the folders that it is given, and nothing of what lies further down."""
    words = [word.literal for word in segment.argv[1:] if word.may_be_option]
    deep = (text is None or text.startswith("--r") or ("R" in text and not text.startswith("--")) for text in words)
    return segment.entry in LISTERS and not any(deep)


def checkable(source: Segment) -> bool:
    """Whether it can be run beforehand to see the names that it prints: a git command as written, in one folder."""
    return (
        source.entry in GIT_LISTINGS
        and source.verdict is CommandVerdict.READ_ONLY
        and source.fed_by is None
        and not source.env
        and not source.path[:-1]
        and all(piece.kind is PieceKind.LITERAL for word in source.argv for piece in word.pieces)
        and len(source.cwds) == 1
        and None not in source.cwds
        and (source.entry != "git diff" or "--name-only" in map(str, source.argv))
    )


def checked_listing(segment: Segment, word: Word) -> Segment | None:
    """The git command whose names, and nothing else, a word stands for, if these can be looked at beforehand."""
    pieces = [piece for piece in word.pieces if piece.text]
    source = pieces[0].script if len(pieces) == 1 else None
    if pieces and {piece.text for piece in pieces} <= {FED, WHOLE_NAME.pieces[0].text} and segment.fed_by is not None:
        source = origin(segment) if segment.fed_by.lists_paths else None
    return source if isinstance(source, Segment) and checkable(source) and segment.cwds == source.cwds else None


def names_from(word: Word, inserted: Iterable[tuple[str, tuple[Segment, ...]]]) -> Word:
    """The word, marked with the git command whose names it stands for, if it is nothing but those."""
    pieces = [piece for piece in word.pieces if piece.text]
    if len(pieces) != 1 or pieces[0].kind is not PieceKind.SUBSTITUTION or pieces[0].quoted:
        return word
    printing = next((found for text, found in inserted if text == pieces[0].text), ())
    if not printing or not printing[-1].lists_paths or len(list(chain_of(printing[-1]))) != len(printing):
        return word
    source = origin(printing[-1])
    return word._replace(pieces=(pieces[0]._replace(script=source),)) if checkable(source) else word


def chain_of(segment: Segment) -> Iterator[Segment]:
    """A command and those that feed it, one after the other."""
    source: Segment | None = segment
    while source is not None:
        yield source
        source = source.fed_by


def only_files(words: tuple[Word, ...]) -> bool:
    """True if a find with these words comes to its first action with ordinary files only, and never with links."""
    texts = [word.literal for word in words]
    if None in texts or NOT_ALL_OF_THESE.intersection(filter(None, texts)):
        return False
    first = next((at for at, text in enumerate(texts) if text in ACTIONS), len(texts))
    return any(pair == ("-type", "f") for pair in pairwise(texts[:first]))


def found_name(words: tuple[Word, ...]) -> str:
    """A plain pattern that the names of all that a find with these words comes to its first action with have."""
    texts = [word.literal or "" for word in words]
    if "" in texts or NOT_ALL_OF_THESE.intersection(texts):
        return ""
    first = next((at for at, text in enumerate(texts) if text in ACTIONS), len(texts))
    tests = pairwise(texts[:first])
    return next((name for test, name in tests if test in ("-name", "-iname") and PLAIN_PATTERN.match(name)), "")


def has_name(path: str, pattern: str) -> bool:
    """Whether a file, or a folder that it is in, may have a name of a plain pattern."""
    end = pattern.removeprefix("*").casefold()
    names = path.casefold().split("/")
    return any(name.endswith(end) if pattern.startswith("*") else name == end for name in names)


class Narrowing:
    """Whether what comes to the next action of a find passed a test of its name, on each `-o` way and not negated."""

    def __init__(self, starts: Iterable[Word] = ()) -> None:
        self.starts = [start.literal or "" for start in starts]
        self.now = self.before = self.negated = False
        self.others = True
        self.outside: list[tuple[bool, bool, bool, bool]] = []

    @property
    def whole(self) -> bool:
        """Whether any path at all can come to the end of the expression without such a test."""
        return not (self.now and self.others)

    def add(self, name: str | None, value: str | None) -> None:
        """Takes the next word of the expression; `value` is the word behind it."""
        if name == "(":
            self.outside.append((self.before, self.others, self.now, self.negated))
            self.before, self.others, self.negated = self.now, True, False
        elif name == ")" and self.outside:
            narrowed = self.now and self.others
            self.before, self.others, self.now, self.negated = self.outside.pop()
            self.test(narrowed)
        elif name in ("-o", "-or", ","):
            self.others, self.now = self.others and self.now, self.before
        elif name in ("!", "-not"):
            self.negated = not self.negated
        elif name not in ("-a", "-and"):
            self.test(name == "-empty" or (name in NAME_TESTS and self.picks(value or "")))

    def test(self, narrows: bool) -> None:
        self.now = self.now or (narrows and not self.negated)
        self.negated = False

    def picks(self, pattern: str) -> bool:
        """False for a pattern that every name below the starting points can match."""
        for start in filter(None, self.starts):
            pattern = pattern.removeprefix(start)
        return re.search(r"\w", re.sub(r"\[[^]]*\]", "", pattern)) is not None


def finds_all(words: tuple[Word, ...]) -> bool:
    """True unless a find with these operands prints only paths that pass a test of their names."""
    found = Narrowing(words[:1])
    for at, word in enumerate(words):
        if (word.literal or "-").startswith(("-", "(", ")", "!", ",")):
            found.add(word.literal, words[at + 1].literal if at + 1 < len(words) else None)
    return found.whole


def fd_finds_all(words: tuple[Word, ...]) -> bool:
    """True unless an fd with these words looks for a name: its first word, or an extension."""
    texts = [word.literal or "" for word in words]
    named = bool(texts) and not texts[0].startswith("-") and re.search(r"\w", texts[0]) is not None
    return not named and not any(text.startswith(("-e", "--extension")) for text in texts)
