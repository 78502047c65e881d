"""Search for tools by words: BM25 over names, hints and descriptions, with an index built once per list of tools."""

import heapq
import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

from handrail.records import record

NAME_WEIGHT, HINT_WEIGHT, DESCRIPTION_WEIGHT = 6, 3, 1
K1, B = 1.2, 0.6
PREFIX_MIN, PREFIX_TERMS, PREFIX_SHARE, ENDING = 3, 24, 0.5, 2
WORDS = r"[0-9]+|[A-Z]+(?![^\W\d_A-Z])|[^\W_][^\W\d_A-Z]*"


@record
class Searchable:
    """The words by which one tool can be found."""

    name: str
    hint: str
    description: str


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


class SearchIndex:
    """Answers queries over a fixed list of tools."""

    def __init__(self, tools: Iterable[Searchable]) -> None:
        self._names: list[str] = []
        postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths: list[int] = []
        for number, tool in enumerate(tools):
            self._names.append(tool.name)
            count: Counter[str] = Counter()
            for text, weight in (
                (tool.name, NAME_WEIGHT),
                (tool.hint, HINT_WEIGHT),
                (tool.description, DESCRIPTION_WEIGHT),
            ):
                for word in words(text):
                    count[word] += weight
            lengths.append(sum(count.values()))
            for word, times in count.items():
                postings[word].append((number, times))
        self._lower = [name.lower() for name in self._names]
        self._by_name = {name.lower(): name for name in self._names} | {name: name for name in self._names}
        average = sum(lengths) / len(lengths) if lengths else 1.0
        total = len(lengths)
        # the weight of a word in a tool is known now, so a query only adds numbers
        self._weights = {
            word: [
                (
                    number,
                    math.log(1 + (total - len(found) + 0.5) / (len(found) + 0.5))
                    * times
                    * (K1 + 1)
                    / (times + K1 * (1 - B + B * lengths[number] / average)),
                )
                for number, times in found
            ]
            for word, found in postings.items()
        }
        self._vocabulary = sorted(self._weights)

    def find(self, text: str, limit: int) -> list[str]:
        """The names of the best matches, best first; equal ones in the order of the list."""
        query = parse_query(text)
        if query.select:
            chosen = (self._by_name.get(name) or self._by_name.get(name.lower()) for name in query.select)
            return list(dict.fromkeys(name for name in chosen if name))
        scores = self._scores(query.words)
        candidates: Sequence[int] = range(len(self._names))
        for term in query.required:
            candidates = [number for number in candidates if term in self._lower[number]]
        best = heapq.nlargest(limit, candidates, key=scores.__getitem__)
        return [self._names[number] for number in best if query.required or scores[number] > 0]

    def _scores(self, asked: Sequence[str]) -> list[float]:
        scores = [0.0] * len(self._names)
        for word in asked:
            for term, share in self._terms(word):
                for number, weight in self._weights[term]:
                    scores[number] += weight * share
        return scores

    def _terms(self, word: str) -> Iterable[tuple[str, float]]:
        """The word itself, and words that begin with it, which count less; a known word adds only short endings."""
        longest = math.inf
        if word in self._weights:
            yield word, 1.0
            longest = len(word) + ENDING
        if len(word) < PREFIX_MIN:
            return
        start = bisect_right(self._vocabulary, word)
        for term in self._vocabulary[start : start + PREFIX_TERMS]:
            if not term.startswith(word):
                return
            if len(term) <= longest:
                yield term, PREFIX_SHARE
