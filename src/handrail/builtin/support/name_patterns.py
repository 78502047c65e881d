"""
Patterns of file names: `*`, `?` and `[a-z]` stay within one name, `**` as a whole name stands for any folders,
`{a,b}` for either. A pattern is understood here; ripgrep gets one that finds at least as much.
"""

import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from typing import TypeAlias

from handrail.errors import ToolError
from handrail.lazy import lazy_pattern

MAX_ALTERNATIVES = 500
BRACES = lazy_pattern(r"\{([^{}]*)\}")
WILD = frozenset("*?[{")
PLAIN = lazy_pattern(r"[A-Za-z0-9._-]+")
PIECES = lazy_pattern(r"(?P<stars>\*+)|(?P<set>\[\w+\])|(?P<odd>[?]|\[[!^]?\]?[^\]]*\])|.", re.DOTALL | re.ASCII)

Parts: TypeAlias = tuple[str, ...]
ANY_FOLDERS = None


def matcher(pattern: str) -> Callable[[Parts], bool]:
    """A function that tells whether the parts of a path match. It never backtracks far, so no pattern makes it slow."""
    ways = [_compile(alternative) for alternative in alternatives(pattern)]
    return lambda parts: any(_fits(parts, names) for names in ways)


def alternatives(pattern: str) -> list[str]:
    """The pattern with its braces expanded. A brace without a partner is literal."""
    done: dict[str, None] = {}
    waiting = [pattern]
    while waiting:
        one = waiting.pop()
        if braces := BRACES.search(one):
            waiting += [one[: braces.start()] + choice + one[braces.end() :] for choice in braces[1].split(",")]
        else:
            done[one] = None
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ToolError(f"{pattern!r} has more than {MAX_ALTERNATIVES} alternatives. Use * or several searches.")
    return list(done)


def fixed_start(pattern: str) -> tuple[list[str], str]:
    """The leading folders of a pattern without wildcards, and the rest of the pattern."""
    parts = [part for part in pattern.split("/") if part not in {"", "."}]
    fixed = 0
    while fixed < len(parts) - 1 and not WILD & set(parts[fixed]):
        fixed += 1
    return parts[:fixed], "/".join(parts[fixed:]) + ("/" if pattern.endswith("/") else "")


def names(pattern: str) -> list[str]:
    """The names that one alternative consists of, from the folder down."""
    parts = [part for part in pattern.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise ToolError(f"{pattern!r} leads upwards. Give the folder as path, and a pattern below it.")
    if pattern.endswith("/"):
        parts.append("**")
    return [*parts, "*"] if parts and parts[-1] == "**" else parts


def for_ripgrep(pattern: str) -> tuple[list[str], bool]:
    """Globs for `rg -g` that match at least what the pattern matches, and whether they match exactly that."""
    globs: list[str] = []
    exact = True
    for alternative in alternatives(pattern):
        parts = names(alternative)
        found = [("**", True) if part == "**" else _name_for_ripgrep(part) for part in parts]
        exact = exact and all(same for _, same in found)
        if parts:
            globs.append("/" + "/".join(glob for glob, _ in found))
    return globs, exact


def _name_for_ripgrep(name: str) -> tuple[str, bool]:
    if PLAIN.fullmatch(name):
        return name, True
    out: list[str] = []
    exact = True
    for piece in PIECES.finditer(name):
        text = piece[0]
        if piece["stars"]:
            out.append("*")
        elif piece["set"]:
            out.append(text)
        elif piece["odd"] or "\ud800" <= text <= "\udfff":
            out.append("?*")  # ripgrep counts bytes where we count characters
            exact = False
        else:
            out.append(text if text.isalnum() or text in "._-" else "\\" + text)
    return "".join(out), exact


def _compile(pattern: str) -> list[re.Pattern[str] | None]:
    return [ANY_FOLDERS if part == "**" else re.compile(translate(part)) for part in names(pattern)]


def _fits(parts: Parts, names: Sequence[re.Pattern[str] | None]) -> bool:
    """Match part by part; after a mismatch only the last `**` takes one more folder."""
    at = index = 0
    retry: tuple[int, int] | None = None
    while at < len(parts):
        name = names[index] if index < len(names) else None
        if index < len(names) and name is ANY_FOLDERS:
            index += 1
            retry = (at + 1, index)
        elif name is not None and name.match(parts[at]):
            at, index = at + 1, index + 1
        elif retry is not None:
            at, index = retry
            retry = (at + 1, index)
        else:
            return False
    return index == len(names)
