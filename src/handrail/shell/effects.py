"""
Resolves the words of an analysis to the paths that they name, and says which reads leave a workspace.

Works on text alone. A caller that can look at the file system passes a `resolve` that follows links, and a `match` that
finds the files of a pattern, each of which may be a link.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from handrail.lazy import lazy_pattern
from handrail.shell.listing import checked_listing, from_listing, origin
from handrail.shell.model import Analysis, Does, PieceKind, Segment, Word
from handrail.shell.patterns import PathPattern, escape, is_wild, read_pattern, unescape
from handrail.shell.secrets import SYSTEM_FACTS, may_be_listed, secret

WHOLE = lazy_pattern(r"[^ \t\n*?\[]*\Z")  # a value that the shell neither splits nor matches with files

BRACES = lazy_pattern(r"\{([^{},]*(?:,[^{},]*)+)\}")
MAX_BRACED = 64
CLIMBING = lazy_pattern(r"\.[.*?\[]")
REPOSITORY = "git-real-repository"  # the requirement of every command that works in a repository

Place = TypeVar("Place")
Found = tuple[tuple[Segment, Word], ...]
Resolve = Callable[[str], str]
PathText = str | PathPattern
Match = Callable[[str, PathText], Iterable[str]]  # a folder, and a path or a pattern of paths seen from it


def as_written(folder: str, path: PathText) -> Iterable[str]:
    return (posixpath.join(folder, str(path)),)


def reads_outside(
    analysis: Analysis,
    *,
    cwd: str,
    roots: tuple[str, ...],
    home: str,
    resolve: Resolve = posixpath.normpath,
    match: Match = as_written,
) -> Found:
    """The reads that are not surely inside one of the roots, unknown ones and git in other folders among them."""
    tops = tuple(resolve(root) for root in roots)
    outside = tuple(
        (segment, word)
        for segment, word, does in reads(analysis)
        if not all(
            path is not None and (within(resolve(path), tops) or is_open({path, resolve(path)}, does))
            for path in places(segment, word, cwd, home, match)
        )
    )
    # any other folder, also one below, may be another repository, whose configuration names programs that git runs
    here = (resolve(cwd), *tops)
    return outside + tuple(
        (segment, segment.argv[0])
        for segment in analysis.segments
        if any(need.name == REPOSITORY for need in segment.requires)
        if not all(folder is not None and resolve(posixpath.join(cwd, folder)) in here for folder in segment.cwds)
    )


def reads_secrets(
    analysis: Analysis, *, cwd: str, home: str, resolve: Resolve = posixpath.normpath, match: Match = as_written
) -> Found:
    """The reads of files that are known to hold secrets by their names, of devices and of `/proc`."""
    return tuple(
        (segment, word)
        for segment, word, does in reads(analysis)
        if any(
            path is not None and (secret(path) or secret(resolve(path))) and not is_open({path, resolve(path)}, does)
            for path in places(segment, word, cwd, home, match)
        )
    )


def is_open(paths: set[str], does: Does) -> bool:
    """Whether anyone may see what a command shows of a path, by each of its spellings."""
    if does is Does.LOOKS:
        return all(map(may_be_listed, paths))
    return paths <= SYSTEM_FACTS


def reads(analysis: Analysis, *, checked: bool = False) -> Iterator[tuple[Segment, Word, Does]]:
    """
    The words that name what is read or looked at; where a listing names it, what the listing looks at is read.

    `checked`: not those that stand for names of a listing which are looked at one by one (LISTED_NAMES).
    """
    for segment in analysis.segments:
        for effect in segment.effects:
            if effect.does not in (Does.READS, Does.LOOKS) or effect.word is None:
                continue
            if checked and checked_listing(segment, effect.word):
                continue
            if not from_listing(segment, effect, effect.word):  # a folder that is entered is more than looked at
                yield segment, effect.word, Does.READS if segment.entry == "cd" else effect.does
            elif effect.does is Does.READS:
                source = origin(segment)
                yield from ((source, word, Does.READS) for word in source.reads)


def places(
    segment: Segment, word: Word, cwd: str, home: str, match: Callable[[str, PathText], Iterable[Place]]
) -> Iterator[Place | None]:
    """Every place a word can mean in the folders its command may run in, as `match` finds them; None is any."""
    for folder in segment.cwds:
        base = posixpath.join(cwd, folder or "")
        for path in paths(word, base, home):
            if folder is None or path is None:
                yield None
            else:
                yield from match(base, path)


def within(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


def paths(word: Word, cwd: str, home: str) -> tuple[PathText | None, ...]:
    """The paths and patterns a word can name; with None among them it can name any."""
    known = word.alternatives
    if known is not None:
        return known
    if any(piece.kind is PieceKind.PROCESS for piece in word.pieces):
        return ()
    if any(piece.kind is PieceKind.BRACE for piece in word.pieces):
        return expand_braces(word)
    wild = word.has_wildcard
    text = ""
    for at, piece in enumerate(word.pieces):
        if piece.kind in (PieceKind.LITERAL, PieceKind.GLOB):
            text += piece.pattern if wild else piece.text
        elif piece.kind in (PieceKind.FOUND, PieceKind.FILE):
            text += "/x"
        elif at == 0 and piece.text == "$PWD" and (piece.quoted or WHOLE.match(cwd)):
            text += escape(cwd) if wild else cwd
        elif at == 0 and (piece.text == "~" or (piece.text == "$HOME" and (piece.quoted or WHOLE.match(home)))):
            text += escape(home) if wild else home
        else:
            return (None,)
    return path_or_pattern(text) if wild else (text,)


def path_or_pattern(text: str) -> tuple[PathText | None, ...]:
    """What a text stands for in which quoted characters are escaped."""
    if not is_wild(text):
        return (unescape(text),)
    pattern = read_pattern(text)
    return (pattern,) if pattern.sure and not climbs(text) else (pattern, None)


def expand_braces(word: Word) -> tuple[PathText | None, ...]:
    """What `a{b,c}` stands for, where nothing in the word is quoted, nested or known at run time only."""
    texts = [str(word)]
    kinds = {piece.kind for piece in word.pieces}
    if any(piece.quoted for piece in word.pieces) or not kinds <= {PieceKind.LITERAL, PieceKind.BRACE, PieceKind.GLOB}:
        return (None,)
    while (found := BRACES.search(texts[0])) is not None and len(texts) <= MAX_BRACED:
        texts = [text.replace(found[0], choice, 1) for text in texts for choice in found[1].split(",")]
    # Braces come before tildes: {~,a}/x is ~/x.
    if any("{" in text or "}" in text or "~" in text for text in texts):
        return (None,)
    return tuple(path for text in texts for path in path_or_pattern(text))


def climbs(pattern: str) -> bool:
    """A pattern like `.*` can match `..`, `.e*` cannot; one with `..` in it can come back through a link."""
    return any(part == ".." or CLIMBING.match(part) for part in pattern.split("/"))
