"""
Grep: find text in files, newest files first.

Ripgrep runs twice: first it lists the matching files, then it prints the matches of the wanted page. So memory is
bounded, and files that a rule hides are never shown. For the second run the files are opened here without following
links, so a file that was swapped for a link is not searched.
"""

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path

from handrail.builtin.grep.lines import MatchFormatter, read_events
from handrail.builtin.grep.query import GrepInput, file_arguments, pattern_arguments, refusal
from handrail.builtin.services import ToolServices
from handrail.builtin.support.places import place_of
from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.builtin.support.ripgrep import (
    Folder,
    OpenFiles,
    RipgrepProcess,
    one_line,
    relative_name,
    sort_names,
    visible_names,
)
from handrail.conversation.blocks import Json
from handrail.files.paths import Place
from handrail.records import record
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.wording import several

FILES_AT_ONCE = 50


@record
class Page:
    """The entries that are shown, and whether more follow."""

    entries: list[str]
    more: bool


@record
class Search:
    """One call: its input, its folder, and how file names are shown."""

    args: GrepInput
    folder: Folder
    target: str
    base: str
    services: ToolServices
    ctx: ToolContext

    def path(self, name: bytes) -> str:
        """The path of a file, relative to the working folder."""
        path = os.fsdecode(name.removeprefix(b"./"))
        return f"{self.base.rstrip('/')}/{path}" if self.base else path

    def display_name(self, name: bytes) -> str:
        """The path of a file on one line."""
        return one_line(self.path(name))

    def visible(self, lists: Iterable[list[bytes]]) -> Iterable[list[bytes]]:
        """The names that no rule hides."""
        return visible_names(self.folder, lists, self.services)

    def program(self, how: list[str], files: OpenFiles | None = None) -> RipgrepProcess:
        """Search the whole place, or some files of it."""
        where = ["--", *map(os.fsdecode, files.names)] if files else [*file_arguments(self.args), "--", self.target]
        words = [*how, *pattern_arguments(self.args), *where]
        return RipgrepProcess(words, self.folder, self.services, self.ctx.abort, files.descriptors if files else ())


class Grep(ReadOnlyTool[GrepInput]):
    name = "Grep"
    search_hint = "find text contents regex rg ripgrep"
    input_model = GrepInput
    subject = "path"
    max_result_chars = None
    always_load = True
    blocking = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: GrepInput, run: RunContext) -> Access:
        return Access.of(walks=args.path, filtered=True)

    def summary(self, args: GrepInput) -> str:
        return f"Grep({args.pattern[:60]})"

    def call_blocking(self, args: GrepInput, ctx: ToolContext) -> Output:
        place = place_of(args.path, ctx, self._services)
        with Folder.at(place) as folder:
            search = _search(args, folder, place, self._services, ctx)
            if args.output_mode == "count":
                return count_lines(search)
            files, notes = matching_files(search)
            if args.output_mode == "files_with_matches":
                return list_files(search, files, notes)
            return lines_of(search, files, notes)

    def output_from_data(self, data: Json) -> Output:
        content, names = data.get("content"), data.get("filenames")
        if isinstance(content, str):
            return Output(text=content, data=data)
        return (
            Output(text="\n".join(map(str, names)), data=data)
            if isinstance(names, list)
            else super().output_from_data(data)
        )


def _search(args: GrepInput, folder: Folder, place: Place, services: ToolServices, ctx: ToolContext) -> Search:
    shown = relative_name(ctx.cwd, place)
    if folder.real == place.real:
        return Search(args, folder, "./", shown, services, ctx)
    return Search(args, folder, f"./{Path(place.real).name}", shown.rpartition("/")[0], services, ctx)


def matching_files(search: Search) -> tuple[list[bytes], list[str]]:
    """The matching files, newest first, and notes about files that could not be read."""
    with search.program(["--files-with-matches", "--null"]) as program:
        found = search.visible(program.pieces(b"\0"))
        names, _ = sort_names(search.folder, found, search.services)
        return names, _check_complaints(search, program)


def _check_complaints(search: Search, program: RipgrepProcess) -> list[str]:
    """Raise complaints about arguments; return notes about files that could not be read."""
    if program.complaint and not program.unreadable:
        raise refusal(search.args, program.complaint)
    return [f"({several(program.unreadable, 'place')} could not be read.)"] if program.unreadable else []


def list_files(search: Search, files: list[bytes], notes: list[str]) -> Output:
    """The result with file names only."""
    page = take_page(search.args, map(search.display_name, files))
    files_word = f"Found {several(len(files), 'file')}"
    found = [files_word, *page.entries, *paging_note(search.args, page)] if files else ["No file matches."]
    text = "\n".join([*found, *notes])
    start = search.args.offset
    names = [search.path(name) for name in files[start : start + len(page.entries)]]
    data = {"mode": "files_with_matches", "numFiles": len(files), "filenames": names}
    return _output(search.args, text, data, files_word)


def count_lines(search: Search) -> Output:
    """The result with the number of matching lines per file and in total."""
    with search.program(["--count", "--null", "--with-filename"]) as program:
        counts = dict(parse_counts(program.pieces(b"\n")))
        notes = _check_complaints(search, program)
    shown, _ = sort_names(search.folder, search.visible([list(counts)]), search.services)
    page = take_page(search.args, (f"{search.display_name(name)}:{counts[name]}" for name in shown))
    total = sum(counts[name] for name in shown)
    summary = f"{several(total, 'matching line')} in {several(len(shown), 'file')}"
    found = [*page.entries, f"Total: {summary}", *paging_note(search.args, page)] if shown else ["No match."]
    text = "\n".join([*found, *notes])
    data = {
        "mode": "count",
        "numFiles": len(shown),
        "filenames": [],
        "numMatches": total,
        "content": "\n".join(page.entries),
    }
    return _output(search.args, text, data, summary)


def parse_counts(pieces: Iterable[list[bytes]]) -> Iterator[tuple[bytes, int]]:
    """Parse `name NUL number` lines, where a name may hold line breaks."""
    name = b""
    for piece in chain.from_iterable(pieces):
        before, found, number = piece.partition(b"\0")
        if found:
            yield name + before, int(number)
            name = b""
        else:
            name += piece + b"\n"


def lines_of(search: Search, files: list[bytes], notes: list[str]) -> Output:
    """The result with matching lines and their context."""
    with closing(_lines(search, files)) as lines:
        page = take_page(search.args, lines)
    found = [*page.entries, *paging_note(search.args, page)] or ["No match."]
    text = "\n".join([*found, *notes])
    data = {
        "mode": "content",
        "numFiles": len(files),
        "filenames": [],
        "numLines": len(page.entries),
        "content": "\n".join(page.entries),
    }
    return _output(search.args, text, data, several(len(page.entries), "line"))


def _lines(search: Search, files: list[bytes]) -> Generator[str]:
    how = ["--json", "--threads=1"]  # with one thread the files are taken in the order given
    if search.args.lines_before:
        how.append(f"--before-context={search.args.lines_before}")
    if search.args.lines_after:
        how.append(f"--after-context={search.args.lines_after}")
    writer = MatchFormatter(search.args, search.display_name)
    waiting = iter(files)
    while some := list(islice(waiting, FILES_AT_ONCE)):
        with OpenFiles(search.folder, some) as held:
            if not held.names:
                continue
            with search.program(how, held) as program:
                for event in read_events(program.chunks()):
                    yield from writer.lines(event, held.names)


def take_page(args: GrepInput, entries: Iterable[str]) -> Page:
    """The wanted entries, as many as fit."""
    room = args.max_chars
    shown: list[str] = []
    rest = islice(entries, args.offset, None)
    for entry in rest:
        room -= len(entry) + 1
        if (args.head_limit and len(shown) >= args.head_limit) or (room < 0 and shown):
            return Page(shown, more=True)
        shown.append(entry)
    return Page(shown, more=False)


def paging_note(args: GrepInput, page: Page) -> list[str]:
    """A note how to read on."""
    if page.more:
        upto = args.offset + len(page.entries)
        return [f"(Entries {args.offset + 1:,} to {upto:,} are shown, more follow. Go on with offset={upto}.)"]
    if args.offset and not page.entries:
        return [f"(There is nothing behind entry {args.offset:,}.)"]
    return []


def _output(args: GrepInput, text: str, data: dict[str, object], detail: str) -> Output:
    limits = {"appliedLimit": args.head_limit, "appliedOffset": args.offset}
    return Output(text=text, data={**data, **limits}, card=Card(title=f"Grep {args.pattern[:60]}", detail=detail))
