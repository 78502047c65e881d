"""
Files that a command may write although no table says so: words of programs that are not described in full, names that
another command of the line hands it (`echo x | xargs tee`, `tee "$(echo x)"`), and what a search finds.
"""

from collections.abc import Iterator
from functools import partial

from handrail.permissions.possible_files import ENDINGS, cuts
from handrail.shell.effects import expand_braces
from handrail.shell.listing import listed_folders, start_of
from handrail.shell.model import HARMLESS, Analysis, CommandVerdict, Does, PieceKind, Segment, Word, literal_word
from handrail.shell.printed_words import printed_words
from handrail.shell.removals import Follower, Line, Removal, is_known
from handrail.shell.shell_state import DECLARING
from handrail.shell.verdict import judge_command

MAX_GUESSED = 40
PLAIN = frozenset((PieceKind.LITERAL, PieceKind.GLOB, PieceKind.BRACE))
FOUND = frozenset((PieceKind.FOUND, PieceKind.FILE))
# What they print are names of files that exist, or numbers.
LISTINGS = frozenset(("find", "fd", "fdfind", "git ls-files", "git status", "seq"))
NAME_LISTS = {
    **dict.fromkeys(("git diff", "git show", "git log"), ("--name-only",)),
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "ag", "git grep"), ("-l", "-L", "--files", "--name-only")),
}
"""The options with which others do so; of a cluster, one letter."""
SEARCHES = frozenset(("grep", "egrep", "fgrep"))
"""They search all that is in a folder; others leave out what is hidden."""


def guessed_texts(segment: Segment) -> Iterator[tuple[str, str]]:
    """The texts in the words of a command that may be names of files, each with a folder that it is seen from."""
    if not is_described(segment):
        known_positions = known_words(segment)
        for word in segment.argv[1 : MAX_GUESSED + 1]:
            if (word.start, word.end) not in known_positions:
                texts = [text for known in texts_of(word) for text in texts_in(known)]
                texts += [text.removesuffix(end) for end in ENDINGS.get(segment.name, ()) for text in texts]
                yield from ((text, folder or "") for text in dict.fromkeys(texts) for folder in segment.cwds)


def texts_of(word: Word) -> list[str]:
    """What a word stands for that holds no more than braces."""
    if any(piece.kind is PieceKind.BRACE for piece in word.pieces):
        return [str(path) for path in expand_braces(word) if path is not None]
    return [word.literal or ""]


def texts_in(text: str) -> Iterator[str]:
    """The word, and what stands behind an option or a separator in it; a text with blanks is no list of files."""
    yield text
    if text and not any(map(str.isspace, text)):
        yield from {str(cut) for cut in cuts(literal_word(text))} - {text}


def is_described(segment: Segment) -> bool:
    """Whether the tables say of every word of a command whether it is a file that is written."""
    return bool(segment.entry) and not any(
        effect.does not in HARMLESS
        and effect.does is not Does.SECRET
        and (effect.does is not Does.WRITES or (effect.word is None and not writes_words(segment)))
        for effect in segment.effects
    )


def writes_words(segment: Segment) -> bool:
    """Whether the tables name words that it writes; the shell writes the targets of redirections."""
    targets = {(redirection.target.start, redirection.target.end) for redirection in segment.redirections}
    return any((word.start, word.end) not in targets for word in segment.writes)


def known_words(segment: Segment) -> set[tuple[int, int]]:
    """Where the words stand that it only runs, or puts into variables."""
    words = [word for effect in segment.effects for word in effect.child]
    words += [effect.word for effect in segment.effects if effect.does is Does.STARTS and effect.word is not None]
    words += segment.argv if segment.name in DECLARING else ()
    return {(word.start, word.end) for word in words}


def handed_words(analysis: Analysis) -> Iterator[tuple[int, Removal]]:
    """What the words of commands that write may stand for, as far as the line says it, where no table knows it."""
    line = Line(analysis)
    for part, segment in enumerate(analysis.segments):
        if segment.verdict is CommandVerdict.READ_ONLY:
            continue
        targets = [redirection.target for redirection in segment.redirections]
        known_positions, described = known_words(segment), is_described(segment)
        for word in (*segment.argv[1 : MAX_GUESSED + 1], *targets):
            if is_followed(word, described=described or (word.start, word.end) in known_positions):
                yield from ((part, found) for found in Follower(line, guesses=False).follow(segment, word))
        for word in segment.writes if None in segment.cwds else ():
            yield from ((part, found) for found in line.in_named_folders(word, whole=True))


def is_followed(word: Word, *, described: bool) -> bool:
    """Whether a word stands for others; `described`: the tables know what a wildcard in it stands for."""
    if all(piece.kind in PLAIN for piece in word.pieces):
        loops = any(piece.kind is PieceKind.GLOB and piece.quoted for piece in word.pieces)
        return loops or (not described and any(piece.kind is not PieceKind.LITERAL for piece in word.pieces))
    return True


# Names that a search finds, or that stand in a file


def searched_folders(analysis: Analysis) -> Iterator[tuple[int, Segment, Word, str]]:
    """The folders in which a search finds what a command writes, each with the name that it looks for, if any."""
    for part, segment in enumerate(analysis.segments):
        for word in segment.writes:
            if found := [piece for piece in word.pieces if piece.kind in FOUND]:
                yield part, segment, start_of(word), found[0].name
        if written_inputs(segment):
            for source in sources_of(segment):
                if source.entry == "find":
                    yield from (
                        (part, seen_from, word, below.name) for seen_from, word, below in listed_folders(source)
                    )
                elif source.name in SEARCHES and is_listing(source) and not has_filter(source):
                    yield from ((part, source, word, "") for word in source.reads)


def writes_unknown_names(segment: Segment) -> bool:
    """Whether it writes files whose names it is handed, and these are text of a file: `xargs tee < list`."""
    return written_inputs(segment) and not has_known_names(segment)


def written_inputs(segment: Segment) -> bool:
    """Whether it would write, move or remove what it is handed."""
    if segment.verdict is CommandVerdict.READ_ONLY or not any(map(is_input, segment.argv)):
        return False
    words = tuple(
        literal_word("x")._replace(start=-at) if is_input(word) else word for at, word in enumerate(segment.argv)
    )
    effects = judge_command(words).effects
    return any(
        effect.word is not None and effect.word.start < 0 and (effect.does is Does.WRITES or effect.removes)
        for effect in effects
    )


def is_input(word: Word) -> bool:
    return any(piece.kind is PieceKind.INPUT for piece in word.pieces)


def has_known_names(segment: Segment) -> bool:
    """Whether what it is handed are words of the line, numbers, or names of files that another command lists."""
    for source in sources_of(segment):
        if is_listing(source):
            return True
        if printed := [word for _, word, _ in printed_words(source)]:
            return all(map(is_known, printed))
        if source.reads:
            return False
    return False


def sources_of(segment: Segment) -> Iterator[Segment]:
    """The commands that feed it, the nearest first."""
    source = segment.fed_by
    while source is not None:
        yield source
        source = source.fed_by


def is_listing(source: Segment) -> bool:
    """Whether a command prints names of files that exist."""
    texts = [str(word) for word in source.argv[1:]]
    options = NAME_LISTS.get(source.entry, ())
    return source.entry in LISTINGS or any(map(partial(has_option, texts), options))


def has_filter(source: Segment) -> bool:
    """Whether a search is given which files to look at."""
    return any(str(word).startswith(("--include", "--exclude")) for word in source.argv)


def has_option(texts: list[str], option: str) -> bool:
    """Whether an option is among words; a letter may stand in a cluster."""
    if option.startswith("--"):
        return any(text.startswith(option) for text in texts)
    return any(text.startswith("-") and not text.startswith("--") and option[1] in text for text in texts)
