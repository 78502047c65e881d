"""
The words that commands of a line print, and so may hand to another: `rm $(ls ~)`, `find ~ | xargs rm`.

Each is told with the command that prints it, and whether all that is there is printed or only what passes a test.
"""

import re
from collections.abc import Iterator

from handrail.lazy import lazy_pattern
from handrail.shell import tables
from handrail.shell.listing import fd_finds_all, finds_all
from handrail.shell.model import Does, Piece, PieceKind, Segment, Word, literal_word
from handrail.shell.possible_commands import ASSIGNMENT, LEADING, cut, visible

PRINTERS = frozenset(("echo", "printf", "yes", "realpath", "readlink", "dirname"))
LISTERS = frozenset(("find", "fd", "fdfind", "ls", "dir", "vdir", "tree", "du", "git ls-files"))
HERE = frozenset(("pwd", "git rev-parse"))
FRESH = frozenset(("mktemp", "tempfile"))  # print a path that did not exist before
WHICH = frozenset(("which", "command", "type", "whereis"))  # print where a program is
# Print all that comes in. What any other command lets through may be a part of it.
PASS_ALL = frozenset("cat tac sort uniq tee tr nl rev xargs parallel".split())
ESCAPES = lazy_pattern(r"\\[nt0]|%[sbq]")
BEGINNING = lazy_pattern(r"~[^/]*|\$(?P<brace>\{)?(HOME|PWD)\b(?(brace)[^}]*\})")
BLANKS = lazy_pattern(r"[ \t\n]+")
WRITTEN = frozenset((PieceKind.LITERAL, PieceKind.TILDE))
# A variable, and what is done with its value: ${x%/*}, ${x:-word}.
VARIABLE = lazy_pattern(r"\$\{?([A-Za-z_]\w*)(?:(:?[-+]|%%?|##?|//?)(.*))?\}?\Z", re.DOTALL)

Source = tuple[Segment, Word, bool]


def printed_words(source: Segment) -> Iterator[Source]:
    """The folders or words whose names a command prints, and whether it prints all that is there."""
    words = source.argv[1:]
    if source.entry in HERE:
        yield source, literal_word("."), True
    elif source.entry in WHICH and (source.entry != "command" or any(str(word) in ("-v", "-V") for word in words[:1])):
        yield from ((source, word, True) for word in words if not str(word).startswith("-"))
    elif source.entry == "dirname":
        above = Piece(PieceKind.LITERAL, "/..", quoted=True)
        yield from ((source, word._replace(pieces=(*word.pieces, above)), True) for word in words)
    elif source.entry in PRINTERS:
        for word in words:
            text = word.literal
            parts = parts_of(word) if text is None else map(literal_word, ESCAPES.sub(" ", text).split())
            yield from ((source, part, True) for part in parts)
    elif source.entry in LISTERS or lists_files(source):
        folders = source.words(Does.READS, Does.LOOKS) or (literal_word("."),)
        whole = source.entry != "git ls-files"
        if source.entry == "find":
            whole = finds_all(words)
        elif source.entry in ("fd", "fdfind"):
            whole = fd_finds_all(words)
        yield from ((source, folder, whole) for folder in folders)


def lists_files(source: Segment) -> bool:
    """Whether it is a ripgrep that prints all files there are."""
    texts = {str(word) for word in source.argv}
    return source.entry == "rg" and "--files" in texts and not any(text.startswith(("-g", "-t")) for text in texts)


def inserted_words(segment: Segment, piece: Piece) -> tuple[list[Source], bool]:
    """What stands in place of a substitution."""
    inserted = next((found for text, found in segment.inserted if text == piece.text), ())
    outer = [source for source in inserted if len(source.path) == len(inserted[-1].path)]
    picks = any(source.entry not in LISTERS | PRINTERS | HERE | PASS_ALL for source in outer)
    printed = [found for source in inserted for found in printed_words(source)]
    complete = bool(printed) or (bool(inserted) and inserted[-1].entry in FRESH)
    return [(source, word, whole and not picks) for source, word, whole in printed], complete


def fed_words(segment: Segment) -> tuple[list[Source], bool]:
    """The paths that come in on standard input, followed back through filters."""
    source, whole, complete = segment.fed_by, True, True
    while source is not None:
        found = list(printed_words(source))
        if found:
            return [(seen_from, word, whole and all_of_it) for seen_from, word, all_of_it in found], complete
        complete = complete and not source.reads  # what is in these files comes in as well
        whole = whole and source.entry in PASS_ALL
        source = source.fed_by
    return [], False


def words_in_text(text: str) -> Iterator[Source]:
    """The words of a text that could not be parsed."""
    nowhere = Segment((), 0, 0)
    for words in cut(visible(text), 0):
        left = list(words)
        while left and left[0] in LEADING:
            del left[0]
        name = left[0].rpartition("/")[2] if left else ""
        carries = name in PRINTERS or tables.lookup(name) is None
        for word in words:
            setting = ASSIGNMENT.match(word)
            for part in BLANKS.split(setting[2] if setting else word):
                if part and not part.startswith("-"):
                    yield nowhere, plain_word(part), carries or setting is not None


def plain_word(text: str) -> Word:
    """The word for a text without quotes: a tilde or a known variable may begin it."""
    begins = BEGINNING.match(text)
    rest = text[begins.end() :] if begins else text
    pieces = [Piece(PieceKind.PARAMETER if "$" in rest else PieceKind.LITERAL, rest)] if rest else []
    if begins and begins[2]:
        pieces.insert(0, Piece(PieceKind.PARAMETER, f"${begins[2]}", quoted=True))
    elif begins:
        pieces.insert(0, Piece(PieceKind.TILDE, begins.group()))
    return Word(tuple(pieces))


def parts_of(word: Word, between: re.Pattern[str] = BLANKS) -> Iterator[Word]:
    """The words that a text with blanks in it can be cut into."""
    if not any(piece.kind in WRITTEN and between.search(piece.text) for piece in word.pieces):
        yield word
        return
    pieces: list[Piece] = []
    for piece in word.pieces:
        if piece.kind not in WRITTEN:
            pieces.append(piece)
            continue
        first, *others = between.split(piece.text)
        pieces += [piece._replace(text=first)] if first else []
        for text in others:
            if pieces:
                yield word._replace(pieces=tuple(pieces))
            pieces = [piece._replace(text=text)] if text else []
    if pieces:
        yield word._replace(pieces=tuple(pieces))


def behind_assignment(word: Word) -> Word:
    """The value in a word like `name=value`, else the word."""
    found = ASSIGNMENT.match(word.leading)
    return word.cut(found.start(2)) if found else word


def replace_piece(word: Word, at: int, source: Word) -> Word:
    return source._replace(pieces=(*word.pieces[:at], *source.pieces, *word.pieces[at + 1 :]))


def variable_of(piece: Piece) -> str:
    """The name of the variable, whatever is done with its value."""
    found = VARIABLE.match(piece.text) if piece.kind is PieceKind.PARAMETER else None
    return found[1] if found else ""
