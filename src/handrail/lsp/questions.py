"""How each question is put to a server, and where in a file it points."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from handrail.errors import LspError
from handrail.lsp.answers import hover_text, parse_calls, parse_places, parse_symbols, show_results
from handrail.lsp.positions import CodePosition, find_name, from_utf16, split_text, to_utf16
from handrail.lsp.server import LanguageServer, uri_of
from handrail.lsp.source import SourceLines, real_path
from handrail.records import record
from handrail.tools.code_questions import CodeAnswer, CodeQuestion, CodeView

NAMED_LINES = 10
MAX_TRIES = 8
"""At so many places a name is asked about that the file does not declare: the first may stand in a comment."""


@record
class Operation:
    """A kind of question: the request, what a server must offer for it, and what its results are called."""

    method: str
    provider: str
    noun: str


OPERATIONS: Mapping[str, Operation] = {
    "goToDefinition": Operation("textDocument/definition", "definitionProvider", "definition"),
    "goToImplementation": Operation("textDocument/implementation", "implementationProvider", "implementation"),
    "findReferences": Operation("textDocument/references", "referencesProvider", "reference"),
    "hover": Operation("textDocument/hover", "hoverProvider", "description"),
    "documentSymbol": Operation("textDocument/documentSymbol", "documentSymbolProvider", "symbol"),
    "workspaceSymbol": Operation("workspace/symbol", "workspaceSymbolProvider", "symbol"),
    "incomingCalls": Operation("callHierarchy/incomingCalls", "callHierarchyProvider", "caller"),
    "outgoingCalls": Operation("callHierarchy/outgoingCalls", "callHierarchyProvider", "called function"),
}


async def ask_project(server: LanguageServer, question: CodeQuestion, view: CodeView) -> CodeAnswer:
    """The symbols of the project with this name, or like it."""
    found = parse_symbols(await server.ask("workspace/symbol", {"query": question.symbol}))
    return await asyncio.to_thread(show_results, found, "symbol", view.cwd, SourceLines(view.shows))


async def ask_file(server: LanguageServer, question: CodeQuestion, path: str, text: str, view: CodeView) -> CodeAnswer:
    """The answer about a file that the server knows with this text."""
    operation, document = OPERATIONS[question.operation], {"textDocument": {"uri": uri_of(path)}}
    if question.operation == "documentSymbol":
        found = parse_symbols(await server.ask(operation.method, document), uri_of(path))
        return await asyncio.to_thread(show_results, found, operation.noun, view.cwd, SourceLines(view.shows))
    lines = split_text(text)
    declared: Sequence[tuple[str, CodePosition]] = ()
    if question.symbol and question.line is None and server.offers("documentSymbolProvider"):
        declared = declared_names(await server.ask("textDocument/documentSymbol", document), lines)
    answer = CodeAnswer("")
    for at in find_positions(question, lines, declared)[:MAX_TRIES]:
        units = to_utf16(lines[at.line], at.character)
        pointer: dict[str, Any] = {**document, "position": {"line": at.line, "character": units}}
        answer = await _ask_at(server, question, pointer, view)
        if answer.count:
            break
    return answer


async def _ask_at(
    server: LanguageServer, question: CodeQuestion, pointer: Mapping[str, Any], view: CodeView
) -> CodeAnswer:
    """The answer about one position."""
    operation, sources = OPERATIONS[question.operation], SourceLines(view.shows)
    if question.operation == "hover":
        await _refuse_hidden(server, pointer, view.hides)
        said = hover_text(await server.ask(operation.method, pointer))
        return CodeAnswer(said, 1) if said else CodeAnswer("The language server says nothing about it.")
    if operation.provider == "callHierarchyProvider":
        return await _ask_calls(server, operation, pointer, view.cwd, sources)
    context = {"context": {"includeDeclaration": True}} if question.operation == "findReferences" else {}
    answer = await server.ask(operation.method, {**pointer, **context})
    return await asyncio.to_thread(show_results, parse_places(answer), operation.noun, view.cwd, sources)


async def _refuse_hidden(server: LanguageServer, pointer: Mapping[str, Any], hides: Callable[[str], bool]) -> None:
    """Raise LspError if what is pointed at is defined in a file that a rule hides: its description may quote it."""
    if server.offers("definitionProvider"):
        places = parse_places(await server.ask("textDocument/definition", pointer))
        if any(hides(real_path(each.path)) for each in places):
            raise LspError("It is defined in a file that may not be read, so nothing is said about it.")


async def _ask_calls(
    server: LanguageServer, operation: Operation, pointer: Mapping[str, Any], cwd: Path, sources: SourceLines
) -> CodeAnswer:
    prepared = await server.ask("textDocument/prepareCallHierarchy", pointer)
    items = [each for each in prepared if isinstance(each, Mapping)] if isinstance(prepared, list) else []
    if not items:
        return CodeAnswer("There is no function at this position. Point at the name of one.")
    answer = await server.ask(operation.method, {"item": items[0]})
    side = "from" if operation.noun == "caller" else "to"
    return await asyncio.to_thread(show_results, parse_calls(answer, side), operation.noun, cwd, sources)


def find_positions(
    question: CodeQuestion, lines: Sequence[str], declared: Sequence[tuple[str, CodePosition]] = ()
) -> list[CodePosition]:
    """
    Where a question may point, the likeliest first: at a name on a line, at one that the file declares or uses, or at
    line and column.

    Raises:
        LspError: the name is not there, or the position is not.
    """
    spelling = question.place.spelling if question.place else ""
    wanted = None if question.line is None else question.line - 1
    if wanted is not None and not 0 <= wanted < len(lines):
        raise LspError(f"{spelling!r} has {len(lines):,} lines, and line {question.line} was asked about.")
    name = question.symbol.strip().removesuffix("()")
    if not name:
        if wanted is None or question.column is None:
            raise LspError("Give symbol (a name that stands in the file), or line and column.")
        return [CodePosition(wanted, min(max(question.column - 1, 0), len(lines[wanted])))]
    last = name.rpartition(".")[2] or name
    found = find_name(list(lines), last, wanted)
    if wanted is None:
        fitting = [place for each, place in declared if each == name or each.endswith(f".{name}")]
        if "." in name and not fitting and declared:
            fitting = [place for each, place in declared if each == last]
        found = fitting or found
    if found:
        near = question.column - 1 if question.column is not None else 0
        return sorted(found, key=lambda each: (each.line, abs(each.character - near)))
    elsewhere = sorted({each.line + 1 for each in find_name(list(lines), last)})
    if elsewhere:
        more = ", ..." if len(elsewhere) > NAMED_LINES else ""
        numbers = ", ".join(map(str, elsewhere[:NAMED_LINES]))
        raise LspError(f"{last!r} does not stand on line {question.line} of {spelling!r}, but on {numbers}{more}.")
    raise LspError(f"{last!r} does not stand in {spelling!r}. Look for it with workspaceSymbol, or with Grep.")


def declared_names(answer: object, lines: Sequence[str]) -> list[tuple[str, CodePosition]]:
    """The names that a file declares, with the names of what holds them before, and where."""
    return list(_symbols_in(answer, "", lines, 0))


def _symbols_in(listed: object, holder: str, lines: Sequence[str], depth: int) -> Iterator[tuple[str, CodePosition]]:
    for each in listed if isinstance(listed, list) and depth < 20 else ():
        match each:
            case {"name": str(name), "selectionRange": {"start": {"line": int(line), "character": int(units)}}}:
                whole = f"{holder}.{name}" if holder else name
                if 0 <= line < len(lines):
                    yield whole, CodePosition(line, from_utf16(lines[line], units))
                yield from _symbols_in(each.get("children"), whole, lines, depth + 1)
            case {"name": str(name), "location": {"range": {"start": {"line": int(line)}}}} if 0 <= line < len(lines):
                inside = each.get("containerName")
                whole = f"{inside}.{name}" if isinstance(inside, str) and inside else name
                # the range may begin before the name, at a keyword or a decorator
                yield from ((whole, place) for place in find_name(list(lines), name, line)[:1])
