"""What the style sheets inside a page hide: elements by their classes and ids."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from handrail.lazy import lazy_pattern

MAX_COMPOUND = 100
COMMENT = lazy_pattern(r"(?s)/\*.*?(?:\*/|\Z)|<!--|-->")
SIMPLE = lazy_pattern(r"(?:[A-Za-z][\w-]*)?((?:[.#][A-Za-z_-][\w-]*)+)\Z")
HIDES = lazy_pattern(r"(?:^|;)(?:display:none|visibility:(?:hidden|collapse))")
SHOWS = lazy_pattern(r"(?:^|;)(?:display:|visibility:visible)")


@dataclass
class RuleMarks:
    """The classes and ids that the selectors of some rules name: one each, or several together."""

    single: set[str] = field(default_factory=set)
    compound: set[frozenset[str]] = field(default_factory=set)

    def add(self, selectors: str) -> None:
        """Keep what each simple selector names."""
        for selector in selectors.split(","):
            if found := SIMPLE.match(selector.strip()):
                marks = re.findall(r"[.#][^.#]+", found[1])
                if len(marks) == 1:
                    self.single.add(marks[0])
                elif len(self.compound) < MAX_COMPOUND:
                    self.compound.add(frozenset(marks))

    def matching(self, marks: set[str]) -> list[frozenset[str]]:
        """What fits an element with these classes and this id."""
        return [*map(frozenset, ([mark] for mark in marks & self.single)), *(s for s in self.compound if s <= marks)]


@dataclass
class StyleSheet:
    """Rules of simple selectors that hide elements, and those that show some of them again."""

    hiding: RuleMarks = field(default_factory=RuleMarks)
    showing: RuleMarks = field(default_factory=RuleMarks)

    def hides(self, attributes: Mapping[str, str]) -> bool:
        """Whether an element with these attributes is hidden, and not shown again by a narrower rule."""
        marks = {f".{name}" for name in attributes.get("class", "").split()} | {f"#{attributes.get('id', '')}"}
        hidden = self.hiding.matching(marks)
        if not hidden:
            return False
        shown = self.showing.matching(marks)
        return any(not any(each < other for other in shown) for each in hidden)


def read_styles(css: str) -> StyleSheet:
    """The rules of a style sheet that are about single elements, wherever the page is shown."""
    sheet = StyleSheet()
    for selectors, body in _rules(COMMENT.sub("", css)):
        plain = re.sub(r"\s+", "", body).lower()
        if HIDES.search(plain):
            sheet.hiding.add(selectors)
        elif SHOWS.search(plain):
            sheet.showing.add(selectors)
    return sheet


def _rules(css: str) -> Iterator[tuple[str, str]]:
    """Selectors and bodies of the rules that count always: those of `@media` and its kin are left out."""
    depth = start = opened = 0
    for found in re.finditer(r"[{}]", css):
        if found[0] == "{":
            depth += 1
            opened = found.start() if depth == 1 else opened
        elif depth:
            depth -= 1
            if not depth:
                selectors = css[start:opened].rpartition(";")[2]
                if not selectors.lstrip().startswith("@"):
                    yield selectors, css[opened + 1 : found.start()]
                start = found.end()
