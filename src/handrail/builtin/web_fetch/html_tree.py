"""A page as a tree: tags that were left open are closed, what is hidden is left out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape

from handrail.builtin.web_fetch.hidden import NOT_TEXT, is_hidden
from handrail.builtin.web_fetch.html_tokens import read_tokens
from handrail.builtin.web_fetch.style_sheet import read_styles

MAX_DEPTH = 150
KEPT_ATTRIBUTES = frozenset(("href", "src", "alt", "class", "start", "data-lang", "colspan", "rowspan"))
VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
PLAIN_FRAME = frozenset(("html", "body"))
"""Elements that stand for the root."""
IN_HEAD = frozenset(("base", "link", "meta", "title", "style", "script", "noscript", "noframes", "template"))
"""Elements that do not end the head of a page."""
HTML_IN_FOREIGN = frozenset(("foreignobject", "desc", "annotation-xml"))
"""Elements in pictures and formulas that may hold blocks; elsewhere, a block ends the picture."""
SCREEN_MEDIA = frozenset(("", "all", "screen"))
TABLE_PARTS = frozenset(("caption", "thead", "tbody", "tfoot", "tr", "td", "th"))
TITLES = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
# A tag ends these when they were left open, but nothing beyond the second.
CLOSES = {
    "li": ({"li"}, {"ul", "ol"}),
    "dt": ({"dt", "dd"}, {"dl"}),
    "dd": ({"dt", "dd"}, {"dl"}),
    **dict.fromkeys(("thead", "tbody", "tfoot"), (TABLE_PARTS, {"table"})),
    "tr": ({"tr", "td", "th", "caption"}, {"table"}),
    "td": ({"td", "th"}, {"tr", "table"}),
    "th": ({"td", "th"}, {"tr", "table"}),
}
BLOCKS = frozenset(
    (
        "address", "article", "aside", "blockquote", "center", "dd", "details", "dialog", "div", "dl", "dt", "fieldset",
        "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main",
        "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
    )
)  # fmt: skip

CLOSED_BEFORE = BLOCKS - {"p"}
"""Elements in which a paragraph that was left open outside is not closed."""
FRAMES = frozenset(("table", "td", "th", "caption", "object", "template"))
"""Elements that the end tags of others do not reach out of."""
OUTER_FRAMES = FRAMES - TABLE_PARTS
FRAMES_AND_BLOCKS = FRAMES | BLOCKS
FORMATS = frozenset(("a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"))
"""Elements that go on behind the end of a block in which they were left open."""
MAX_REOPENED = 3
REACHING = BLOCKS | FORMATS | {"button", "select"}
"""Elements whose end tags reach out of blocks."""


@dataclass
class Element:
    """An element with its children: elements and texts."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: "list[Element | str]" = field(default_factory=list)

    def walk(self) -> "Iterator[Element]":
        """This element and those in it."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += [child for child in reversed(element.children) if isinstance(child, Element)]

    def texts(self) -> str:
        """All text in it."""
        return "".join(child if isinstance(child, str) else child.texts() for child in self.children)

    def html(self) -> str:
        """The element as HTML in which every tag is closed, with the attributes that matter to a text."""
        attributes = "".join(
            f' {name}="{escape(value)}"' for name, value in self.attributes.items() if name in KEPT_ATTRIBUTES
        )
        if self.tag in VOID:
            return f"<{self.tag}{attributes}>"
        inside = "".join(escape(child) if isinstance(child, str) else child.html() for child in self.children)
        return f"<{self.tag}{attributes}>{inside}</{self.tag}>"


class TreeBuilder:
    """
    Builds the tree. `title` and `base` are what the head of the page says.

    What is left out is parsed like the rest, but hangs on no other element; so does what lies too deep.
    """

    def __init__(self) -> None:
        self.root = Element("body")
        self.title = ""
        self.base = ""
        self._open = [self.root]
        self._places: dict[str, list[int]] = {}
        """Where in `_open` the elements of each tag stand: looking through all of them takes long in a deep page."""
        self._styles: list[str] = []

    def start_tag(self, tag: str, attributes: dict[str, str]) -> None:
        """Open an element."""
        if tag in TABLE_PARTS and not self._places.get("table"):
            return
        if tag == "base":
            self.base = self.base or attributes.get("href", "")
        self._close_implied(tag)
        if tag in PLAIN_FRAME:
            return
        element = Element(tag, attributes)
        if tag not in NOT_TEXT and not is_hidden(attributes) and len(self._open) < MAX_DEPTH:
            self._open[-1].children.append(element)
        if tag not in VOID:
            self._push(element)

    def end_tag(self, tag: str) -> None:
        """Close the innermost open element of this tag, and what is open in it, as far as end tags reach."""
        if self._open[-1].tag == tag or tag in OUTER_FRAMES:
            beyond: Iterable[str] = ()
        elif tag in TABLE_PARTS:
            beyond = ("table",)
        else:
            beyond = FRAMES if tag in REACHING else FRAMES_AND_BLOCKS
        self._close(TITLES if tag in TITLES else (tag,), beyond)

    def add_text(self, text: str) -> None:
        """Add a text to the innermost open element."""
        if self._open[-1].tag == "head" and not text.isspace():
            self._close(("head",), ())
        if self._open[-1].tag == "title":
            self.title = self.title or " ".join(text.split())
        elif self._open[-1].tag == "style":
            if self._open[-1].attributes.get("media", "").strip().lower() in SCREEN_MEDIA:
                self._styles.append(text)
        else:
            self._open[-1].children.append(text)

    def drop_hidden(self) -> None:
        """Take out what the style sheets of the page hide."""
        sheet = read_styles("\n".join(self._styles))
        for element in self.root.walk() if self._styles else ():
            element.children = [
                each for each in element.children if isinstance(each, str) or not sheet.hides(each.attributes)
            ]

    def _close_implied(self, tag: str) -> None:
        if self._open[-1].tag == "head" and tag not in IN_HEAD:
            self._close(("head",), ())
        if tag in BLOCKS:
            self._close(("svg", "math"), HTML_IN_FOREIGN)
            self._close(("p",), CLOSED_BEFORE)
        while tag in CLOSES and self._close(*CLOSES[tag]):
            pass

    def _close(self, these: Iterable[str], beyond: Iterable[str]) -> bool:
        """Close the innermost open element of these, but not beyond the others; whether there was one."""
        place = self._innermost(these)
        if not place or place <= self._innermost(beyond):
            return False
        closed, *left_open = self._open[place:]
        for element in self._open[place:]:
            self._places[element.tag].pop()
        del self._open[place:]
        if left_open and closed.tag not in FRAMES:
            hiding = [each for each in left_open if each.tag in FORMATS and is_hidden(each.attributes)]
            for each in hiding[:MAX_REOPENED]:
                self._push(Element(each.tag, each.attributes))
        return True

    def _push(self, element: Element) -> None:
        self._places.setdefault(element.tag, []).append(len(self._open))
        self._open.append(element)

    def _innermost(self, tags: Iterable[str]) -> int:
        """The place of the innermost open element of these tags, 0 if there is none."""
        found = 0
        for tag in tags:
            if (places := self._places.get(tag)) and places[-1] > found:
                found = places[-1]
        return found


def read_tree(html: str) -> TreeBuilder:
    """Parse a page. Never raises, whatever the page holds, and takes time in proportion to its size."""
    builder = TreeBuilder()
    for token in read_tokens(html):
        if isinstance(token, str):
            builder.add_text(token)
        elif token[1] is None:
            builder.end_tag(token[0])
        else:
            builder.start_tag(token[0], token[1])
    builder.drop_hidden()
    return builder
