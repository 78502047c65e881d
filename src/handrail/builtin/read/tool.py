"""Read: what a file holds, in a form that a model can take in."""

import os
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from pydantic import Field

from handrail.builtin.read.formats import HEAD, kind_of
from handrail.builtin.read.open_file import OpenFile
from handrail.builtin.read.repeated_read import stub
from handrail.builtin.read.text import LineRange, show_lines
from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Json, ResultBlock, Text
from handrail.errors import ToolError
from handrail.files.paths import FileKind
from handrail.files.text import detect_encoding
from handrail.tools.abort import AbortSignal
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.schema import Input
from handrail.tools.tool import Tool
from handrail.tools.wording import several

HELD_BYTES = 4_000_000
QUICK_BYTES = 64 * 1024
MAX_PDF_BYTES = 100_000_000
MAX_TEXT_BYTES = 4 << 30
SLOW = (".pdf", ".ipynb", ".png", ".jpg", ".jpeg", ".gif", ".webp")


class ReadInput(Input):
    file_path: str = Field(description="The file to read; relative paths start at the working folder.")
    offset: int = Field(default=1, ge=0, description="First line, counted from 1; in a notebook, first cell.")
    limit: int | None = Field(default=None, gt=0, description="How many of them.")
    pages: str = Field(default="", max_length=50, description="Pages of a PDF: 3 or 1-5; at most 20.")


class Read(Tool[ReadInput]):
    name = "Read"
    aliases = ("FileRead", "FileReadTool", "read_file", "NotebookRead")
    search_hint = "show open view file contents text image pdf"
    input_model = ReadInput
    subject = "file_path"
    max_result_chars = None
    always_load = True
    blocking = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def is_read_only(self, args: ReadInput) -> bool:
        return True

    def is_concurrency_safe(self, args: ReadInput) -> bool:
        return True

    def access(self, args: ReadInput, run: RunContext) -> Access:
        return Access.of(reads=args.file_path, filtered=True)

    def summary(self, args: ReadInput) -> str:
        return f"Read({args.file_path})"

    def group_card(self, inputs: Sequence[Json]) -> Card | None:
        return Card(title="Read", detail=several(len(inputs), "file"), body="\n".join(map(path_of, inputs)))

    def is_quick(self, args: ReadInput, ctx: ToolContext) -> bool:
        """A small text: threads that take turns with the event loop cost more than reading it."""
        place = ctx.decided_place(args.file_path)
        if place is None or place.kind is not FileKind.FILE or place.real.lower().endswith(SLOW):
            return False
        try:
            return os.stat(place.real, follow_symlinks=False).st_size <= QUICK_BYTES  # noqa: PTH116  # a hot line
        except OSError:
            return False

    def call_blocking(self, args: ReadInput, ctx: ToolContext) -> Output:
        with OpenFile.of_call(args.file_path, ctx, self._services) as file:
            head = file.source.read(0, HEAD)
            read_before = ctx.files.get(file.path) is not None
            special = FORMATS.get(kind_of(args.file_path, head))
            if args.pages and special is not _pdf:
                raise ToolError(f"{args.file_path!r} is no PDF, so it has no pages. Use offset and limit.")
            output = special(file, args, ctx.abort) if special else _text(file, args)
            _remember(file, ctx)
        if read_before:
            return stub(file, output, ctx) or output
        return output


def path_of(raw: Json) -> str:
    """The file of a call, as far as it is known."""
    return str(raw.get("file_path", "?"))


def _remember(file: OpenFile, ctx: ToolContext) -> None:
    if file.source.size <= HELD_BYTES:
        ctx.files.record(file.path, file.stat, file.source.read(0, file.source.size))
    elif not ctx.files.is_unchanged(file.path, file.stat):
        ctx.files.note(file.path, file.stat, file.digest())


def _text(file: OpenFile, args: ReadInput) -> Output:
    if file.source.size > MAX_TEXT_BYTES:  # all of it is looked at, to number its lines
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
    part = show_lines(file.source, encoding, LineRange(args.offset, args.limit), args.file_path)
    first = max(args.offset, 1)
    about = {
        "filePath": file.absolute,
        "content": part.content,
        "numLines": part.lines,
        "startLine": first,
        "totalLines": part.total,
    }
    return _output(args, (Text(part.text),), {"type": "text", "file": about}, several(part.lines, "line"))


def _image(file: OpenFile, args: ReadInput, _abort: AbortSignal) -> Output:
    images = _module("images")
    picture = images.fit_image(_whole(file, images.MAX_FILE_BYTES), args.file_path)
    about = {
        "filePath": file.absolute,
        "base64": picture.block.data,
        "type": picture.block.media_type,
        "originalSize": file.source.size,
    }
    return _output(args, (Text(picture.note), picture.block), {"type": "image", "file": about}, "image")


def _pdf(file: OpenFile, args: ReadInput, abort: AbortSignal) -> Output:
    document = _whole(file, MAX_PDF_BYTES)
    blocks, shown, total = _module("pdf_process").show_in_process(document, args.pages, args.file_path, abort)
    about = {
        "filePath": file.absolute,
        "content": _words(blocks),
        "originalSize": file.source.size,
        "numPages": shown,
        "totalPages": total,
    }
    return _output(args, blocks, {"type": "pdf", "file": about}, f"{shown} of {several(total, 'page')}")


def _notebook(file: OpenFile, args: ReadInput, _abort: AbortSignal) -> Output:
    notebook = _module("notebook")
    content = _whole(file, notebook.MAX_FILE_BYTES)
    blocks, shown, total = notebook.show_notebook(content, LineRange(args.offset, args.limit), args.file_path)
    about = {"filePath": file.absolute, "content": _words(blocks), "numCells": shown, "totalCells": total}
    return _output(args, blocks, {"type": "notebook", "file": about}, f"{shown} of {several(total, 'cell')}")


FORMATS = {"image": _image, "pdf": _pdf, "notebook": _notebook}


def _module(name: str) -> ModuleType:
    """What reads a format costs its import when a file of that format is read."""
    return import_module(f"handrail.builtin.read.{name}")


def _whole(file: OpenFile, bound: int) -> bytes:
    if file.source.size > bound:
        raise ToolError(
            f"{file.name!r} has {file.source.size:,} bytes; {bound:,} is the most for its kind. Use a program."
        )
    return file.source.read(0, file.source.size)


def _words(blocks: tuple[ResultBlock, ...]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def _output(args: ReadInput, blocks: tuple[ResultBlock, ...], data: Any, detail: str) -> Output:
    card = Card(title=f"Read {args.file_path}", detail=detail)
    if len(blocks) == 1 and isinstance(blocks[0], Text):
        return Output(text=blocks[0].text, data=data, card=card)
    return Output(blocks=blocks, data=data, card=card)
