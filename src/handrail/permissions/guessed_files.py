"""
Files that a command may write although no table says so: words of programs that are not described in full, names that
another command of the line hands it (`echo x | xargs tee`, `tee "$(echo x)"`), and what a search finds.
"""

from collections.abc import Callable, Iterator
from functools import partial

from handrail.named_tuples import NamedTuple
from handrail.permissions.possible_files import ENDINGS, MAX_NAMES, NO_NAME, WILDCARDS, cuts
from handrail.shell.effects import expand_braces
from handrail.shell.listing import PLAIN_PATTERN, has_name, listed_folders, start_of
from handrail.shell.model import (
    HARMLESS,
    Analysis,
    CommandVerdict,
    Does,
    Effect,
    PieceKind,
    Segment,
    Word,
    literal_word,
)
from handrail.shell.printed_words import printed_words, variable_of
from handrail.shell.removals import Follower, Line, Removal, is_known
from handrail.shell.shell_state import DECLARING
from handrail.shell.text_programs import COMMANDS, TextKind, program_text
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
"""They search all that is in a folder; others leave out what is hidden unless they have one of these options."""
HIDDEN = ("-.", "-H", "-u", "-g", "--hidden", "--unrestricted", "--glob", "--iglob")
FD = frozenset(("fd", "fdfind"))
LS = frozenset(("ls", "dir", "vdir"))
OPEN = frozenset((PieceKind.INPUT, PieceKind.SUBSTITUTION, PieceKind.PARAMETER))
MAX_DEPTH = 3


def guessed_texts(segment: Segment) -> Iterator[tuple[str, str]]:
    """The texts in the words of a command that may be names of files, each with a folder that it is seen from."""
    if not is_described(segment):
        known_positions = known_words(segment)
        for word in segment.argv[1 : MAX_GUESSED + 1]:
            if (word.start, word.end) not in known_positions:
                texts = [text for known in texts_of(word) for text in texts_in(known)]
                texts += [text.removesuffix(end) for end in ENDINGS.get(segment.name, ()) for text in texts]
                yield from ((text, folder or "") for text in dict.fromkeys(texts) for folder in segment.cwds)


def names_in_program(segment: Segment) -> list[str]:
    """What may be names of files in a program that a command is given as text, and that may do more than read."""
    if segment.verdict is CommandVerdict.READ_ONLY:
        return []
    given = program_text(segment)
    if given.kind not in (TextKind.LANGUAGE, TextKind.FILE) and segment.name not in COMMANDS:
        return []  # a shell has segments of its own, and another machine files of its own
    texts = (*given.texts, *(given.fed if given.from_input else ()))
    names = dict.fromkeys(name for text in texts for name in NO_NAME.split(text) if "." in name or "/" in name)
    return list(names)[:MAX_NAMES]


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


class FolderSearch(NamedTuple):
    """A folder in which one command of a line finds what another writes, and what it finds there."""

    part: int
    """The index of the command that writes."""
    segment: Segment
    top: Word
    name: str = ""
    """The pattern that the name of each file has, if it is known."""
    hidden: bool = True
    """Whether it finds names that begin with a dot."""
    deep: bool = True
    """Whether it goes into folders."""
    tracked: bool = False
    """Whether git names the files, which are never its own."""

    def finds(self, path: str) -> bool:
        """Whether it may find a path, seen from the folder."""
        names = path.split("/")
        return (
            (self.deep or len(names) == 1)
            and (self.hidden or not any(name.startswith(".") for name in names))
            and not (self.tracked and ".git" in names)
            and (not self.name or has_name(path, self.name))
        )


def searched_folders(analysis: Analysis) -> Iterator[FolderSearch]:
    """The folders in which a search of the line finds what a command of it writes."""
    for part, segment in enumerate(analysis.segments):
        for word in segment.writes:
            if found := [piece for piece in word.pieces if piece.kind in FOUND]:
                yield FolderSearch(part, segment, start_of(word), found[0].name)
        words = (*segment.writes, *written_words(segment, is_open))
        sources = (source for word in words for source in naming(analysis, segment, word))
        for source in {id(source): source for source in sources}.values():
            yield from searches(part, source)


def naming(analysis: Analysis, segment: Segment, word: Word, depth: int = 0) -> Iterator[Segment]:
    """The commands of the line that print what a word stands for: before a pipe, in a substitution, around `-x`."""
    for piece in word.pieces:
        if piece.kind is PieceKind.INPUT:
            yield from sources_of(segment)
            carriers = (other for other in analysis.segments if any(e.child == segment.argv for e in other.effects))
            yield from (other for other in carriers if other.name in FD)
        elif piece.kind is PieceKind.SUBSTITUTION:
            yield from (source for text, found in segment.inserted if text == piece.text for source in found)
        elif piece.kind is PieceKind.PARAMETER and depth < MAX_DEPTH:
            for binding in analysis.bindings:
                if binding.name == variable_of(piece):
                    yield from naming(analysis, binding.segment, binding.word, depth + 1)


def searches(part: int, source: Segment) -> Iterator[FolderSearch]:
    """Where a command looks for the names that it prints."""
    texts = [str(word) for word in source.argv[1:]]
    if source.entry == "find":
        yield from (FolderSearch(part, seen_from, top, below.name) for seen_from, top, below in listed_folders(source))
    elif source.name in LS:
        dotted, deep = (any(map(partial(has_option, texts), options.split())) for options in ("-a -A --al", "-R --rec"))
        yield from (FolderSearch(part, source, top, hidden=dotted, deep=deep) for top in source.reads)
    elif source.entry == "git ls-files":
        for top in source.reads:
            wild = not WILDCARDS.isdisjoint(str(top))
            name = str(top) if wild and PLAIN_PATTERN.match(str(top)) else ""
            yield FolderSearch(part, source, literal_word(".") if wild else top, name, tracked=True)
    elif is_listing(source) and not has_filter(source):
        if source.name == "git":
            yield FolderSearch(part, source, literal_word("."), tracked=True)
        elif source.name != "seq":
            dotted = source.name in SEARCHES or any(map(partial(has_option, texts), HIDDEN))
            yield from (FolderSearch(part, source, top, hidden=dotted) for top in source.reads)


def writes_unknown_names(segment: Segment) -> bool:
    """
    Whether it is handed text of a file that may name what it writes: `xargs tee < list`.

    A command that only reads names may write all the same if one of them is an option (`xargs sort < list`).
    """
    if segment.verdict is CommandVerdict.READ_ONLY or not any(map(is_input, segment.argv)):
        return False
    reads_names = all(effect.does in HARMLESS for effect in effects_on_names(segment, is_input))
    return (reads_names or bool(written_words(segment, is_input))) and not has_known_names(segment)


def written_words(segment: Segment, stands_for_names: Callable[[Word], bool]) -> list[Word]:
    """The words that are not known before the line runs and would be written, moved or removed if they were names."""
    if segment.verdict is CommandVerdict.READ_ONLY or not any(map(stands_for_names, segment.argv)):
        return []
    effects = effects_on_names(segment, stands_for_names)
    written = [effect.word for effect in effects if effect.does is Does.WRITES or effect.removes]
    return [segment.argv[-word.start] for word in written if word is not None and word.start < 0]


def effects_on_names(segment: Segment, stands_for_names: Callable[[Word], bool]) -> tuple[Effect, ...]:
    """What it would do if these words were plain names; the word at `n` starts at `-n` there."""
    words = tuple(
        literal_word("x")._replace(start=-at) if stands_for_names(word) else word
        for at, word in enumerate(segment.argv)
    )
    return judge_command(words).effects


def is_input(word: Word) -> bool:
    return any(piece.kind is PieceKind.INPUT for piece in word.pieces)


def is_open(word: Word) -> bool:
    """Whether another command of the line may make its text."""
    return any(piece.kind in OPEN and piece.values is None for piece in word.pieces)


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
