"""
The tags and texts of a page, found as browsers find them, in one pass.

Nothing is looked at twice: what is still open where the page ends (a tag, a quote, a comment) ends the reading, as it
does in a browser. So a page that is made to be slow to read costs no more than another of its size.
"""

import re
from collections.abc import Iterator
from html import unescape
from html.entities import html5
from typing import TypeAlias

from handrail.lazy import lazy_pattern

PageToken: TypeAlias = "tuple[str, dict[str, str] | None] | str"
"""A tag with its attributes, None at an end tag; or a text."""

NAME = lazy_pattern(r"</?([A-Za-z][^\t\n\f\r />]*)")
ATTRIBUTE = lazy_pattern(
    r"[\t\n\f\r /]*([^\t\n\f\r />][^\t\n\f\r />=]*)"
    r"""(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"([^"]*)"|'([^']*)'|((?!["'])[^\t\n\f\r >]*)))?"""
)
OPEN_QUOTE = lazy_pattern(r"""[\t\n\f\r ]*=[\t\n\f\r ]*["']""")
TAG_END = lazy_pattern(r"[\t\n\f\r /]*>")
COMMENT_END = lazy_pattern(r"-->|(?<!<!)(?<!<!-)--!>")
FOREIGN = frozenset(("svg", "math"))
"""Elements that `/>` ends; in HTML itself, the slash has no meaning."""
ENTITIES = frozenset(("title", "textarea"))
"""Elements that hold text only, in which entities count."""
RAW = {
    name: re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE)
    for name in ("style", "xmp", "iframe", "noembed", "noframes", "noscript", *ENTITIES)
}
RAW["plaintext"] = re.compile(r"(?!)")  # it has no end
SCRIPT_PART = lazy_pattern(r"(?i)<!(?=--)|-->|<(/?)script(?=[\t\n\f\r />])")
LONG_NUMBER = lazy_pattern(r"&#0*[1-9][0-9]{7,};?")
ZEROS = lazy_pattern(r"&#0+(?=[0-9])")
NAMED_ENTITY = lazy_pattern(r"&([A-Za-z0-9]+;?)(=?)")


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
            tokens, at = _read_tag(html, found)
            yield from tokens
        if at < 0:
            return
    if at < len(html):
        yield plain_text(html[at:])


def _read_tag(html: str, found: re.Match[str]) -> tuple[list[PageToken], int]:
    """A tag, with its text if it holds nothing else, and the place behind, which is below 0 if the tag does not end."""
    attributes, at, is_empty = _read_attributes(html, found.end())
    tag = found[1].lower()
    if found[0].startswith("</"):
        return [(tag, None)], at
    if at < 0:
        return [], at
    if is_empty and tag in FOREIGN:
        return [(tag, attributes), (tag, None)], at
    end = _raw_end(html, at, tag)
    text = html[at:end]
    return [(tag, attributes), *([plain_text(text) if tag in ENTITIES else text] if text else ())], end


def _raw_end(html: str, at: int, tag: str) -> int:
    """Where the text of an element ends that holds no tags; `at` in another element."""
    if tag == "script":
        return _script_end(html, at)
    if tag not in RAW:
        return at
    end = RAW[tag].search(html, at)
    return end.start() if end else len(html)


def _script_end(html: str, at: int) -> int:
    """Where a script ends: in a comment of it, a whole script may stand."""
    in_comment = in_script = False
    for found in SCRIPT_PART.finditer(html, at):
        if found[1] is None:
            in_comment, in_script = found[0] == "<!", in_script and found[0] == "<!"
        elif not found[1]:
            in_script = in_comment
        elif in_script:
            in_script = False
        else:
            return found.start()
    return len(html)


def _behind_comment(html: str, start: int) -> int:
    """The place behind a comment or what counts as one, below 0 if it does not end; just behind any other `<`."""
    if html.startswith("<!--", start):
        end = COMMENT_END.search(html, start + 2)
        return end.end() if end else -1
    if html.startswith(("<!", "<?", "</"), start):
        return html.find(">", start) + 1 or -1
    return start + 1


def _read_attributes(html: str, at: int) -> tuple[dict[str, str], int, bool]:
    """The attributes of a tag, the place behind it (below 0 if it does not end), and whether it ends in `/>`."""
    attributes: dict[str, str] = {}
    while (end := TAG_END.match(html, at)) is None:
        found = ATTRIBUTE.match(html, at)
        if found is None or (found.lastindex == 1 and OPEN_QUOTE.match(html, found.end())):
            return attributes, -1, False
        value = next((each for each in found.groups()[1:] if each), "")
        attributes.setdefault(found[1].lower(), attribute_text(value))
        at = found.end()
    return attributes, end.end(), end[0].endswith("/>")


def attribute_text(value: str) -> str:
    """A value with its entities replaced; in `?a=1&copy=2` there are none."""
    return plain_text(NAMED_ENTITY.sub(_keep_entity, value) if "&" in value else value)


def _keep_entity(found: re.Match[str]) -> str:
    is_entity = found[1] in html5 and (found[1].endswith(";") or not found[2])
    return found[0] if is_entity else f"&amp;{found[1]}{found[2]}"


def plain_text(text: str) -> str:
    """A text with its entities replaced; a number that is too long for one stands for no character."""
    if "&#" in text:
        text = ZEROS.sub("&#", LONG_NUMBER.sub("\ufffd", text))
    return unescape(text) if "&" in text else text
