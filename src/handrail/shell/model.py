"""
What the analysis of a command line says, as frozen data.

    Analysis -> Segment (one program that would start) -> Effect (one thing it would do)
                                                       -> Reason (why it is not read-only)

Byte ranges are offsets into the UTF-8 of `Analysis.text`; a segment found in an inner text
(`sh -c '...'`) counts from the start of that text, and its `path` says which text it is.

The values are named tuples rather than frozen dataclasses: those take longer to define, and importing
`dataclasses` alone takes a fifth of what this package may cost to import.
"""

from enum import Enum, IntEnum
from itertools import pairwise, product, takewhile

from handrail.named_tuples import NamedTuple
from handrail.shell.patterns import escape

MAX_ALTERNATIVES = 16


class CommandVerdict(IntEnum):
    """Ordered by strength: the whole is judged like its worst part."""

    READ_ONLY = 0
    NOT_READ_ONLY = 1
    NOT_UNDERSTOOD = 2


class PieceKind(Enum):
    """What a piece of a word is before the shell expands it."""

    LITERAL = "literal"
    PARAMETER = "parameter"
    SUBSTITUTION = "substitution"
    PROCESS = "process substitution"
    GLOB = "glob"
    BRACE = "brace"
    TILDE = "tilde"
    ARITHMETIC = "arithmetic"
    INPUT = "input"  # text that arrives on standard input (read, xargs)
    FOUND = "found"  # the rest of a path below what is written before it (find -exec)
    FILE = "found file"  # the same, and it is no link (find -type f)


class Piece(NamedTuple):
    """A part of a word. `values` are all texts it can become, where they are known."""

    kind: PieceKind
    text: str
    quoted: bool = False
    values: tuple[str, ...] | None = None
    script: object | None = None  # syntax.Script of a substitution, or the Segment whose names it stands for
    narrowed: bool = False  # FOUND, FILE: only names that pass a test, not all that is there
    name: str = ""  # FOUND, FILE: the pattern that the name of each has, if it is known

    @property
    def pattern(self) -> str:
        """A literal or a wildcard as a part of a pattern for names."""
        return escape(self.text) if self.quoted and self.kind is PieceKind.LITERAL else self.text


# Can turn into nothing at all.
VANISHES = frozenset({PieceKind.PARAMETER, PieceKind.SUBSTITUTION, PieceKind.INPUT, PieceKind.BRACE})
# Can turn into several words, and into words that begin differently than the piece is written.
SPLITS = VANISHES | {PieceKind.ARITHMETIC}
EXPANDS = SPLITS | {PieceKind.GLOB}


class Word(NamedTuple):
    """One word of a command line, unquoted by us. Anything not literal keeps its mark."""

    pieces: tuple[Piece, ...]
    start: int = 0
    end: int = 0

    @property
    def literal(self) -> str | None:
        """The exact text, or None when any part is not known."""
        text = ""
        for piece in self.pieces:
            if piece.kind is not PieceKind.LITERAL:
                break
            text += piece.text
        else:
            return text
        values = self.alternatives
        return values[0] if values is not None and len(values) == 1 else None

    @property
    def alternatives(self) -> tuple[str, ...] | None:
        """Every text this word can be, or None when that is not known."""
        if len(self.pieces) == 1 and self.pieces[0].kind is PieceKind.LITERAL:
            return (self.pieces[0].text,)
        choices: list[tuple[str, ...]] = []
        total = 1
        for piece in self.pieces:
            options = (piece.text,) if piece.kind is PieceKind.LITERAL else piece.values
            if not options or (piece.kind is not PieceKind.LITERAL and not piece.quoted):
                return None
            total *= len(options)
            if total > MAX_ALTERNATIVES:
                return None
            choices.append(options)
        return tuple("".join(parts) for parts in product(*choices))

    @property
    def has_wildcard(self) -> bool:
        """Whether a part of it stands for the names of files."""
        return any(piece.kind is PieceKind.GLOB for piece in self.pieces)

    @property
    def prefix(self) -> str:
        """The literal text that every word made from this one surely starts with."""
        if any(piece.kind in SPLITS and not piece.quoted for piece in self.pieces):
            return ""
        return self.leading

    @property
    def leading(self) -> str:
        """The text before the first piece that is not literal."""
        known = takewhile(lambda piece: piece.kind is PieceKind.LITERAL, self.pieces)
        return "".join(piece.text for piece in known)

    @property
    def single(self) -> bool:
        """True when the shell makes exactly one argument of it."""
        return not any(
            piece.kind is PieceKind.BRACE
            or (piece.kind in EXPANDS and piece.kind is not PieceKind.ARITHMETIC and not piece.quoted)
            for piece in self.pieces
        )

    @property
    def may_be_empty(self) -> bool:
        values = self.alternatives
        if values is not None:
            return "" in values
        return not any(piece.text and piece.kind not in VANISHES for piece in self.pieces)

    @property
    def may_be_option(self) -> bool:
        """True unless no argument made from this word can begin with a dash."""
        values = self.alternatives
        if values is not None:
            return any(value.startswith("-") for value in values)
        if self.pieces and self.pieces[0].kind in (PieceKind.TILDE, PieceKind.PROCESS):
            return not self.single
        return not self.prefix or self.prefix.startswith("-")

    def __str__(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    def cut(self, count: int) -> "Word":
        """The word without its first `count` characters, which must be literal."""
        left, kept = count, list(self.pieces)
        while left and kept and kept[0].kind is PieceKind.LITERAL:
            head = kept.pop(0)
            if len(head.text) > left:
                kept.insert(0, Piece(PieceKind.LITERAL, head.text[left:], head.quoted))
                left = 0
            else:
                left -= len(head.text)
        return Word(tuple(kept), self.start, self.end)


# A name from a listing that arrives whole, as one argument.
WHOLE_NAME = Word((Piece(PieceKind.INPUT, "<name>", quoted=True),))


def literal_word(text: str, start: int = 0, end: int = 0) -> Word:
    return Word((Piece(PieceKind.LITERAL, text, quoted=True),), start, end)


class Does(Enum):
    """One thing a program does to the world. The first three leave the world as it is."""

    READS = "reads"  # opens a file; its contents may be shown
    LOOKS = "looks at"  # name, size, kind or counts of a file, not its contents
    RUNS = "runs"  # starts another command, which has its own segment
    WRITES = "writes"
    STARTS = "starts a program"  # one that cannot be looked into
    NETWORK = "network"
    STATE = "changes state"
    SECRET = "secret"  # noqa: S105 - a word for an effect, not a password
    UNLISTED = "not in the tables"  # no entry, or an option the entry does not list
    UNKNOWN = "not understood"


# Writing to these changes nothing.
FREE_TARGETS = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))
HARMLESS = frozenset({Does.READS, Does.LOOKS, Does.RUNS})
# Programs that do nothing but change the files that they are given.
EDITING = frozenset(("mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed"))


class Below(NamedTuple):
    """How far a read of a folder is one of everything in it."""

    links: bool = False  # links in it are followed
    hidden: bool = True  # names that begin with a dot are not left out
    name: str = ""  # only what has a name of this pattern, and what is in folders of such a name


class Effect(NamedTuple):
    """Something a segment does: to which file (`word`), with which command (`child`), and why we say so."""

    does: Does
    word: Word | None = None
    why: str = ""
    child: tuple[Word, ...] = ()
    shell: str | None = None  # text handed to a shell
    env: tuple[tuple[str, Word], ...] = ()  # what the child is started with (env NAME=VALUE)
    below: Below | None = None  # the files in a folder are read, too
    removes: bool = False  # the word is gone afterwards, and all that is in it
    arguments: tuple[Word, ...] = ()  # what `$1` of `shell` or `{}` of `child` stands for

    @property
    def verdict(self) -> CommandVerdict:
        if self.does in HARMLESS:
            return CommandVerdict.READ_ONLY
        return CommandVerdict.NOT_UNDERSTOOD if self.does is Does.UNKNOWN else CommandVerdict.NOT_READ_ONLY


class Requirement(NamedTuple):
    """A condition outside the command line: add `switches` to the command, or check `check` before running it."""

    name: str
    check: str
    switches: tuple[str, ...] = ()
    after_subcommand: bool = False

    @property
    def of_git(self) -> bool:
        """True if it is about the repository, and met with the settings that git is given."""
        return self.name.startswith("git-")

    @property
    def settings(self) -> tuple[str, ...]:
        """The `name=value` behind each `-c` of the switches."""
        return tuple(pair for flag, pair in pairwise(self.switches) if flag == "-c")


PLAIN_NAMES = Requirement(
    "plain-names", "no file name in the folders it goes through holds a blank or a quote or begins with a dash"
)
LINKS_INSIDE = Requirement(
    "links-inside", "no link below the folders it goes through leads to what may not be read unasked"
)

LISTED_NAMES = Requirement("listed-names", "what git lists are names of ordinary files inside, and no secrets")


class Reason(NamedTuple):
    """Why a segment has its verdict: where, in which construct, by which table entry."""

    verdict: CommandVerdict
    text: str
    start: int
    end: int
    node: str
    entry: str


class Redirection(NamedTuple):
    operator: str
    target: Word
    fd: str = ""


class Segment(NamedTuple):
    """One simple command, wherever it was found, and what it would do."""

    argv: tuple[Word, ...]
    start: int
    end: int
    node: str = "command"
    entry: str = ""
    path: tuple[str, ...] = ()  # the carriers around it, outermost first
    env: tuple[tuple[str, Word], ...] = ()
    cwds: tuple[str | None, ...] = (".",)  # the folders it may run in, relative to the start; None is any
    in_home: bool = False  # one of the folders that are not known is the home folder
    redirections: tuple[Redirection, ...] = ()
    effects: tuple[Effect, ...] = ()
    requires: tuple[Requirement, ...] = ()
    reasons: tuple[Reason, ...] = ()
    lists_paths: bool = False  # prints names of files at or under what it reads, and nothing else
    whole_names: tuple[Word, ...] = ()  # words that stand for those names when NUL keeps them apart
    fed_by: "Segment | None" = None  # the command whose output it reads
    # The commands whose output stands in its words (`rm $(ls)`), by the text of the substitution.
    inserted: tuple[tuple[str, tuple["Segment", ...]], ...] = ()
    arguments: tuple[Word, ...] = ()  # see Effect

    @property
    def verdict(self) -> CommandVerdict:
        return max((reason.verdict for reason in self.reasons), default=CommandVerdict.READ_ONLY)

    @property
    def name(self) -> str:
        """The basename of the program, for deny rules; empty when it is not literal."""
        return (self.argv[0].literal or "").rpartition("/")[2] if self.argv else ""

    @property
    def names(self) -> tuple[str, ...]:
        """The basenames of all programs it can be, for deny rules; empty when that is not known."""
        known = self.argv[0].alternatives if self.argv else None
        return tuple(dict.fromkeys(text.rpartition("/")[2] for text in known or ()))

    def words(self, *does: Does) -> tuple[Word, ...]:
        return tuple(effect.word for effect in self.effects if effect.does in does and effect.word is not None)

    @property
    def reads(self) -> tuple[Word, ...]:
        return self.words(Does.READS, Does.LOOKS)

    @property
    def writes(self) -> tuple[Word, ...]:
        return self.words(Does.WRITES)

    @property
    def removes(self) -> bool:
        """True if it deletes something. What is only moved still exists."""
        return any(effect.removes and effect.does is Does.WRITES for effect in self.effects)

    def does(self, what: Does) -> bool:
        return any(effect.does is what for effect in self.effects)

    @property
    def only_redirects(self) -> bool:
        """True if it reads, and changes nothing but files that the shell opens for it."""
        targets = {(redirection.target.start, redirection.target.end) for redirection in self.redirections}
        return bool(self.entry) and all(
            effect.does in HARMLESS
            or (
                effect.does is Does.WRITES
                and effect.word is not None
                and (effect.word.start, effect.word.end) in targets
            )
            for effect in self.effects
        )

    @property
    def only_edits(self) -> bool:
        """True if it is a plain program for changing files, and does nothing else."""
        known = (effect.does in HARMLESS or effect.does is Does.WRITES for effect in self.effects)
        return self.entry in EDITING and self.name == self.entry and all(known)


POSITIONALS = "@"


class Binding(NamedTuple):
    """A word that the line puts into a variable, in `segment`; `set -- word` and `function word` bind POSITIONALS."""

    name: str
    word: Word
    segment: Segment


class Analysis(NamedTuple):
    """What a command line would do. `text` is the line with continuations joined."""

    command: str
    text: str
    segments: tuple[Segment, ...] = ()
    problems: tuple[Reason, ...] = ()  # reasons that belong to the whole line
    # Words of commands it might run besides the segments: any when it is not understood, else those in texts for
    # programs that run them. Errs on the side of too much, for rules that deny or ask; never a ground to allow.
    suspects: tuple[tuple[str, ...], ...] = ()
    guesses: tuple[tuple[str, ...], ...] = ()  # the same, but what they are found in may as well be data
    bindings: tuple[Binding, ...] = ()

    @property
    def verdict(self) -> CommandVerdict:
        return max(
            [reason.verdict for reason in self.problems] + [segment.verdict for segment in self.segments],
            default=CommandVerdict.READ_ONLY,
        )

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return self.problems + tuple(reason for segment in self.segments for reason in segment.reasons)

    @property
    def runs_clean(self) -> bool:
        """True if it runs in the clean environment: its commands only read, write files by redirection, or edit."""
        return bool(self.segments) and not self.problems and all(map(needs_no_environment, self.segments))

    @property
    def requires(self) -> tuple[Requirement, ...]:
        return tuple(dict.fromkeys(need for segment in self.segments for need in segment.requires))


def needs_no_environment(segment: Segment) -> bool:
    return segment.verdict is CommandVerdict.READ_ONLY or segment.only_redirects or segment.only_edits
