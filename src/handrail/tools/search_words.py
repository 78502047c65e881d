"""The words of tools and of requests for them: split, folded to their stems, and joined by synonyms."""

from functools import lru_cache

from handrail.lazy import lazy_pattern
from handrail.tools.synonyms import COMMON_WORDS, SYNONYMS

RUNS = lazy_pattern(r"[^\W_]+")
PARTS = lazy_pattern(r"[0-9]+|[A-Z]+(?![^\W\d_A-Z])|[^\W\d_][^\W\d_A-Z]*")
VOWEL = lazy_pattern("[aeiouy]")
MAX_WORD = 40
MIN_STEM = 4
PLURALS = ("sses", "xes", "zes", "ches", "shes")
ENDINGS = (
    ("ization", "iz"),
    ("isation", "iz"),
    ("ation", "at"),
    ("ator", "at"),
    ("ically", "ic"),
    ("ical", "ic"),
    ("ally", "al"),
    ("ment", ""),
    ("ness", ""),
    ("ity", ""),
    ("ion", ""),
    ("ly", ""),
    ("er", ""),
    ("or", ""),
)


def stems(text: str) -> list[str]:
    """The stems of the words; a name like `GitHub` or `area51` counts as its parts and as a whole."""
    found: list[str] = []
    for run in RUNS.findall(text):
        found += _stems_of_run(run)
    return found


@lru_cache(maxsize=20_000)
def _stems_of_run(run: str) -> tuple[str, ...]:
    parts = [part.lower() for part in PARTS.findall(run[:MAX_WORD])]
    whole = () if len(parts) < 2 else (stem(run.lower()),)
    return (*map(stem, parts), *whole)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """An English word without its ending, so that `calculating` and `calculation` are one; others stay as they are."""
    if len(word) < MIN_STEM or not word.isascii():
        return word
    word = _without_inflection(_singular(word))
    for ending, instead in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM:
            word = word[: -len(ending)] + instead
            break
    if word.endswith("e") and len(word) > MIN_STEM:
        return word[:-1]
    return f"{word[:-1]}i" if word.endswith("y") and len(word) >= MIN_STEM else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > MIN_STEM:
        return f"{word[:-3]}y"
    if word.endswith(PLURALS):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _without_inflection(word: str) -> str:
    for ending in ("ing", "ed"):
        short = word.removesuffix(ending)
        if short != word and len(short) > 2 and VOWEL.search(short):
            return short[:-1] if short[-1] == short[-2] and short[-1] not in "lsz" else short
    return word


COMMON = frozenset(COMMON_WORDS.split())


def _related_words() -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for line in SYNONYMS.strip().splitlines():
        group = {stem(word) for word in line.split()}
        for each in group:
            found.setdefault(each, set()).update(group - {each})
    return {word: tuple(sorted(others)) for word, others in found.items()}


RELATED = _related_words()
"""By stem, the stems of words that may be meant as well."""
