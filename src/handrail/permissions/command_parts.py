"""
The parts of a command line, one per program that would start, as rules see them.

Allow rules match the words as they are written; deny and ask rules also see through program folders, leading options,
wrappers and inner shells, and match what a line that could not be parsed may run.
"""

import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.lazy import lazy, lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.permissions.git_calls import read_git, runs_given_program
from handrail.permissions.guessed_files import writes_unknown_names
from handrail.permissions.shell import EXACT_ONLY, QUOTED, TRANSPARENT
from handrail.permissions.wildcards import WORD_END
from handrail.shell.analysis import analyse
from handrail.shell.model import Analysis, CommandVerdict, Does, Effect, Piece, PieceKind, Segment, Word
from handrail.shell.text_programs import POWERSHELLS, SHELLS, STDIN, program_text

if TYPE_CHECKING:
    from handrail.shell import purposes
else:
    purposes = lazy("handrail.shell.purposes")

UNKNOWN = "\ue000"  # stands for text that is not known
LATER = frozenset(("at", "batch", "newgrp", "crontab", "ed"))  # run what they read
MAX_SKIPPED = 8
KNOWN = frozenset(
    (
        PieceKind.LITERAL,
        PieceKind.GLOB,
        PieceKind.TILDE,
        PieceKind.INPUT,
        PieceKind.FOUND,
        PieceKind.FILE,
        PieceKind.ARITHMETIC,
    )
)
IN_PLACE = lazy_pattern(r"-i(?:\.[\w.-]+)?\Z|--in-place(?:=\.[\w.-]+)?\Z")
ARG_FILE = lazy_pattern(r"-\w*a|--a")  # of xargs and parallel
BACKGROUND = lazy_pattern(r"(?<![&<>|])&(?![&>])")


class CommandPart(NamedTuple):
    """One program that would start, as rules see it."""

    name: str
    text: str
    """The words as written, for allow rules; empty when there is no program or its name is not known."""
    suspects: tuple[str, ...]
    """All spellings of the same command, for deny and ask rules."""
    openings: tuple[str, ...]
    """The beginnings of such spellings up to the first unknown text, which may be what a rule names."""
    shown: str
    read_only: bool
    why: str = ""
    """Why it is not read-only."""
    plain: bool = True
    """Whether the program and every word are known well enough for an allow rule."""
    transparent: bool = False
    exact_only: bool = False
    accepted: bool = False
    """Whether mode acceptEdits allows it inside the working folders."""
    removes: bool = False
    """It deletes files."""
    only_redirects: bool = False
    """Whether it is read-only except for redirections."""
    conditional: bool = False
    """Whether it only reads where the repository names no programs to run."""
    powershell: bool = False
    """Whether it starts PowerShell."""
    until: int = 0
    """The first part after it that it does not start itself."""


def parts_of(analysis: Analysis) -> tuple[CommandPart, ...]:
    segments = analysis.segments
    ends = [last_child(segments, at) for at in range(len(segments))]
    unknown = [has_input(analysis, segment) and writes_unknown_names(segment) for segment in segments]
    return tuple(
        part(segment, end, names_all=not any(unknown[at:end]))
        for at, (segment, end) in enumerate(zip(segments, ends, strict=True))
    )


def has_input(analysis: Analysis, segment: Segment) -> bool:
    """Whether something of the line may feed a command; the standard input of a line is empty."""
    if segment.fed_by is not None or "<" in analysis.text:
        return True
    return any(ARG_FILE.match(str(word)) for each in analysis.segments for word in each.argv[1:])


def last_child(segments: tuple[Segment, ...], at: int) -> int:
    """The end of the segments that a segment runs: they follow it and have it in their path."""
    segment, end = segments[at], at + 1
    if not any(effect.child or effect.shell is not None for effect in segment.effects):
        return end
    inside = (*segment.path, segment.entry or segment.name)
    while end < len(segments) and segments[end].path[: len(inside)] == inside:
        end += 1
    return end


def part(segment: Segment, until: int, *, names_all: bool) -> CommandPart:
    """The part of a segment; `names_all`: neither it nor what it starts writes files that stand in another file."""
    words = [render(word) for word in segment.argv]
    name = segment.name
    known = bool(words) and segment.argv[0].literal is not None
    read_only = segment.verdict is CommandVerdict.READ_ONLY
    sets_variable = harmful_setting(segment)
    plain_xargs = len(words) > 1 and words[0] == "xargs" and not words[1].startswith("-")
    passes_on = name in TRANSPARENT or plain_xargs
    return CommandPart(
        name=name,
        text=WORD_END.join(words) if known else "",
        suspects=tuple(dict.fromkeys(spellings(segment, words))),
        openings=tuple(dict.fromkeys(openings(segment))),
        shown=" ".join(words) or segment.node,
        read_only=read_only,
        why="; ".join(dict.fromkeys(reasons(segment))),
        plain=known
        and all(map(known_word, segment.argv))
        and "subshell" not in segment.path
        and not sets_variable
        and not is_elsewhere(segment),
        transparent=passes_on and not sets_variable and any(effect.child for effect in segment.effects),
        exact_only=is_exact_only(segment) or not names_all,
        accepted=segment.only_edits and only_edits(segment),
        removes=segment.removes,
        only_redirects=not read_only and segment.only_redirects,
        conditional=any(need.of_git for need in segment.requires),
        powershell=name.lower() in POWERSHELLS,
        until=until,
    )


def is_exact_only(segment: Segment) -> bool:
    """Whether its words matter so much that a rule with a wildcard does not cover it."""
    if segment.verdict is not CommandVerdict.READ_ONLY and segment.name in ("find", "git"):
        return segment.name == "find" or runs_given_program(read_git("git", segment.argv[1:]))
    return segment.name in EXACT_ONLY


def reasons(segment: Segment) -> list[str]:
    """Why it is not read-only; what a well-known program is for, rather than that no table lists it."""
    texts = [reason.text for reason in segment.reasons]
    changing = [effect for effect in segment.effects if effect.verdict is not CommandVerdict.READ_ONLY]
    vague = [effect for effect in changing if says_little(effect)]
    if all(effect.word is not None and str(effect.word).startswith("-") for effect in vague):
        return texts  # nothing but options that are not listed
    known = purposes.purpose([word.literal for word in segment.argv])
    others = [text for effect, text in zip(changing, texts, strict=True) if not says_little(effect)]
    return [known, *others] if known else texts


def says_little(effect: Effect) -> bool:
    """Whether its text only says that the program is not known to read."""
    return effect.does is Does.UNLISTED or (effect.does is Does.STARTS and effect.word is None)


def render(word: Word) -> str:
    text = word.literal
    return str(word) if text is None else text


def known_word(word: Word) -> bool:
    return all(piece.kind in KNOWN or piece.values is not None for piece in word.pieces)


def is_elsewhere(segment: Segment) -> bool:
    """Whether its program is named from another folder than that of the line: `cd x && ./y` is not `./y`."""
    name = segment.argv[0].literal or ""
    return "/" in name and not name.startswith("/") and segment.cwds != (".",)


def in_background(analysis: Analysis) -> bool:
    """Whether a part keeps running in the background, which no command rule allows."""
    return "&" in analysis.text and BACKGROUND.search(QUOTED.sub("", analysis.text)) is not None


def harmful_setting(segment: Segment) -> bool:
    """Whether `NAME=value command` sets a variable that may change what the command does."""
    settings = [word for _, word in segment.env]
    return any(effect.does is Does.STATE and effect.word in settings for effect in segment.effects if effect.word)


def only_edits(segment: Segment) -> bool:
    """Whether every file that an editing command changes is known, and a `sed` runs nothing."""
    written = all(map(known_word, segment.writes))
    return written and (segment.entry != "sed" or harmless_sed(segment))


def harmless_sed(segment: Segment) -> bool:
    """Whether `sed -i` only edits files: the same line without -i has to be read-only."""
    words = [word.literal for word in segment.argv]
    known = [word for word in words if word is not None]
    rest = [word for word in known if not IN_PLACE.match(word)]
    if len(known) < len(words) or len(rest) == len(known):
        return False
    return analyse(shlex.join(rest)).verdict is CommandVerdict.READ_ONLY


def spellings(segment: Segment, words: list[str]) -> Iterator[str]:
    """The command under each name it can have, without its folder, and without options before a sub-command."""
    if not words:
        return
    for name in segment.argv[0].alternatives or (words[0],):
        plain = name.rpartition("/")[2]
        for start in dict.fromkeys((name, plain, plain.lower())):  # some volumes ignore case
            yield WORD_END.join((start, *words[1:]))
        yield from skipping(plain, words)


def openings(segment: Segment) -> Iterator[str]:
    """The known beginning of each spelling with unknown text; an empty text for a shell that reads its program."""
    if reads_program(segment):
        yield ""
    marked = ["".join(UNKNOWN if unknown(piece) else piece.text for piece in word.pieces) for word in segment.argv]
    if any(UNKNOWN in word for word in marked):
        plain = segment.argv[0]._replace(pieces=(Piece(PieceKind.LITERAL, marked[0]),))
        for text in spellings(segment._replace(argv=(plain, *segment.argv[1:])), marked):
            opening, unclear, _ = text.partition(UNKNOWN)
            if unclear:
                yield opening


def unknown(piece: Piece) -> bool:
    return piece.kind not in (PieceKind.LITERAL, PieceKind.TILDE) and not (piece.values and len(piece.values) == 1)


def reads_program(segment: Segment) -> bool:
    """Whether it runs what is not known before it runs: text that it reads, or that is in another language."""
    name = segment.name
    if program_text(segment).unknown and name not in SHELLS:
        return True
    if any(effect.shell is not None for effect in segment.effects):
        return False
    if name.lower() in POWERSHELLS or name in LATER:
        return True
    if name not in SHELLS and name not in ("source", "."):
        return False
    files = [word.literal for word in segment.argv[1:] if not (word.literal or "").startswith(("-", "+", "<"))]
    if name in ("source", "."):
        return any(file is None or file.startswith(("/dev/", "/proc/")) for file in files[:1])
    # behind `-c` or `-s`, also in a cluster, the next words are not files
    named = any(STDIN.match(word.literal or "") for word in segment.argv[1:])
    switch = named or any(re.match(r"-[A-Za-z]*[cs]", word.prefix) for word in segment.argv[1:])
    return not files or None in files or switch


def skipping(name: str, words: list[str]) -> Iterator[str]:
    """`git -C x --no-pager push` is also `git push`: options, and words that may be their values, are left out."""
    for at in range(2, min(len(words), MAX_SKIPPED + 1)):
        if not words[at - 1].startswith("-") and not words[at - 2].startswith("-"):
            return
        if not words[at].startswith("-"):
            yield WORD_END.join((name, *words[at:]))
