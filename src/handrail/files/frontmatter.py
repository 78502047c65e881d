"""
Parses the frontmatter of a Markdown file: `name: value` lines between two lines of three dashes.

It supports what such files use in practice: plain and quoted texts, lists in brackets, lists with dashes, texts over
several lines (`|` and `>`). It is not a YAML parser, and reports lines that it does not understand.
"""

import json
import re
from typing import TypeAlias

from handrail.records import record

Value: TypeAlias = str | tuple[str, ...]

KEY = r"(?P<name>[A-Za-z][A-Za-z0-9_-]*):(?!//)(?P<value>.*)"
"""A blank after the colon may be missing: what people mean by `paths:src` is plain. Blanks around the value go."""
FLAGS = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)


@record
class MarkdownFile:
    """A file's frontmatter and body. `problem` names a line that is not understood; the other lines count."""

    values: dict[str, Value]
    body: str
    problem: str = ""

    def text(self, name: str) -> str:
        """A value as one text; empty if it is not there."""
        value = self.values.get(name, "")
        return value if isinstance(value, str) else ", ".join(value)

    def flag(self, name: str, default: bool) -> bool:  # reads like dict.get
        """A value as yes or no, in any of the words for them."""
        return FLAGS.get(self.text(name).lower(), default)

    def names(self, name: str) -> tuple[str, ...] | None:
        """A value as a list: with dashes, in brackets, or separated by commas. None = it is not there."""
        value = self.values.get(name)
        if value is None:
            return None
        return split_names(value) if isinstance(value, str) else value


def parse_frontmatter(text: str) -> MarkdownFile:
    """Split a file into frontmatter and body. A file without frontmatter is all body."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---":
        return MarkdownFile({}, text)
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        return MarkdownFile({}, text, "the head does not end: a line of three dashes is missing")
    values, problem = _values(lines[1:end])
    return MarkdownFile(values, "\n".join(lines[end + 1 :]).strip("\n"), problem)


def split_names(text: str) -> tuple[str, ...]:
    """Names separated by commas; commas inside brackets and braces do not count."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "({") - (char in ")}")
        if char == "," and depth <= 0:
            parts.append(text[start:place])
            start = place + 1
    return tuple(part.strip() for part in (*parts, text[start:]) if part.strip())


def _values(lines: list[str]) -> tuple[dict[str, Value], str]:
    values: dict[str, Value] = {}
    problem = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = re.fullmatch(KEY, line)
        if found is None:
            problem = problem or f"{line.strip()[:60]!r} is not a name and a value"
            continue
        inner: list[str] = []
        while at < len(lines) and (not lines[at].strip() or lines[at][0] in " \t" or lines[at].startswith("- ")):
            inner.append(lines[at])
            at += 1
        values[found["name"]] = _value(found["value"].strip(" \t"), inner)
    return values, problem


def _value(first: str, inner: list[str]) -> Value:
    words = [line.strip() for line in inner if line.strip()]
    if first[:1] in ("|", ">"):
        return ("\n" if first[0] == "|" else " ").join(words)
    if not first and words and all(word.startswith("- ") for word in words):
        return tuple(plain_value(word[2:]) for word in words)
    whole = " ".join([first, *words])
    if whole.startswith("[") and whole.endswith("]"):
        return tuple(plain_value(part) for part in split_names(whole[1:-1]))
    return " ".join([plain_value(first), *words]).strip() if words else plain_value(first)


def plain_value(text: str) -> str:
    """A text without quotes and without a trailing comment."""
    text = text.strip()
    if text[:1] == '"' and text.endswith('"') and len(text) > 1:
        try:
            value = json.loads(text)
        except ValueError:
            return text[1:-1]
        return value if isinstance(value, str) else text
    if text[:1] == "'" and text.endswith("'") and len(text) > 1:
        return text[1:-1].replace("''", "'")
    comment = re.search(r"\s#", text)
    return text[: comment.start()].rstrip() if comment else text
