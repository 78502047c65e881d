"""
Where a command reads: the files an analysis names, seen from a workspace.

Lexical only: whoever can look at the file system should resolve links first and ask again.
"""

import posixpath

from handrail.shell.model import WHOLE_NAME, Analysis, Does, Effect, Kind, Segment, Word


def reads_outside(
    analysis: Analysis, *, cwd: str, roots: tuple[str, ...], home: str
) -> tuple[tuple[Segment, Word], ...]:
    """The reads that are not surely inside one of the roots, unknown ones among them."""
    return tuple(
        (segment, effect.word)
        for segment in analysis.segments
        for effect in segment.effects
        if effect.does in (Does.READS, Does.LOOKS) and effect.word is not None
        if not from_listing(segment, effect, effect.word)
        if not inside(segment, effect.word, cwd, roots, home)
    )


def inside(segment: Segment, word: Word, cwd: str, roots: tuple[str, ...], home: str) -> bool:
    return all(
        folder is not None and path is not None and within(posixpath.join(cwd, folder, path), roots)
        for folder in segment.cwds
        for path in paths(word, posixpath.join(cwd, folder or ""), home)
    )


def within(path: str, roots: tuple[str, ...]) -> bool:
    plain = posixpath.normpath(path)
    return any(plain == root or plain.startswith(root.rstrip("/") + "/") for root in roots)


def from_listing(segment: Segment, effect: Effect, word: Word) -> bool:
    """Names made by a listing of checked folders; contents only where names come in whole, as they can hold blanks."""
    if segment.fed_by is None or not segment.fed_by.lists_paths or {piece.kind for piece in word.pieces} != {Kind.INPUT}:
        return False
    return effect.does is Does.LOOKS or word.pieces == WHOLE_NAME.pieces


def paths(word: Word, cwd: str, home: str) -> tuple[str | None, ...]:
    """The paths a word can name; (None,) when it can name any."""
    known = word.alternatives
    if known is not None:
        return known
    if any(piece.kind is Kind.PROCESS for piece in word.pieces):
        return ()
    text = ""
    for at, piece in enumerate(word.pieces):
        if piece.kind in (Kind.LITERAL, Kind.GLOB):
            text += piece.text
        elif piece.kind is Kind.FOUND:
            text += "/x"
        elif at == 0 and piece.text == "$PWD":
            text += cwd
        elif at == 0 and piece.text in ("$HOME", "~"):
            text += home
        else:
            return (None,)
    if any(piece.kind is Kind.GLOB for piece in word.pieces) and climbs(text):
        return (None,)
    return (text,)


def climbs(pattern: str) -> bool:
    """A pattern like `.*` can match `..`; one with `..` in it can come back through a link."""
    return any(part == ".." or (part.startswith(".") and set(part) & set("*?[")) for part in pattern.split("/"))
