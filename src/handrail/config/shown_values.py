"""Values of settings as a person may see them: whole, on one line, with secrets shortened."""

from collections.abc import Iterator, Mapping
from typing import Any

from handrail.config.json_paths import JsonPath, format_path
from handrail.conversation.plain import plain
from handrail.conversation.redact import Redactor, TextEdit, apply_edits, is_secret_name
from handrail.lazy import lazy_pattern

BY_SHAPE = Redactor()
REFERENCE = lazy_pattern(r"\$(?:\{\w+|\w+)")
SHORTEST_WITH_BEGINNING = 12
ONE_WORD = lazy_pattern(r"[\w.~+/=:%-]+")
"""What cannot hide a command: neither blanks nor what a shell understands."""
FLAG = lazy_pattern(r"(?<!\S)--?(?P<name>[A-Za-z][\w-]*)(?:=|\s+)(?P<secret>[^\s-]\S*)")


def visible(text: str) -> str:
    """The text on one line, with control characters made visible, those that begin lines too."""
    return plain(text.replace("\r\n", "\\r\\n")).replace("\n", "\\n").replace("\t", "\\t")


def shorten_secret(text: str) -> str:
    """A secret, so that its owner knows it and no one else can use it."""
    beginning = f"{text[:4]}... " if len(text) >= SHORTEST_WITH_BEGINNING else ""
    return f"{beginning}({len(text)} characters)"


def show_text(name: str, text: str) -> str:
    """
    A text under a name: secrets by the name or by their shape are shortened; references to variables are none.

    What only looks like a secret and may be a command is shown: people decide by what they see here.
    """
    if is_secret_name(name) and not REFERENCE.search(text):
        return visible(shorten_secret(text))
    spans = {(edit.start, edit.end) for edit in BY_SHAPE.spans(text)}
    named = {found.span("secret") for found in FLAG.finditer(text) if is_secret_name(found["name"])}
    spans |= {span for span in named if not any(span[0] < end and start < span[1] for start, end in spans)}
    edits = [
        TextEdit(start, end, shorten_secret(text[start:end]))
        for start, end in sorted(spans)
        if ONE_WORD.fullmatch(text[start:end])
    ]
    return visible(apply_edits(text, edits))


def show_value(name: str, value: Any) -> Any:
    """The same for every text in a JSON value."""
    match value:
        case str():
            return show_text(name, value)
        case Mapping():
            return {visible(str(key)): show_value(str(key), each) for key, each in value.items()}
        case list():
            return [
                show_value(_flag(before, each) or name, each) for before, each in zip(("", *value), value, strict=False)
            ]
        case _:
            return value


def _flag(before: Any, value: Any) -> str:
    """The name of the flag that stands before its value in a list of arguments; empty if there is none."""
    both = isinstance(before, str) and isinstance(value, str)
    return before.lstrip("-") if both and before.startswith("-") and ONE_WORD.fullmatch(value) else ""


def leaves(value: Any, path: JsonPath = ()) -> Iterator[tuple[str, Any]]:
    """The parts of a value that have no parts, each with the way to it; a list of texts is one part."""
    match value:
        case dict() if value:
            for name, each in value.items():
                yield from leaves(each, (*path, name))
        case list() if any(isinstance(each, dict | list) for each in value):
            for at, each in enumerate(value):
                yield from leaves(each, (*path, at))
        case _:
            yield format_path(path), value
