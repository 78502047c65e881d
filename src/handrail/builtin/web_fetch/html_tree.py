"""A page as a tree: tags that were left open are closed, what is hidden is left out."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser

from handrail.builtin.web_fetch.hidden import NOT_TEXT, is_hidden
from handrail.builtin.web_fetch.style_sheet import read_styles

MAX_DEPTH = 150
KEPT_ATTRIBUTES = frozenset(("href", "src", "alt", "class", "start", "data-lang", "colspan", "rowspan"))
VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
PLAIN_FRAME = frozenset(("html", "body"))
"""Elements that stand for the root."""
# A tag ends these when they were left open, but nothing beyond the second.
CLOSES = {
    "li": ({"li"}, {"ul", "ol"}),
    "dt": ({"dt", "dd"}, {"dl"}),
    "dd": ({"dt", "dd"}, {"dl"}),
    "tr": ({"tr", "td", "th"}, {"table"}),
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


class TreeBuilder(HTMLParser):
    """
    Builds the tree. `title` and `base` are what the head of the page says.

    What is left out is parsed like the rest, but hangs on no other element; so does what lies too deep.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("body")
        self.title = ""
        self.base = ""
        self._open = [self.root]
        self._styles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in reversed(attrs)}
        if tag == "base":
            self.base = self.base or attributes.get("href", "")
        self._close_implied(tag)
        if tag in PLAIN_FRAME:
            return
        element = Element(tag, attributes)
        if tag not in NOT_TEXT and not is_hidden(attributes) and len(self._open) < MAX_DEPTH:
            self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)  # in HTML the slash has no meaning

    def handle_endtag(self, tag: str) -> None:
        for at in range(len(self._open) - 1, 0, -1):
            if self._open[at].tag == tag:
                del self._open[at:]
                return

    def handle_data(self, data: str) -> None:
        if self._open[-1].tag == "title":
            self.title = self.title or " ".join(data.split())
        elif self._open[-1].tag == "style":
            if not any(each.tag == "noscript" for each in self._open):
                self._styles.append(data)
        else:
            self._open[-1].children.append(data)

    def drop_hidden(self) -> None:
        """Take out what the style sheets of the page hide."""
        sheet = read_styles("\n".join(self._styles))
        for element in self.root.walk() if self._styles else ():
            element.children = [
                each for each in element.children if isinstance(each, str) or not sheet.hides(each.attributes)
            ]

    def _close_implied(self, tag: str) -> None:
        if tag == "body":
            self._close({"head"}, set())
        if tag in BLOCKS:
            self._close({"p"}, BLOCKS - {"p"})
        if tag in CLOSES:
            self._close(*CLOSES[tag])

    def _close(self, these: "set[str] | frozenset[str]", beyond: "set[str] | frozenset[str]") -> None:
        for at in range(len(self._open) - 1, 0, -1):
            if self._open[at].tag in these:
                del self._open[at:]
                return
            if self._open[at].tag in beyond:
                return


def read_tree(html: str) -> TreeBuilder:
    """Parse a page. Never raises, whatever the page holds."""
    builder = TreeBuilder()
    builder.feed(html)
    builder.close()
    builder.drop_hidden()
    return builder
