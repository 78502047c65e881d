"""Shows files that are not plain text: images, PDFs and notebooks."""

from typing import Any, TypeAlias

from handrail.builtin.read import images, notebook, pdf_process
from handrail.builtin.read.open_file import OpenFile
from handrail.builtin.read.text import LineRange
from handrail.conversation.blocks import ResultBlock, Text
from handrail.errors import ToolError
from handrail.tools.abort import AbortSignal
from handrail.tools.wording import several

MAX_PDF_BYTES = 100_000_000

Shown: TypeAlias = tuple[tuple[ResultBlock, ...], dict[str, Any], str]
"""(blocks for the model, the file as programs expect it, detail of the card)"""


def show_image(file: OpenFile) -> Shown:
    """The image, made smaller where it is too large."""
    picture = images.fit_image(_whole(file, images.MAX_FILE_BYTES), file.name)
    about = {
        "filePath": file.absolute,
        "base64": picture.block.data,
        "type": picture.block.media_type,
        "originalSize": file.source.size,
    }
    return (Text(picture.note), picture.block), about, "image"


def show_pdf(file: OpenFile, pages: str, abort: AbortSignal) -> Shown:
    """The wanted pages as text and pictures."""
    blocks, shown, total = pdf_process.show_in_process(_whole(file, MAX_PDF_BYTES), pages, file.name, abort)
    about = {
        "filePath": file.absolute,
        "content": _words(blocks),
        "originalSize": file.source.size,
        "numPages": shown,
        "totalPages": total,
    }
    return blocks, about, f"{shown} of {several(total, 'page')}"


def show_notebook(file: OpenFile, cells: LineRange) -> Shown:
    """The wanted cells with their outputs."""
    blocks, shown, total = notebook.show_notebook(_whole(file, notebook.MAX_FILE_BYTES), cells, file.name)
    about = {"filePath": file.absolute, "content": _words(blocks), "numCells": shown, "totalCells": total}
    return blocks, about, f"{shown} of {several(total, 'cell')}"


def _whole(file: OpenFile, bound: int) -> bytes:
    if file.source.size > bound:
        raise ToolError(
            f"{file.name!r} has {file.source.size:,} bytes; {bound:,} is the most for its kind. Use a program."
        )
    return file.source.read(0, file.source.size)


def _words(blocks: tuple[ResultBlock, ...]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text))
