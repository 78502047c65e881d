"""
Conditions of `test`, `[` and `[[` (bash 5.2, CONDITIONAL EXPRESSIONS).

Words are read in order; every file operator looks at a file. UnclearError: -v and -R (subscripts are evaluated), and
arithmetic comparisons of anything but whole numbers.
"""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect, Kind, Word

FILE_TESTS = frozenset(f"-{letter}" for letter in "bcdefghkprstuwxGLNOS")
TEXT_TESTS = frozenset(("-z", "-n"))
FILE_PAIRS = frozenset(("-nt", "-ot", "-ef"))
TEXT_PAIRS = frozenset(("=", "==", "!=", "<", ">"))
NUMBER_PAIRS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
JOINERS = frozenset(("!", "(", ")", "&&", "||", "-a", "-o"))
NUMBER = re.compile(r"[+-]?[0-9]+\Z")


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    """Effects of the conditions; `]` at the end belongs to `[` and is left out."""
    left = [word for word in words if not (word is words[-1] and word.literal == "]")]
    effects: list[Effect] = []
    while left:
        word = left.pop(0)
        text = word.literal
        following = left[0].literal if left else None
        if following in FILE_PAIRS | TEXT_PAIRS | NUMBER_PAIRS and len(left) > 1:
            effects += pair(word, following or "", left[1])
            del left[:2]
        elif text in FILE_TESTS and left and following not in JOINERS:
            effects.append(Effect(Does.LOOKS, single(left.pop(0)), "tests this file"))
        elif text in TEXT_TESTS and left:
            single(left.pop(0))
        elif text not in JOINERS:
            bare(word)
    return tuple(effects)


def pair(left: Word, operator: str, right: Word) -> list[Effect]:
    single(left)
    if operator in NUMBER_PAIRS and not (number(left) and number(right)):
        raise UnclearError(f"{operator} with more than numbers", left.start, right.end, "test")
    if operator in FILE_PAIRS:
        return [Effect(Does.LOOKS, single(word), "compares this file") for word in (left, right)]
    if any(piece.kind is Kind.BRACE for piece in right.pieces):
        raise UnclearError("a word of unknown size in a condition", right.start, right.end, "test")
    return []


def number(word: Word) -> bool:
    """True for what is surely a whole number. Some shells evaluate anything else."""
    if len(word.pieces) == 1 and word.pieces[0].text in ("$?", "$#", "$$"):
        return True
    return all(NUMBER.match(value) for value in word.alternatives or ("",))


def single(word: Word) -> Word:
    if not word.single:
        raise UnclearError("a word of unknown size in a condition", word.start, word.end, "test")
    return word


def bare(word: Word) -> None:
    """A word on its own: true when not empty. It must not be an operator we do not know."""
    if word.literal is None or (word.literal.startswith("-") and len(word.literal) > 1):
        raise UnclearError(f"{word} in a condition", word.start, word.end, "test")
