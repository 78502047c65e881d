"""
The table of programs that run text: what they are given in words or on standard input are commands or programs.

Deny rules, ask rules and the `if` of hooks read it, for commands and for files that are named in such a text. It errs
on the side of too much and is never a ground to allow.
"""

import re
from collections.abc import Iterator
from enum import Enum
from itertools import islice

from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.shell import tables
from handrail.shell.model import Does, PieceKind, Segment, Word
from handrail.shell.printed_words import PASS_ALL, PRINTERS


class TextKind(Enum):
    """What a program runs."""

    SHELL = "shell"  # a shell: its text is a command line
    LANGUAGE = "language"  # an interpreter: a command is a string in its text, or a list of strings
    COMMANDS = "commands"  # some lines of its text are command lines, whatever else it is given
    FILE = "file"  # a text only if a word says that it comes from standard input: `make -f -`


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS = names("sh bash dash rbash ash zsh ksh mksh fish csh tcsh yash")
COMMANDS = names(
    "at batch crontab newgrp ed ex vi vim nvim view psql mysql mariadb sqlite3 gdb lldb sftp ftp lftp m4 expect dc"
)
WITHOUT_COMMAND = names("su sudo doas nsenter chroot unshare parallel sg ssh machinectl")  # a shell reads the input
WITH_SHELL = names("docker podman nerdctl kubectl oc lxc incus ssh machinectl")  # if they are told to start one
MAKES = names("make gmake")
MAKEFILES = names("Makefile makefile GNUmakefile")
ESCAPES = lazy_pattern(r"\\[^nt]|\S%|%(?!s(?:\s|\Z))")  # what printf and `echo -e` make other text of
MADE_UP = "$text"
FIRST_LINE = lazy_pattern(r"#!(?:/usr)?/bin/(?:env )?(?:(?:ba|da)?sh|python3?|node|perl)(?: -[a-z]+)?\n")
SCRIPT_READERS = SHELLS | names("source . exec eval")
AWKS = names("awk gawk mawk nawk original-awk")
FILTERS = AWKS | names("sed")
FROM_FILE = FILTERS | names("make gmake bmake ninja cmake just rake ant source .")
POWERSHELLS = frozenset(f"{name}{end}" for name in ("pwsh", "powershell", "pwsh-preview") for end in ("", ".exe"))
LANGUAGES = tuple(
    "python pypy ipython perl raku ruby irb pry node nodejs php lua luajit deno bun R Rscript osascript tclsh wish "
    "julia elixir iex erl escript ghc ghci runghc runhaskell groovy scala jshell kotlinc clojure clj bb guile racket "
    "sbcl clisp swipl ocaml utop octave qjs d8 bpftrace emacs gawk xonsh nu elvish".split()
)
VERSION = "0123456789."
STDIN = lazy_pattern(r"-\Z|(?:--?\w+=?)?(?:-|/dev/(?:stdin|fd/\d+)|/proc/[^/]+/(?:task/[^/]+/)?fd/\d+)\Z")
TEXT_OPTION = lazy_pattern(
    r"-[A-Za-z]*[cemprES]\Z|-[ceErR].|--(?:eval|command|execute|print|expr|version|help)\b|-[Vvh]\Z"
)
SCRIPT = lazy_pattern(r"\S*[./]\S*\Z")
# Names that start programs, or run text that is made at run time, in one language or another.
STARTERS = lazy_pattern(
    r"\b(?:system\w*|exec\w*|eval\w*|\w*spawn\w*|\w*popen\w*|Popen|\w*subprocess\w*|webbrowser|runpy|child_process"
    r"|pty|posix|fork\w*|shell\w*"
    r"|passthru|proc_open|qx|Command|Process\w*|__import__|importlib|ctypes|syscall|getattr|globals|b64decode)\b|`|['\"]\s*\|"
)
AWK_STARTS = lazy_pattern(r"system|getline|[|@]")
TEXT = lazy_pattern(r"[\s;&|`$(!<>]")
SINGLE, DOUBLE = r"'((?:[^'\\]|\\.)*)'", r'"((?:[^"\\]|\\.)*)"'
STRINGS = [
    lazy_pattern(pattern, re.DOTALL) for pattern in (f"{SINGLE}|{DOUBLE}", SINGLE, DOUBLE)
]  # one holds the other
BETWEEN = lazy_pattern(r"[\s,\[\](){}:]*(?:args)?[\s,\[\](){}:]*\Z")
BRACKETS = lazy_pattern(r"[\[\](){}]")
MAX_STRINGS = 200


class ProgramText(NamedTuple):
    """The texts that a command runs."""

    kind: TextKind | None = None
    texts: tuple[str, ...] = ()
    """Those among its words."""
    fed: tuple[str, ...] = ()
    """What it is known to read from standard input and run."""
    from_input: bool = False
    """Whether it runs what it reads from standard input."""
    unknown: bool = False
    """Whether it may run what is not known before it runs."""


def kind_of(name: str) -> TextKind | None:
    """How a program uses text; None if it is not in the table."""
    if name in SHELLS:
        return TextKind.SHELL
    if name in COMMANDS or name in WITHOUT_COMMAND or name in WITH_SHELL:
        return TextKind.COMMANDS
    if name in FROM_FILE:
        return TextKind.FILE
    return TextKind.LANGUAGE if is_language(name) or name.lower() in POWERSHELLS else None


def is_language(name: str) -> bool:
    """Whether a program is the interpreter of a language, with or without a version in its name."""
    begun = [each for each in LANGUAGES if name.startswith(each)] if name.startswith(LANGUAGES) else ()
    return any(not name[len(each) :].strip(VERSION) for each in begun)


def program_text(segment: Segment) -> ProgramText:
    """The texts that a command runs, from its words and its standard input."""
    name = segment.name
    kind = kind_of(name)
    fed, sure = fed_text(segment)
    if kind is None:
        return ProgramText() if not name or tables.lookup(name) is not None else ProgramText(None, (), fed)
    texts = tuple(text for text in map(str, segment.argv[1:]) if TEXT.search(text))
    from_input = reads_stdin(kind, segment)
    if kind is not TextKind.LANGUAGE:
        unknown = (from_input and not sure) or (kind is TextKind.FILE and file_starts(segment, texts))
        return ProgramText(kind, texts, fed if from_input else (), from_input, unknown)
    makes = any(map(STARTERS.search, (*texts, *fed))) or has_unknown_program(segment.argv[1:])
    return ProgramText(kind, texts, fed, from_input, makes or (from_input and not sure))


def file_starts(segment: Segment, texts: tuple[str, ...]) -> bool:
    """Whether a program of make, awk or sed starts others, or is one of awk that is not understood and may."""
    if segment.does(Does.STARTS):
        return bool(texts) or segment.name in FILTERS
    return segment.name in AWKS and segment.does(Does.UNKNOWN) and any(map(AWK_STARTS.search, texts))


def fed_text(segment: Segment) -> tuple[tuple[str, ...], bool]:
    """The text that a command is fed by echo, printf or a here-document, and whether that is surely all of it."""
    source = segment.fed_by
    if source is None or source.entry not in ("echo", "printf"):
        return (), False
    text = " ".join(str(word) for word in source.argv[1:])
    plain = source.entry == "echo" and "\\" not in text and all(word.literal is not None for word in source.argv[1:])
    return (text,), plain


def reads_stdin(kind: TextKind, segment: Segment) -> bool:
    """Whether what comes in on standard input is its program."""
    words = segment.argv[1:]
    named = any(STDIN.match(str(word)) for word in words) or any(map(is_process, words))
    if kind is TextKind.FILE:
        return named
    has_input = segment.fed_by is not None or any(each.operator.startswith("<") for each in segment.redirections)
    operands = [word for word in words if not str(word).startswith("-")]
    if kind is TextKind.COMMANDS:
        return has_input and reads_commands(segment, operands)
    if named:
        return True
    if any(TEXT_OPTION.match(str(word)) for word in words):
        return False
    return not operands or (has_input and not any(SCRIPT.match(str(word)) for word in operands))


def has_unknown_program(words: tuple[Word, ...]) -> bool:
    """Whether a word of an interpreter may be a text to run; behind the name of a script, words are its arguments."""
    before = ""
    for word in words:
        text = word.literal
        if text is None:
            return not is_file_pattern(word) or TEXT_OPTION.match(before) is not None
        if SCRIPT.match(text) and not text.startswith("-") and not TEXT_OPTION.match(before):
            return False
        before = text
    return False


def is_file_pattern(word: Word) -> bool:
    """Whether it stands for files whose names begin with a known letter, and so is no option."""
    kinds = {piece.kind for piece in word.pieces}
    return kinds <= {PieceKind.LITERAL, PieceKind.GLOB} and str(word)[:1] not in "-*?["


def reads_commands(segment: Segment, operands: list[Word]) -> bool:
    """Whether a program that has input, and may start a shell, starts one that reads it."""
    name = segment.name
    if name in COMMANDS:
        return True
    inner = (kind_of(str(word).rpartition("/")[2]) for word in operands)
    if name in WITH_SHELL and any(kind in (TextKind.SHELL, TextKind.LANGUAGE) for kind in inner):
        return True
    if name in ("ssh", "machinectl", "parallel"):
        return len(operands) < (1 if name == "parallel" else 2)
    return name in WITHOUT_COMMAND and not any(effect.child for effect in segment.effects)


def written_scripts(segments: tuple[Segment, ...]) -> Iterator[str]:
    """The texts that a line prints and runs: `echo x | sh`, `echo x > script; sh script`."""
    printing = list[Segment | None]()
    for segment in segments:
        if segment.name in SCRIPT_READERS:
            printing += [segment.fed_by, *(source for _, sources in segment.inserted for source in sources)]
        if segment.writes:
            targets = {str(word).rpartition("/")[2] for word in segment.writes}
            source = segment.fed_by if segment.entry in PASS_ALL else segment
            printing += [source] if any(runs_script(each, targets) for each in segments) else []
    for source in printing:
        if source is not None and source.entry in PRINTERS:
            text = " ".join(map(str, source.argv[1:])).replace("\\n", "\n").replace("\\t", "\t")
            yield FIRST_LINE.sub("", text, 1)
            if ESCAPES.search(text) and (source.entry == "printf" or text.startswith("-")):
                yield MADE_UP


def runs_script(segment: Segment, scripts: set[str]) -> bool:
    words = [*segment.argv[1:], *(redirection.target for redirection in segment.redirections)]
    runs = segment.name in SCRIPT_READERS or kind_of(segment.name) is not None
    named = {str(word).rpartition("/")[2] for word in words} if runs else {segment.name}
    named |= MAKEFILES if segment.name in MAKES else set()
    return not scripts.isdisjoint(named)


def is_process(word: Word) -> bool:
    return str(word).startswith("<(")


def listed_calls(text: str) -> list[tuple[str, ...]]:
    """The commands that stand in a program as lists of strings: `run(["rm", "x"])`, `system("rm", "x")`."""
    lists = dict.fromkeys(words for strings in STRINGS for words in string_lists(text, strings))
    starts = [words[at:] for words in lists for at in range(len(words))]
    return [(words[0].rpartition("/")[2], *words[1:]) for words in starts]


def string_lists(text: str, strings: re.Pattern[str]) -> Iterator[tuple[str, ...]]:
    """The strings of a text that stand next to each other."""
    words: list[str] = []
    end = 0
    for string in islice(strings.finditer(text), MAX_STRINGS):
        if words and not BETWEEN.match(text[end : string.start()]):
            yield tuple(words)
            words = []
        words.append(next(filter(None, string.groups()), ""))
        end = string.end()
    yield tuple(words)
