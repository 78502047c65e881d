"""Writes the tree of a page as Markdown: its main text with links, tables, lists and code."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urljoin

from handrail.builtin.web_fetch.hidden import AROUND
from handrail.builtin.web_fetch.html_tree import BLOCKS, Element
from handrail.lazy import lazy_pattern

HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~", "strike": "~~"}
CODE = frozenset(("code", "kbd", "samp", "tt"))
LANGUAGE = lazy_pattern(r"(?:^|\s)(?:language|lang|highlight-source|highlight|brush:)-?\s*([A-Za-z0-9+#_.-]+)")
MIN_MAIN = 200
"""Characters that the main element must hold to stand for the page."""


def write_markdown(element: Element, base: str) -> str:
    """The text of an element; `base` is the address that its links start from."""
    text = Writer(base).blocks(element.children)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def main_element(root: Element) -> Element:
    """The one element that holds the main text, if the page says which."""
    for wanted in ("main", "article"):
        found = [each for each in root.walk() if each.tag == wanted or each.attributes.get("role") == wanted]
        if len(found) == 1 and len(found[0].texts().strip()) >= MIN_MAIN:
            return found[0]
    return root


class Writer:
    """Writes elements."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._with_blocks: dict[int, bool] = {}

    def blocks(self, children: "Iterable[Element | str]") -> str:
        """Blocks with empty lines between them; texts and inline elements in a row are one paragraph."""
        parts: list[str] = []
        line: list[Element | str] = []
        for child in children:
            if isinstance(child, str) or not self._is_block(child):
                line.append(child)
            else:
                parts += [_squeeze(self.inline(line)), self._block(child)]
                line = []
        parts.append(_squeeze(self.inline(line)))
        return "\n\n".join(part for part in parts if part.strip())

    def inline(self, children: "Iterable[Element | str]") -> str:
        """Text in a line; newlines stand for line breaks only."""
        return "".join(
            re.sub(r"\s+", " ", child) if isinstance(child, str) else self._inline_element(child) for child in children
        )

    def _is_block(self, element: Element) -> bool:
        if element.tag in BLOCKS:
            return True
        known = self._with_blocks.get(id(element))  # it is asked for again at each depth
        if known is None:
            known = any(isinstance(child, Element) and self._is_block(child) for child in element.children)
            self._with_blocks[id(element)] = known
        return known

    def _block(self, element: Element) -> str:
        tag = element.tag
        if tag in AROUND:
            return ""
        if tag in HEADINGS:
            text = _one_line(self.inline(element.children))
            return f"{HEADINGS[tag]} {text}" if text else ""
        if tag in ("ul", "ol"):
            return self._list(element)
        if tag == "pre":
            return _code_block(element)
        if tag == "table":
            return self._table(element)
        if tag == "hr":
            return "---"
        inside = self.blocks(element.children)
        if tag == "blockquote":
            return "\n".join(f"> {line}".rstrip() for line in inside.split("\n")) if inside else ""
        if tag == "dt":
            return f"**{_one_line(inside)}**" if inside else ""
        return inside

    def _list(self, element: Element) -> str:
        items: list[str] = []
        number = int(start) if (start := element.attributes.get("start", "")).isdecimal() and len(start) < 9 else 1
        for child in element.children:
            if not isinstance(child, Element):
                continue
            text = self._block(child) if child.tag in ("ul", "ol") else self.blocks(child.children)
            mark = "-" if element.tag == "ul" else f"{number}."
            if text:
                text = re.sub(r"\n\n(?= *(?:-|\d+\.) )", "\n", text)
                items.append(f"{mark} " + text.replace("\n", "\n" + " " * (len(mark) + 1)))
                number += 1
        return "\n".join(items)

    def _table(self, element: Element) -> str:
        rows = [[_cell(self.blocks(cell.children)) for cell in _cells(row)] for row in _rows(element)]
        rows = [row for row in rows if any(row)]
        width = max(map(len, rows), default=0)
        if width < 2 or any(each.tag == "table" and each is not element for each in element.walk()):
            return "\n\n".join(text for row in rows for text in row if text)  # it only arranges the page
        lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
        return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])

    def _inline_element(self, element: Element) -> str:
        tag = element.tag
        if tag == "br":
            return "\n"
        if tag == "img":
            return self._image(element)
        if tag in CODE:
            text = _one_line(element.texts())
            mark = "``" if "`" in text else "`"
            return f"{mark}{text}{mark}" if text else ""
        inside = self.inline(element.children)
        text = inside.strip()
        if not text:
            return inside[:1]
        if tag in MARKS:
            return inside.replace(text, f"{MARKS[tag]}{text}{MARKS[tag]}")
        if tag == "a":
            address = self._address(element.attributes.get("href", ""))
            return inside.replace(text, f"[{_one_line(text)}]({address})") if address else inside
        return inside

    def _image(self, element: Element) -> str:
        address = self._address(element.attributes.get("src", ""))
        about = _one_line(element.attributes.get("alt", ""))
        return f"![{about}]({address})" if address and about else ""

    def _address(self, link: str) -> str:
        """The whole address of a link; empty where it leads to no other page."""
        if not link.strip() or link.startswith("#"):
            return ""
        try:
            address = urljoin(self._base, link.strip())
        except ValueError:
            return ""
        if not address.startswith(("http://", "https://", "mailto:")):
            return ""
        return address.replace(" ", "%20").replace("(", "%28").replace(")", "%29").replace("\n", "")


def _rows(table: Element) -> Iterator[Element]:
    """The rows of a table, not those of tables in it."""
    for child in table.children:
        if isinstance(child, Element) and child.tag == "tr":
            yield child
        elif isinstance(child, Element) and child.tag not in ("table", "td", "th"):
            yield from _rows(child)


def _cells(row: Element) -> list[Element]:
    return [child for child in row.children if isinstance(child, Element) and child.tag in ("td", "th")]


def _code_block(element: Element) -> str:
    text = element.texts().strip("\n").rstrip()
    if not text.strip():
        return ""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{_language(element)}\n{text}\n{fence}"


def _language(element: Element) -> str:
    """The language of code, by one of the usual classes of the element or of the one in it."""
    inner = [child for child in element.children if isinstance(child, Element)]
    for each in (element, *inner[:1]):
        named = each.attributes.get("data-lang") or each.attributes.get("data-language")
        if named and re.fullmatch(r"[A-Za-z0-9+#_.-]{1,30}", named):
            return named
        if found := LANGUAGE.search(each.attributes.get("class", "")):
            return found[1]
    return ""


def _cell(text: str) -> str:
    return _one_line(text.replace("|", "\\|"))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _squeeze(text: str) -> str:
    """The text without blanks at the ends of its lines."""
    return "\n".join(re.sub(r" +", " ", line).strip() for line in text.split("\n")).strip()
