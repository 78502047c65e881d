"""
Checks which characters a command line may contain, and joins continued lines.

Characters that a person cannot see, that change the direction of text, or that shells and terminals
take for blanks or commands are refused before anything is parsed.
"""

import re
import unicodedata

from handrail.errors import UnclearError
from handrail.lazy import lazy_pattern

MAX_BYTES = 10_000

# Cc control, Cf format (soft hyphen, direction marks, BOM, tags), Cs lone surrogates, Co private use,
# Cn unassigned, Zl/Zp line and paragraph ends, Zs every blank but the space.
REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
# Drawn as nothing or as a blank although their category is a letter, mark or symbol.
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {chr(c) for c in range(0xFE00, 0xFE10)}
VARIATION_SELECTORS = range(0xE0100, 0xE01F0)


def check(text: str) -> None:
    """Raises UnclearError for a character or size that is never understood."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise UnclearError(f"longer than {MAX_BYTES} bytes", 0, len(text))
    if text.isascii() and text.replace("\t", "").replace("\n", "").isprintable():
        return
    for at, char in enumerate(text):
        if char in "\t\n" or " " <= char <= "~":
            continue
        if unicodedata.category(char) in REFUSED_CATEGORIES or char in INVISIBLE or ord(char) in VARIATION_SELECTORS:
            raise UnclearError(f"character U+{ord(char):04X} is invisible, a control or an odd blank", at, at + 1)


QUOTED_OR_ESCAPED = lazy_pattern(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", re.DOTALL)
ESCAPED = lazy_pattern(r"\\.", re.DOTALL)
# Where it takes more than quotes to know whether a backslash-newline counts: here-documents, substitutions, $'...',
# comments.
JOIN_DEPENDS = lazy_pattern(r"<<|`|\$[({']|[<>]\(|#")


def join_lines(text: str) -> str:
    """The text without backslash-newline pairs, as the shell joins them. Raises UnclearError where that depends."""
    if "\\\n" not in text:
        return text
    if found := JOIN_DEPENDS.search(text):
        raise UnclearError(f"a continued line together with {found.group()}", found.start(), found.end())
    return QUOTED_OR_ESCAPED.sub(join_pairs, text)


def join_pairs(found: re.Match[str]) -> str:
    if found.group().startswith("'"):
        return found.group()
    return ESCAPED.sub(lambda pair: "" if pair.group() == "\\\n" else pair.group(), found.group())
