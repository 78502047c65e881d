"""Sentences about wrong inputs that a model can act on, and values shortened for messages."""

import reprlib
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from handrail.lazy import lazy

if TYPE_CHECKING:
    import difflib
else:
    difflib = lazy("difflib")  # no first request needs it

MAX_PROBLEMS = 30
MAX_KNOWN = 20


def where(path: Sequence[str]) -> str:
    """The field at the beginning of a sentence."""
    return f"The field {'.'.join(path)!r}" if path else "The input"


def unexpected_field(path: Sequence[str], known: Iterable[str]) -> str:
    """The sentence about an unknown field, with the name that was probably meant."""
    names = list(known)
    hint = did_you_mean(path[-1], names)
    if not hint and 0 < len(names) <= MAX_KNOWN:
        hint = f" Known fields: {', '.join(names)}."
    return f"{where(path)} is unexpected.{hint or ' Leave it out.'}"


def missing_field(path: Sequence[str]) -> str:
    """The sentence about a required field that is not there."""
    return f"The required field {'.'.join(path)!r} is missing."


def limit_problems(sentences: Iterable[str]) -> tuple[str, ...]:
    """Each sentence once, and at most `MAX_PROBLEMS` of them."""
    unique = list(dict.fromkeys(sentences))
    rest = len(unique) - MAX_PROBLEMS
    return tuple(unique) if rest <= 0 else (*unique[:MAX_PROBLEMS], f"And {rest:,} more problems of this kind.")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint at the nearest known word, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def with_hints(names: Iterable[str], known: Iterable[str]) -> str:
    """Unknown names in a row, each with the known one that was probably meant."""
    listed = [*known]
    near = ((name, difflib.get_close_matches(name, listed, n=1)) for name in names)
    return ", ".join(f"{name} (did you mean {meant[0]!r}?)" if meant else name for name, meant in near)


def brief_repr(value: object, limit: int = 100) -> str:
    """The repr of a value for a message, shortened."""
    try:
        return cut(repr(value), limit)
    except RecursionError:
        return cut(reprlib.repr(value), limit)


def cut(text: str, limit: int) -> str:
    """The text, shortened to `limit` characters if it is longer."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters)"


def first_line(error: Exception) -> str:
    """The first line of a library's error message."""
    return str(error).partition("\n")[0]


def how_to_read(tools: Collection[str]) -> str:
    """How the model gets at the rest of a text in a file, with the tools that it has. Empty `tools` = not known."""
    known = tools or ("Read", "Grep")
    match "Read" in known, "Grep" in known, "Bash" in known:
        case True, True, _:
            way = "Read with offset and limit, or Grep,"
        case True, False, _:
            way = "Read with offset and limit"
        case False, True, _:
            way = "Grep"
        case False, False, True:
            way = "Bash (sed -n, for example)"
        case _:
            return "None of your tools can read it, so ask for less at once."
    return f"Use {way} for the part you need."


def several(number: int, noun: str) -> str:
    """A count with its noun: 1 line, 1,000 lines."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
