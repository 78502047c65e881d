"""
Finds what a command line would remove, wherever its words come from.

A word can stand for paths that another command finds or prints: `find ~ -exec rm {} +`, `find ~ | xargs rm`,
`rm $(ls ~)`, `xargs sh -c 'rm "$@"' _`. It can also come out of a variable, a loop, a function or `set --`. Each is
followed back to the folders that are searched, the words that are printed, or the words that were put there.

Where that is not possible, the word can be any place that the line names: `find ~ > list; xargs rm < list`.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain

from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.shell import tables
from handrail.shell.listing import PLACE, start_of
from handrail.shell.model import (
    POSITIONALS,
    Analysis,
    Binding,
    Does,
    Effect,
    Piece,
    PieceKind,
    Segment,
    Word,
    literal_word,
)
from handrail.shell.possible_commands import possible_commands
from handrail.shell.printed_words import (
    BLANKS,
    HERE,
    LISTERS,
    PRINTERS,
    VARIABLE,
    Source,
    behind_assignment,
    fed_words,
    inserted_words,
    parts_of,
    plain_word,
    printed_words,
    replace_piece,
    variable_of,
    words_in_text,
)
from handrail.shell.tables.format import Role
from handrail.shell.text_programs import written_scripts
from handrail.shell.verdict import judge_command

KEEPS_INPUT = frozenset("read mapfile readarray xargs parallel".split())
POSITIONAL = lazy_pattern(r"\$\{?(?:[0-9]+|[@*])\}?\Z")
NUMBERS = frozenset(("$?", "$#", "$$", "$!"))
FOLDERS = frozenset(("HOME", "PWD"))  # known where places are resolved
# Around commands that see the variables of the line at this point.
SAME_SHELL = frozenset("group for while if case subshell".split())
SEPARATORS = lazy_pattern(r"[ \t\n:;,|]+")
QUOTED_PATH = lazy_pattern(r"[\"']([~/][\w./~-]*)")  # in a program for an interpreter
WILD = lazy_pattern(r"[*?]")
KNOWN = frozenset(
    (PieceKind.LITERAL, PieceKind.GLOB, PieceKind.BRACE, PieceKind.TILDE, PieceKind.ARITHMETIC, PieceKind.PROCESS)
)
MAX_FOLLOWED = 200
MAX_PIECES = 20  # of a word that is followed; a function that calls itself can make it grow
MAX_FOLLOWED_IN_LINE = 1000
MAX_GUESSED = 50  # different words that are guessed
MAX_DEPTH = 6


class Removal(NamedTuple):
    """A file or folder that is removed, seen from the folders that `segment` runs in."""

    segment: Segment
    word: Word
    whole: bool
    """All that is in it goes, not only what passes a test or a filter."""
    guessed: bool = False
    """The removed word is not known; the line names this one."""


def removals(analysis: Analysis) -> Iterator[tuple[int, Removal]]:
    """What the commands of a line remove, or move away, with all that is in it; each with the index of its segment."""
    line = Line(analysis)
    for at, segment in enumerate(analysis.segments):
        effects = [effect for effect in segment.effects if effect.removes and effect.word is not None]
        aliased = "alias" in segment.path and is_remover(segment.argv)  # its operands come from elsewhere
        if effects or (segment.argv and segment.argv[0].literal is None) or aliased:
            yield from ((at, removal) for removal in distinct(line.find_removed(segment, effects)))


def distinct(found: Iterable[Removal]) -> Iterator[Removal]:
    seen = set[object]()
    for removal in found:
        where, pieces = removal.segment, removal.word.pieces
        texts = tuple((piece.kind, piece.text, piece.values) for piece in pieces)
        key = (texts, where.cwds, where.in_home, removal.whole, removal.guessed)
        if key not in seen:
            seen.add(key)
            yield removal


def is_remover(words: tuple[Word, ...]) -> bool:
    """Whether the operands of a command are removed or moved away."""
    entry = tables.lookup(words[0].literal or "") if words else None
    for word in words[1:2]:
        entry = entry.subcommands.get(word.literal or "", entry) if entry is not None else None
    return entry is not None and (entry.rest is Role.REMOVE or entry.moves_files == "*")


def possible_removals(analysis: Analysis) -> tuple[Removal, ...]:
    """What the commands that a line might run besides its segments would remove; their words count as plain text."""
    scripts = (possible_commands(text) for text in written_scripts(analysis.segments))
    lines = chain(analysis.suspects, *scripts)
    commands = [tuple(map(literal_word, words)) for words in lines if tables.lookup(words[0]) is not None]
    found = {command: list(of_words(command)) for command in commands}
    possible = [removal for removed in found.values() for removal in removed]
    # how they feed each other is not known: it may be what any of them prints, and any place that the line names
    if any(is_given(command, removed) for command, removed in found.items()):
        possible += [Removal(*place) for command in commands for place in printed_words(segment_of(command))]
        possible += [Removal(*place, guessed=True) for place in Line(analysis).named]
    return tuple(distinct(possible))


def is_given(words: tuple[Word, ...], removed: list[Removal]) -> bool:
    """Whether a command removes what another one prints, as far as its words tell."""
    if not removed:
        return is_remover(words)
    return any(str(removal.word).startswith(("$", "{", "<")) for removal in removed)


def segment_of(words: tuple[Word, ...], arguments: tuple[Word, ...] = ()) -> Segment:
    found = judge_command(words)
    return Segment(words, 0, 0, entry=found.entry, effects=found.effects, arguments=arguments)


def of_words(words: tuple[Word, ...], arguments: tuple[Word, ...] = (), depth: int = 0) -> Iterator[Removal]:
    segment = segment_of(words, arguments)
    yield from (removal for _, removal in removals(Analysis("", "", (segment,))))
    for effect in segment.effects if depth < MAX_DEPTH else ():
        if effect.child:
            yield from of_words(effect.child, effect.arguments, depth + 1)


class Line:
    """What a whole command line says about the words in it."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.left = MAX_FOLLOWED_IN_LINE
        self.guessed = set[tuple[str, bool]]()

    @cached_property
    def bindings(self) -> dict[str, list[Binding]]:
        found: dict[str, list[Binding]] = {}
        for binding in self.analysis.bindings:
            found.setdefault(binding.name, []).append(binding)
        return found

    def find_removed(self, segment: Segment, effects: list[Effect]) -> Iterator[Removal]:
        for effect in effects:
            if effect.word is not None:
                yield from Follower(self).follow(segment, effect.word)
        if segment.argv and segment.argv[0].literal is None:
            yield from self.removed_by_any(segment)
        elif not effects:  # the words behind an alias
            for call in self.analysis.segments:
                for word in call.argv[1:] if not call.entry else ():
                    yield from Follower(self).follow(call, word)

    def removed_by_any(self, segment: Segment) -> Iterator[Removal]:
        """What is removed if the program, whose name is not written there, is one that removes."""
        program, arguments = segment.argv[0], segment.argv[1:]
        follower = Follower(self, guesses=False)
        names = [found.word.literal for found in follower.follow(segment, program)]
        for name in dict.fromkeys(name for name in names if name):
            for effect in judge_command((literal_word(name), *arguments)).effects:
                if effect.removes and effect.word is not None:
                    yield from Follower(self).follow(segment, effect.word)
        if not follower.complete:
            for word in arguments:
                for removal in Follower(self, guesses=False).follow(segment, word, whole=False):
                    yield removal._replace(guessed=True)

    def guesses(self, word: Word, at: int, whole: bool) -> Iterator[Removal]:
        """The word with each place that the line names for a piece; behind other text it is no place of its own."""
        if any(piece.text and piece.kind is not PieceKind.BRACE for piece in word.pieces[:at]):
            return
        rest = word._replace(pieces=word.pieces[at + 1 :])
        yield from self.guess(str(rest), whole, lambda named: replace_piece(word, at, named))

    def in_named_folders(self, word: Word, whole: bool) -> Iterator[Removal]:
        """The word in each folder that the line names: the one in which the command runs is not known."""
        if not str(word).startswith(("/", "~", "$")):
            pieces = (Piece(PieceKind.LITERAL, "/", quoted=True), *word.pieces)
            yield from self.guess(f"/{word}", whole, lambda named: named._replace(pieces=(*named.pieces, *pieces)))

    def guess(self, rest: str, whole: bool, complete: Callable[[Word], Word]) -> Iterator[Removal]:
        """Each place that the line names with the rest of a removed word. Of too many words only the places count."""
        if len(self.guessed) >= MAX_GUESSED:
            rest, complete = "", lambda named: named
        if (rest, whole) not in self.guessed:
            self.guessed.add((rest, whole))
            for seen_from, named, all_of_it in self.named:
                yield Removal(seen_from, complete(named), whole and all_of_it, guessed=True)

    @cached_property
    def named(self) -> tuple[Source, ...]:
        """Every place that the line names; what a variable, list or text carries is removed with all that is in it."""
        found = [(binding.segment, binding.word, True) for binding in self.analysis.bindings]
        if "$_" in self.analysis.text:
            found += self.last_words
        kept = self.kept
        for segment in self.analysis.segments:
            if segment.entry in PRINTERS | LISTERS | HERE:
                carried = id(segment) in kept or any(mark in ("$(...)", "<(...)") for mark in segment.path)
                found += [(seen, word, whole and carried) for seen, word, whole in printed_words(segment)]
            elif segment.entry and not segment.does(Does.UNLISTED) and not segment.does(Does.UNKNOWN):
                words = [effect.word for effect in segment.effects if effect.word is not None and not effect.removes]
                found += [(segment, word, False) for word in words]
            else:
                texts = [text for word in segment.argv[1:] for text in QUOTED_PATH.findall(str(word))]
                found += [(segment, word, False) for word in (*segment.argv[1:], *map(plain_word, texts))]
            if segment.fed_by is not None and not segment.fed_by.effects and segment.fed_by.entry == "echo":
                found += printed_words(segment.fed_by)  # a here-document or here-string
        if self.analysis.problems:
            found += words_in_text(self.analysis.text)
        return tuple(
            (seen, part, whole)
            for seen, word, whole in found
            for part in parts_of(behind_assignment(word))
            if is_known(part)
        )

    def through_links(self, word: Word) -> Iterator[tuple[Segment, Word]]:
        """What a word leads to through links that the line makes: `ln -s ~ link; rm -r link/*`."""
        text = str(word)
        for segment in self.linking:
            *targets, name = [each for each in segment.argv[1:] if not str(each).startswith("-")] or [word]
            if text.startswith(f"{name}/"):
                rest = Piece(PieceKind.LITERAL, text[len(str(name)) :], quoted=True)
                yield from ((segment, target._replace(pieces=(*target.pieces, rest))) for target in targets)

    @cached_property
    def linking(self) -> list[Segment]:
        return [segment for segment in self.analysis.segments if segment.entry == "ln"]

    @cached_property
    def last_words(self) -> list[Source]:
        """What `$_` can stand for."""
        return [(segment, segment.argv[-1], True) for segment in self.analysis.segments if segment.argv]

    @cached_property
    def kept(self) -> set[int]:
        """The commands whose output is kept: in a file, or by a command that reads it into words."""
        found = set[int]()
        for segment in self.analysis.segments:
            if segment.writes or segment.name in KEEPS_INPUT:
                source: Segment | None = segment
                while source is not None:
                    found.add(id(source))
                    source = source.fed_by
        return found


def is_known(word: Word) -> bool:
    """Whether a word can be resolved without looking at anything else."""
    return all(piece.kind in KNOWN or piece.values or variable_of(piece) in FOLDERS for piece in word.pieces)


class Follower:
    """Follows the pieces of one word to what they stand for, up to a number of steps."""

    def __init__(self, line: Line, *, guesses: bool = True) -> None:
        self.line, self.guesses = line, guesses
        self.left = MAX_FOLLOWED
        self.complete = True
        self.seen = set[tuple[str, bool, int, tuple[str, ...]]]()

    def follow(self, segment: Segment, word: Word, whole: bool = True) -> Iterator[Removal]:
        key = (str(word), whole, id(segment.fed_by), tuple(map(str, segment.arguments)))
        if key in self.seen:
            return
        self.seen.add(key)
        tests = [piece.narrowed for piece in word.pieces if piece.kind in (PieceKind.FOUND, PieceKind.FILE)]
        if tests:
            word, whole = start_of(word), whole and not all(tests)
            if word.may_be_empty:  # then there is no starting point, and find begins here
                yield Removal(segment, literal_word("."), whole)
        yield Removal(segment, word, whole)
        if None in segment.cwds and self.guesses:
            yield from self.line.in_named_folders(word, whole)
        for seen_from, path in self.line.through_links(word):
            yield from self.follow(seen_from, path, whole)
        yield from self.follow_pieces(segment, word, whole)

    def follow_pieces(self, segment: Segment, word: Word, whole: bool) -> Iterator[Removal]:
        known = word.alternatives is not None
        for at, piece in enumerate(word.pieces):
            if piece.kind in KNOWN or (known and not self.is_stale(piece)):
                continue
            sources, complete = self.sources(segment, piece)
            for seen_from, source, all_of_it in sources:
                if self.left <= 0 or self.line.left <= 0 or len(word.pieces) > MAX_PIECES:
                    complete = False
                    break
                self.left -= 1
                self.line.left -= 1
                yield from self.follow(seen_from, replace_piece(word, at, source), whole and all_of_it)
            if not complete:
                self.complete = False
                yield from self.line.guesses(word, at, whole) if self.guesses else ()

    def is_stale(self, piece: Piece) -> bool:
        """Whether a known value may have been replaced where this is not followed (a function, eval), or is cut."""
        bound = self.line.bindings.get(piece.text[1:], ()) if piece.values else ()
        return bool(bound and "IFS" in self.line.bindings) or any(
            not SAME_SHELL.issuperset(binding.segment.path) for binding in bound
        )

    def sources(self, segment: Segment, piece: Piece) -> tuple[list[Source], bool]:
        """The words that a piece of a word can stand for, and whether these are all."""
        if piece.kind in (PieceKind.FOUND, PieceKind.FILE) or piece.text in NUMBERS:
            return [], True
        if piece.kind is PieceKind.SUBSTITUTION:
            return inserted_words(segment, piece)
        if POSITIONAL.match(piece.text) or (piece.kind is PieceKind.INPUT and piece.text == PLACE):
            known = segment._replace(arguments=())
            found = [(known, argument, True) for argument in segment.arguments]
            found += self.bound_words(segment, POSITIONALS)
            return found, bool(found)
        if piece.text.startswith("$"):
            return self.variable(segment, piece)
        return fed_words(segment)

    def variable(self, segment: Segment, piece: Piece) -> tuple[list[Source], bool]:
        match = VARIABLE.match(piece.text)
        name, operator, text = match.groups("") if match else ("", "", "")
        text = text.removesuffix("}")
        found = self.bound_words(segment, name)
        if name == "_":  # the last word of the command before
            found += self.line.last_words
        blanks = SEPARATORS if "IFS" in self.line.bindings else BLANKS
        found += [(segment, literal_word(part), True) for value in piece.values or () for part in blanks.split(value)]
        complete = bool(found)
        if piece.kind is PieceKind.INPUT and not found:
            found, complete = fed_words(segment)
        if name in FOLDERS:
            folder = Word((Piece(PieceKind.PARAMETER, f"${name}", quoted=True),))
            found, complete = [*found, *([(segment, folder, True)] if operator else [])], True
        if operator.endswith(("-", "+")):
            found += [(segment, plain_word(part), True) for part in text.split()]
        if operator.startswith("%") and "/" in text and WILD.search(text):  # the folder that it is in
            above = Piece(PieceKind.LITERAL, "/..", quoted=True)
            found += [(at, word._replace(pieces=(*word.pieces, above)), whole) for at, word, whole in found]
        # What a pattern cuts off may be all that made the place harmless.
        return found, complete and not operator.startswith("/") and not (operator and WILD.search(text))

    def bound_words(self, segment: Segment, name: str) -> list[Source]:
        """The words that the line puts into a variable. They are removed in `segment`, wherever they come from."""
        return [
            (
                segment._replace(
                    inserted=segment.inserted + binding.segment.inserted,
                    arguments=binding.segment.arguments or segment.arguments,
                    fed_by=binding.segment.fed_by or segment.fed_by,
                ),
                word,
                True,
            )
            for binding in self.line.bindings.get(name, ())
            for word in (binding.word, *(parts_of(binding.word, SEPARATORS) if "IFS" in self.line.bindings else ()))
        ]
