"""
The tags and texts of a page, found as browsers find them, in one pass.

Nothing is looked at twice: what is still open where the page ends (a tag, a quote, a comment) ends the reading, as it
does in a browser. So a page that is made to be slow to read costs no more than another of its size.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import TypeAlias

from handrail.lazy import lazy_pattern

PageToken: TypeAlias = "tuple[str, dict[str, str] | None] | str"
"""A tag with its attributes, None at an end tag; or a text."""

NAME = lazy_pattern(r"</?([A-Za-z][^\t\n\f\r />]*)")
ATTRIBUTE = lazy_pattern(
    r"[\t\n\f\r /]*([^\t\n\f\r />][^\t\n\f\r />=]*)"
    r"""(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|((?!["'])[^\t\n\f\r >]*)))?"""
)
OPEN_QUOTE = lazy_pattern(r"""[\t\n\f\r ]*=[\t\n\f\r ]*["']""")
TAG_END = lazy_pattern(r"[\t\n\f\r /]*>")
COMMENT_END = lazy_pattern(r"-->|(?<!<!)--!>")
ENTITIES = frozenset(("title", "textarea"))
"""Elements that hold text only, in which entities count."""
RAW = {
    name: re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE)
    for name in ("script", "style", "xmp", "iframe", "noembed", "noframes", *ENTITIES)
}
LONG_NUMBER = lazy_pattern(r"&#0*[1-9][0-9]{7,};?")
ZEROS = lazy_pattern(r"&#0+(?=[0-9])")


def read_tokens(html: str) -> Iterator[PageToken]:
    """The tags and texts of a page, in their order."""
    at = 0
    while (start := html.find("<", at)) >= 0:
        if start > at:
            yield plain_text(html[at:start])
        if (found := NAME.match(html, start)) is None:
            at = _behind_comment(html, start)
            if at == start + 1:
                yield "<"
        else:
            attributes, at = _read_attributes(html, found.end())
            if at >= 0:
                tag, is_end = found[1].lower(), html.startswith("/", start + 1)
                yield tag, None if is_end else attributes
                if not is_end and tag in RAW:
                    end = RAW[tag].search(html, at)
                    text = html[at : end.start() if end else len(html)]
                    yield plain_text(text) if tag in ENTITIES else text
                    at += len(text)
        if at < 0:
            return
    if at < len(html):
        yield plain_text(html[at:])


def _behind_comment(html: str, start: int) -> int:
    """The place behind a comment or what counts as one, below 0 if it does not end; just behind any other `<`."""
    if html.startswith("<!--", start):
        end = COMMENT_END.search(html, start + 2)
        return end.end() if end else -1
    if html.startswith(("<!", "<?", "</"), start):
        return html.find(">", start) + 1 or -1
    return start + 1


def _read_attributes(html: str, at: int) -> tuple[dict[str, str], int]:
    """The attributes of a tag and the place behind it, which is below 0 if the tag does not end."""
    attributes: dict[str, str] = {}
    while (end := TAG_END.match(html, at)) is None:
        found = ATTRIBUTE.match(html, at)
        if found is None or (found.lastindex == 1 and OPEN_QUOTE.match(html, found.end())):
            return attributes, -1
        value = next((each for each in found.groups()[1:] if each), "")
        attributes.setdefault(found[1].lower(), plain_text(value))
        at = found.end()
    return attributes, end.end()


def plain_text(text: str) -> str:
    """A text with its entities replaced; a number that is too long for one stands for no character."""
    if "&#" in text:
        text = ZEROS.sub("&#", LONG_NUMBER.sub("\ufffd", text))
    return unescape(text) if "&" in text else text
