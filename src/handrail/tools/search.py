"""
Searches for tools by words: BM25 over the stems of names, hints, descriptions and parameters.

The index is built once per list of tools. A query adds up the weights of its words and of their synonyms, rare words
first; then the best are ranked once more by how much of their name the query contains.
"""

import heapq
import math
import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from handrail.lazy import lazy
from handrail.records import record

if TYPE_CHECKING:
    from handrail.tools import search_words
else:  # the tables of words are needed with the first search
    search_words = lazy("handrail.tools.search_words")

NAME_WEIGHT, HINT_WEIGHT, DESCRIPTION_WEIGHT, PARAMETERS_WEIGHT = 3.0, 3.0, 1.0, 0.75
K1, B = 0.8, 0.5
COMMON_SHARE, SYNONYM_SHARE, BEGINNING_SHARE, JOINED_SHARE = 0.1, 0.2, 0.4, 0.8
NAME_BONUS = 0.3
PREFIX_MIN, PREFIX_TERMS = 3, 24
MAX_ADDED = 2_000
"""So many weights are added up for one query; more words only rank what was found until then."""
RANKED_AGAIN = 40
MAX_WORDS = 60
MAX_PARAMETERS = 100
MAX_PARAMETER_TEXT = 200
WORDS = r"[0-9]+|[A-Z]+(?![^\W\d_A-Z])|[^\W_][^\W\d_A-Z]*"


@record
class Searchable:
    """The words by which one tool can be found; `parameters` are the names and descriptions of what it takes."""

    name: str
    hint: str
    description: str
    parameters: str = ""


@record
class Query:
    """`select:a,b` asks for names; `+word` must be part of the name; the other words rank."""

    select: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class Searching(Protocol):
    """Finds tools and loads them: what a search tool needs of the catalog of a run."""

    def search(self, query: str, limit: int) -> list[str]: ...

    def activate(self, names: Iterable[str]) -> None: ...

    @property
    def settle(self) -> Callable[[], Awaitable[Sequence[str]]]:
        """Waits, for a while, for servers whose tools are not known yet; the names of those that still are not."""
        ...


def parse_query(text: str) -> Query:
    """Any text is a query; an empty one finds nothing."""
    stripped = text.strip()
    if stripped.startswith("select:"):
        return Query(select=tuple(name.strip() for name in stripped[7:].split(",") if name.strip()))
    terms = stripped.split()
    return Query(
        required=tuple(term[1:].lower() for term in terms if term.startswith("+") and len(term) > 1),
        words=tuple(word for term in terms if not term.startswith("+") for word in words(term)),
    )


def words(text: str) -> list[str]:
    """Lower-case words; camelCase and snake_case are split."""
    return [word.lower() for word in re.findall(WORDS, text)]


def parameter_text(schema: Mapping[str, Any]) -> str:
    """The names and descriptions of the parameters in an input schema."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ""
    parts: list[str] = []
    for name, value in list(properties.items())[:MAX_PARAMETERS]:
        text = value.get("description") if isinstance(value, Mapping) else None
        parts += (str(name), text[:MAX_PARAMETER_TEXT] if isinstance(text, str) else "")
    return " ".join(parts)


class SearchIndex:
    """Answers queries over a fixed list of tools."""

    def __init__(self, tools: Iterable[Searchable]) -> None:
        counts: list[dict[str, float]] = []
        self._names: list[str] = []
        self._name_stems: list[tuple[str, ...]] = []
        for tool in tools:
            self._names.append(tool.name)
            self._name_stems.append(tuple(dict.fromkeys(search_words.stems(tool.name))))
            counts.append(_weighted_stems(tool))
        self._lower = [name.lower() for name in self._names]
        self._by_name = {name.lower(): name for name in self._names} | {name: name for name in self._names}
        self._weights, self._rarity = _weigh(counts)
        self._name_rarity = [sum(self._rarity[part] for part in parts) for parts in self._name_stems]
        self._vocabulary = sorted(self._weights)

    def find(self, text: str, limit: int) -> list[str]:
        """The names of the best matches, best first; equal ones in the order of the list."""
        query = parse_query(text)
        if query.select:
            chosen = (self._by_name.get(name) or self._by_name.get(name.lower()) for name in query.select)
            return list(dict.fromkeys(name for name in chosen if name))
        wanted: Sequence[int] | None = None
        for term in query.required:
            wanted = [each for each in wanted or range(len(self._names)) if term in self._lower[each]]
            if not wanted:
                return []
        scores = self._scores(self._shares(query.words[:MAX_WORDS]), wanted, max(limit, RANKED_AGAIN))
        best = heapq.nsmallest(limit, scores, key=lambda number: (-scores[number], number))
        return [self._names[number] for number in best]

    def _scores(self, shares: Mapping[str, float], wanted: Sequence[int] | None, count: int) -> dict[int, float]:
        """The scores of the `count` best tools, only of those `wanted` if given."""
        first, rest = self._divide(shares)
        scores: dict[int, float] = {}
        for term in first:
            share, found = shares[term], self._weights[term]
            if not scores:
                scores = {number: weight * share for number, weight in found.items()}
                continue
            for number, weight in found.items():
                scores[number] = scores.get(number, 0.0) + weight * share
        if wanted is not None:
            scores = {number: scores.get(number, 0.0) for number in wanted}
        best = {number: scores[number] for number in heapq.nlargest(count, scores, key=scores.__getitem__)}
        for term in rest:
            share, found = shares[term], self._weights[term]
            for number in found.keys() & best:
                best[number] += found[number] * share
        for number in best:
            best[number] *= 1 + NAME_BONUS * self._name_share(number, shares)
        return best

    def _divide(self, shares: Mapping[str, float]) -> tuple[list[str], list[str]]:
        """The terms that find tools, and those that only rank what was found: synonyms and frequent words come last."""
        terms = sorted(shares, key=lambda term: (-shares[term], len(self._weights[term]), term))
        added = 0
        for at, term in enumerate(terms):
            added += len(self._weights[term])
            if at and added > MAX_ADDED:
                return terms[:at], terms[at:]
        return terms, []

    def _shares(self, asked: Sequence[str]) -> dict[str, float]:
        """The stems to look for, each with how much it counts."""
        shares: dict[str, float] = {}
        plain = [word for word in asked if not word.isdigit()] or asked
        for word in plain:
            share = COMMON_SHARE if word in search_words.COMMON else 1.0
            for term, part in self._terms(word, share):
                shares[term] = max(shares.get(term, 0.0), part)
        for first, second in pairwise(asked):
            joined = search_words.stem(first + second)
            if joined in self._weights:
                shares[joined] = max(shares.get(joined, 0.0), JOINED_SHARE)
        return shares

    def _terms(self, word: str, share: float) -> Iterable[tuple[str, float]]:
        """The stem of the word and of its synonyms; for an unknown word, the words that begin with it."""
        stem = search_words.stem(word)
        if share == 1.0:
            for other in search_words.RELATED.get(stem, ()):
                if other in self._weights:
                    yield other, SYNONYM_SHARE
        if stem in self._weights:
            yield stem, share
        elif len(word) >= PREFIX_MIN:
            start = bisect_left(self._vocabulary, word)
            for term in self._vocabulary[start : start + PREFIX_TERMS]:
                if not term.startswith(word):
                    return
                yield term, BEGINNING_SHARE

    def _name_share(self, number: int, shares: Mapping[str, float]) -> float:
        """How much of a tool's name was asked for, 0 to 1."""
        asked = [self._rarity[part] * shares[part] for part in self._name_stems[number] if part in shares]
        return sum(asked) / self._name_rarity[number] if asked else 0.0


def _weighted_stems(tool: Searchable) -> dict[str, float]:
    count: dict[str, float] = {}
    for text, weight in (
        (tool.name, NAME_WEIGHT),
        (tool.hint, HINT_WEIGHT),
        (tool.description, DESCRIPTION_WEIGHT),
        (tool.parameters, PARAMETERS_WEIGHT),
    ):
        for stem in search_words.stems(text):
            count[stem] = count.get(stem, 0.0) + weight
    return count


def _weigh(counts: Sequence[Mapping[str, float]]) -> tuple[dict[str, dict[int, float]], dict[str, float]]:
    """By stem, its weight in each tool; and how rare it is. All is known now, so a query only adds numbers."""
    lengths = [sum(count.values()) for count in counts]
    average = sum(lengths) / len(lengths) if lengths else 1.0
    weights: dict[str, dict[int, float]] = {}
    for number, count in enumerate(counts):
        damping = K1 * (1 - B + B * lengths[number] / average) if average else K1
        for stem, times in count.items():
            weights.setdefault(stem, {})[number] = times * (K1 + 1) / (times + damping)
    rarity = {
        stem: math.log(1 + (len(counts) - len(found) + 0.5) / (len(found) + 0.5)) for stem, found in weights.items()
    }
    for stem, found in weights.items():
        for number in found:
            found[number] *= rarity[stem]
    return weights, rarity
