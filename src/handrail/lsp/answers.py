"""Answers of servers as text: places with their source lines, bounded, and only of files that may be shown."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from handrail.lsp.positions import from_utf16
from handrail.lsp.server import path_of
from handrail.lsp.source import SourceLines
from handrail.lsp.texts import clean_text, one_line
from handrail.records import record
from handrail.tools.code_questions import CodeAnswer
from handrail.tools.wording import several

MAX_RESULTS = 100
MAX_PARSED = 5_000
MAX_LINE = 240
MAX_HOVER = 12_000
MAX_DEPTH = 20
KINDS = (
    *("file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum"),
    *("interface", "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key"),
    *("null", "enum-member", "struct", "event", "operator", "type-parameter"),
)
"""Kinds of symbols, in the order of their numbers."""


@record
class CodePlace:
    """One place that an answer names. Line and character count from 0, in UTF-16 units."""

    path: str
    """Empty for what is not a file of this machine."""
    line: int
    character: int
    kind: str = ""
    name: str = ""
    depth: int = 0


def parse_places(answer: object) -> list[CodePlace]:
    """The places of an answer about definitions, references or implementations."""
    listed = answer if isinstance(answer, list) else [answer]
    return list(_unique(_places(listed[:MAX_PARSED])))


def _places(listed: Iterable[Any]) -> Iterator[CodePlace]:
    for each in listed:
        match each:
            case {"targetUri": uri, "targetSelectionRange": {"start": start}} | {"uri": uri, "range": {"start": start}}:
                if place := _result(uri, start):
                    yield place


def _result(uri: object, start: object, kind: str = "", name: str = "", depth: int = 0) -> CodePlace | None:
    match path_of(uri), start:
        case (str(path), {"line": int(line), "character": int(character)}) if line >= 0:
            return CodePlace(path, line, max(character, 0), kind, name, depth)
        case _:
            return None


def _unique(results: Iterable[CodePlace]) -> Iterator[CodePlace]:
    return iter(dict.fromkeys(results))


def parse_symbols(answer: object, uri: str = "") -> list[CodePlace]:
    """The symbols of a file (in their nesting), or of the project."""
    return list(_symbols(answer, uri, 0, [MAX_PARSED]))


def _symbols(listed: object, uri: str, depth: int, left: list[int]) -> Iterator[CodePlace]:
    for each in listed if isinstance(listed, list) and depth < MAX_DEPTH else ():
        left[0] -= 1
        if left[0] < 0:
            return
        match each:
            case {"name": str(name), "selectionRange": {"start": start}}:
                if found := _result(uri, start, *symbol_words(each, name), depth):
                    yield found
                yield from _symbols(each.get("children"), uri, depth + 1, left)
            case {"name": str(name), "location": {"uri": place, **rest}}:
                at = rest.get("range")
                start = at.get("start") if isinstance(at, Mapping) else {"line": 0, "character": 0}
                if found := _result(place, start, *symbol_words(each, name), depth):
                    yield found


def symbol_words(symbol: Mapping[str, Any], name: str) -> tuple[str, str]:
    """The kind of a symbol with what holds it, and its name."""
    kind = symbol.get("kind")
    word = KINDS[kind - 1] if isinstance(kind, int) and 1 <= kind <= len(KINDS) else "symbol"
    holder = symbol.get("containerName")
    inside = f" in {one_line(holder, 60)}" if isinstance(holder, str) and holder else ""
    return f"{word}{inside}", one_line(name, 120)


def parse_calls(answer: object, side: str) -> list[CodePlace]:
    """The callers (`from`) or the called (`to`) of a call hierarchy."""
    found = []
    for each in answer[:MAX_PARSED] if isinstance(answer, list) else ():
        item: Any = each.get(side) if isinstance(each, Mapping) else None
        match item:
            case {"name": str(name), "uri": uri, "selectionRange": {"start": start}}:
                if result := _result(uri, start, *symbol_words(item, name)):
                    found.append(result)
    return list(_unique(found))


def hover_text(answer: object) -> str:
    """What a hover says, as Markdown."""
    contents = answer.get("contents") if isinstance(answer, Mapping) else None
    parts = contents if isinstance(contents, list) else [contents]
    texts = []
    for part in parts[:50]:
        match part:
            case str():
                texts.append(part)
            case {"language": str(language), "value": str(value)}:
                texts.append(f"```{language}\n{value}\n```")
            case {"value": str(value)}:
                texts.append(value)
    text = clean_text("\n\n".join(filter(None, texts))).strip()
    return text if len(text) <= MAX_HOVER else f"{text[:MAX_HOVER]}\n(cut: {len(text):,} characters)"


def show_results(results: Sequence[CodePlace], what: str, cwd: Path, sources: SourceLines) -> CodeAnswer:
    """The places one per line, `path:line:column: source line`, those of one file together."""
    lines: list[str] = []
    outside = seen = 0
    for each in results:
        real = sources.real(each.path)
        if not real:
            outside += 1
            continue
        seen += 1
        if len(lines) < MAX_RESULTS:
            lines.append(_line(each, real, cwd, sources))
    notes = []
    if seen > len(lines):
        notes.append(f"({seen - len(lines):,} more are not listed. Ask about a narrower name.)")
    if outside:
        lie = "lies" if outside == 1 else "lie"
        notes.append(f"({several(outside, 'result')} {lie} outside the working folders or may not be read; not shown.)")
    head = f"{several(seen, what)}:" if seen else f"No {what} found."
    return CodeAnswer("\n".join([head, *lines, *notes]), seen + outside)


def _line(each: CodePlace, real: str, cwd: Path, sources: SourceLines) -> str:
    text = sources.lines(real) or []
    line = text[each.line] if each.line < len(text) else ""
    place = f"{shown_path(real, cwd)}:{each.line + 1}:{from_utf16(line, each.character) + 1}"
    said = one_line(line, MAX_LINE)
    if each.kind:
        said = f"{each.kind}: {said if each.name in said else each.name}"
    return f"{'  ' * each.depth}{place}: {said}"


def shown_path(real: str, cwd: Path) -> str:
    """A path from the folder of the one who asks, if it lies there."""
    base = os.path.realpath(cwd)
    path = os.path.relpath(real, base) if f"{real}/".startswith(f"{base.rstrip('/')}/") else real
    return one_line(path, 1_000)
