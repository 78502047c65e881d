"""Read: show the content of a file to the model."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.builtin.read.open_file import OpenFile
from handrail.builtin.read.repeated_read import stub
from handrail.builtin.read.text import LineRange, show_lines
from handrail.builtin.services import ToolServices
from handrail.builtin.support.media_types import media_type
from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.conversation.blocks import Json, Text
from handrail.errors import ToolError
from handrail.files.paths import FileKind
from handrail.files.text import detect_encoding
from handrail.lazy import lazy
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.wording import several

if TYPE_CHECKING:
    from handrail.builtin.read import rich_formats
else:
    rich_formats = lazy("handrail.builtin.read.rich_formats")  # Pillow

HEAD = 16
HELD_BYTES = 4_000_000
QUICK_BYTES = 64 * 1024
MAX_TEXT_BYTES = 4 << 30
SLOW = (".pdf", ".ipynb", ".png", ".jpg", ".jpeg", ".gif", ".webp")


class ReadInput(PlainInput):
    file_path: str = Field(description="The file to read; relative paths start at the working folder.")
    offset: int = Field(default=1, ge=0, description="First line, counted from 1; in a notebook, first cell.")
    limit: int | None = Field(default=None, gt=0, description="How many of them.")
    pages: str = Field(default="", max_length=50, description="Pages of a PDF: 3 or 1-5; at most 20.")


class Read(ReadOnlyTool[ReadInput]):
    name = "Read"
    aliases = ("FileRead", "FileReadTool", "read_file", "NotebookRead")
    search_hint = "show open view file contents text image pdf"
    input_model = ReadInput
    subject = "file_path"
    max_result_chars = None
    always_load = True
    blocking = True
    tracks_files = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: ReadInput, run: RunContext) -> Access:
        return Access.of(reads=args.file_path, filtered=True)

    def summary(self, args: ReadInput) -> str:
        return f"Read({args.file_path})"

    def group_card(self, inputs: Sequence[Json]) -> Card | None:
        names = "\n".join(str(raw.get("file_path", "?")) for raw in inputs)
        return Card(title="Read", detail=several(len(inputs), "file"), body=names)

    def is_quick(self, args: ReadInput, ctx: ToolContext) -> bool:
        """Whether it is a small text: starting a thread costs more than reading it."""
        place = ctx.decided_place(args.file_path)
        if place is None or place.kind is not FileKind.FILE or place.real.lower().endswith(SLOW):
            return False
        try:
            return os.stat(place.real, follow_symlinks=False).st_size <= QUICK_BYTES  # noqa: PTH116  # a hot line
        except OSError:
            return False

    def call_blocking(self, args: ReadInput, ctx: ToolContext) -> Output:
        with OpenFile.of_call(args.file_path, ctx, self._services) as file:
            output = _show(file, args, ctx)
            _remember(file, ctx)
        if ctx.files.add_part(file.path, (args.offset, args.limit, args.pages)):
            return output
        return stub(file, output, ctx) or output

    def output_from_data(self, data: Json) -> Output:
        match data:
            case {"file": {"content": str(content), **about}}:
                first = about.get("startLine")
                number = first if isinstance(first, int) else 1
                lines = (f"{count}\t{line}" for count, line in enumerate(content.split("\n"), number))
                return Output(text="\n".join(lines), data=data)
            case _:
                return super().output_from_data(data)


def kind_of(name: str, head: bytes) -> str:
    """The format of a file: image, pdf, notebook or text. Notebooks are JSON, so the name decides."""
    if head.startswith(b"%PDF-"):
        return "pdf"
    if name.lower().endswith(".ipynb"):
        return "notebook"
    return "image" if media_type(head) else "text"


def _remember(file: OpenFile, ctx: ToolContext) -> None:
    if file.source.size <= HELD_BYTES:
        ctx.files.record(file.path, file.stat, file.source.read(0, file.source.size))
    elif not ctx.files.is_unchanged(file.path, file.stat):
        ctx.files.note(file.path, file.stat, file.digest())


def _show(file: OpenFile, args: ReadInput, ctx: ToolContext) -> Output:
    kind = kind_of(args.file_path, file.source.read(0, HEAD))
    if args.pages and kind != "pdf":
        raise ToolError(f"{args.file_path!r} is no PDF, so it has no pages. Use offset and limit.")
    lines = LineRange(args.offset, args.limit)
    match kind:
        case "image":
            blocks, about, detail = rich_formats.show_image(file)
        case "pdf":
            blocks, about, detail = rich_formats.show_pdf(file, args.pages, ctx.abort)
        case "notebook":
            blocks, about, detail = rich_formats.show_notebook(file, lines)
        case _:
            blocks, about, detail = _show_text(file, lines)
    card = Card(title=f"Read {args.file_path}", detail=detail)
    data = {"type": kind, "file": about}
    if len(blocks) == 1 and isinstance(blocks[0], Text):
        return Output(text=blocks[0].text, data=data, card=card)
    return Output(blocks=blocks, data=data, card=card)


def _show_text(file: OpenFile, wanted: LineRange) -> "rich_formats.Shown":
    if file.source.size > MAX_TEXT_BYTES:  # numbering lines reads all of it
        raise ToolError(
            f"{file.name!r} has {file.source.size:,} bytes; {MAX_TEXT_BYTES:,} is the most. Use a program such as "
            "head, tail or sed."
        )
    encoding = detect_encoding(window for _, _, window in file.source.windows())
    if encoding is None:
        raise ToolError(
            f"{file.name!r} is a binary file of {file.source.size:,} bytes; Read shows text, images, PDFs and "
            "notebooks. Use a program such as file or xxd."
        )
    part = show_lines(file.source, encoding, wanted, file.name)
    about = {
        "filePath": file.absolute,
        "content": part.content,
        "numLines": part.lines,
        "startLine": wanted.first,
        "totalLines": part.total,
    }
    return (Text(part.text),), about, several(part.lines, "line")
