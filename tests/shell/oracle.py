"""Whether what bash started is what the analysis named."""

import re
from collections.abc import Iterable

from handrail.shell import Analysis, PieceKind, Segment, Word

Argv = tuple[str, ...]


def literal(segment: Segment) -> Argv | None:
    """The argument vector, where every word of it is known."""
    words = [word.literal for word in segment.argv]
    return tuple(word for word in words if word is not None) if None not in words else None


def pattern(segment: Segment) -> re.Pattern[str]:
    """All argument vectors the segment can mean, as one expression over NUL-ended words."""
    return re.compile("".join(map(word_pattern, segment.argv)), re.DOTALL)


def word_pattern(word: Word) -> str:
    if (known := word.alternatives) is not None:
        return "(?:" + "|".join(re.escape(text) for text in known) + ")\0"
    if not word.single:
        return f"(?:{re.escape(word.prefix)}[^\0]*\0)*"
    found = ""
    for before, piece in zip([None, *word.pieces[:-1]], word.pieces, strict=True):
        if piece.kind is not PieceKind.LITERAL:
            found += "[^\0]*"
        elif before is not None and before.kind is PieceKind.TILDE:  # the name that belongs to it: `x=~-/a`
            found += re.escape(piece.text[piece.text.find("/") :] if "/" in piece.text else "")
        else:
            found += re.escape(piece.text)
    return found + "\0"


def unnamed(analysis: Analysis, started: Iterable[Argv]) -> list[Argv]:
    """What was started and is none of the segments."""
    patterns = [pattern(segment) for segment in analysis.segments if segment.argv]
    return [argv for argv in started if not any(p.fullmatch("".join(f"{word}\0" for word in argv)) for p in patterns)]
