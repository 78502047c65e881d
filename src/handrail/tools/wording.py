"""Sentences about inputs that a model can act on, and values as they may stand in a message."""

import reprlib
from collections.abc import Iterable, Sequence

MAX_PROBLEMS = 30
MAX_KNOWN = 20


def where(path: Sequence[str]) -> str:
    """The field at the beginning of a sentence."""
    return f"The field {'.'.join(path)!r}" if path else "The input"


def unexpected_field(path: Sequence[str], known: Iterable[str]) -> str:
    """The sentence about a field nobody asked for, with the name that was perhaps meant."""
    names = list(known)
    hint = did_you_mean(path[-1], names)
    if not hint and 0 < len(names) <= MAX_KNOWN:
        hint = f" Known fields: {', '.join(names)}."
    return f"{where(path)} is unexpected.{hint or ' Leave it out.'}"


def limit_problems(sentences: Iterable[str]) -> tuple[str, ...]:
    """Each sentence once, and not more than anybody would read."""
    unique = list(dict.fromkeys(sentences))
    rest = len(unique) - MAX_PROBLEMS
    return tuple(unique) if rest <= 0 else (*unique[:MAX_PROBLEMS], f"And {rest:,} more problems of this kind.")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint at the nearest known word, or nothing."""
    from difflib import get_close_matches  # noqa: PLC0415  # only a slip pays for it

    near = get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def brief_repr(value: object, limit: int = 100) -> str:
    """A value as it may stand in a message: bounded, and with its type where that is the point."""
    try:
        return cut(repr(value), limit)
    except RecursionError:
        return cut(reprlib.repr(value), limit)


def cut(text: str, limit: int) -> str:
    """A text that is not longer than it helps."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters)"


def first_line(error: Exception) -> str:
    """What an error of a library says, without its further advice."""
    return str(error).partition("\n")[0]


def several(number: int, noun: str) -> str:
    """A number of things: 1 line, 1,000 lines."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
