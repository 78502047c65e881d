"""
Shows PDFs page by page: the text of each page and a picture of it.

    python -m handrail.builtin.read.pdf PAGES NAME < document.pdf
"""

import json
import sys
from base64 import b64encode
from typing import Any

from handrail.builtin.read import images
from handrail.builtin.read.text import MAX_BYTES as MAX_TEXT
from handrail.builtin.read.text import size
from handrail.conversation.blocks import Image, ResultBlock, Text
from handrail.errors import ToolError
from handrail.lazy import lazy_pattern

try:
    import pypdfium2

    WITH_PDFIUM = True
except ImportError:
    WITH_PDFIUM = False

MAX_UNASKED = 10
MAX_AT_ONCE = 20
MAX_PICTURES = 10_000_000
SIDE = 1_100
"""Pixels of the longer side of a page: fine print is readable, and a page costs about 1,200 tokens."""
RANGE = lazy_pattern(r"\s*(\d+)\s*(?:(-)\s*(\d*))?\s*")


def wanted_pages(pages: str, count: int, name: str) -> range:
    """The wanted pages, counted from 0."""
    if not pages:
        if count > MAX_UNASKED:
            raise ToolError(
                f"{name!r} has {count:,} pages. Say which, at most {MAX_AT_ONCE} at once, for example pages='1-5'."
            )
        return range(count)
    found = RANGE.fullmatch(pages)
    if not found:
        raise ToolError(f"pages is {pages!r}. Give one range, for example '3' or '1-5'.")
    first = int(found[1])
    last = int(found[3]) if found[3] else (count if found[2] else first)
    if not 1 <= first <= last or first > count:
        raise ToolError(f"pages is {pages!r}, but {name!r} has pages 1 to {count:,}. Ask for some of these.")
    last = min(last, count)
    if last - first + 1 > MAX_AT_ONCE:
        raise ToolError(f"pages is {pages!r}; {MAX_AT_ONCE} pages is the most for one call. Ask for fewer.")
    return range(first - 1, last)


def show_pdf(data: bytes, pages: str, name: str) -> tuple[tuple[ResultBlock, ...], int, int]:
    """
    The blocks of the wanted pages, how many pages these are, and how many there are. Not thread-safe.

    Raises:
        ToolError: it is broken or encrypted, or there are no such pages.
    """
    if not WITH_PDFIUM:
        raise ToolError(f"{name!r} is a PDF. Ask the user to install handrail[pdf], or use a program like pdftotext.")
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise ToolError(f"{name!r} is encrypted and needs a password. Ask the user for a copy.") from error
        raise ToolError(f"{name!r} is a broken PDF: {error}. Read another file.") from error
    try:
        wanted = wanted_pages(pages, len(document), name)
        return _blocks(document, wanted), len(wanted), len(document)
    finally:
        document.close()


def _blocks(document: Any, wanted: range) -> tuple[ResultBlock, ...]:
    blocks: list[ResultBlock] = []
    room, pictures = MAX_TEXT, MAX_PICTURES
    for number in wanted:
        head = f"Page {number + 1} of {len(document)}"
        try:
            page = document[number]
        except pypdfium2.PdfiumError:
            blocks.append(Text(f"{head} is broken."))
            continue
        try:
            text = _text(page)
            fits = size(text) <= room
            room -= size(text) if fits else 0
            blocks.append(Text(f"{head}:\n{text}" if fits else f"{head}: its text is left out, it was too much."))
            picture = _picture(page) if pictures > 0 else None
            if picture:
                pictures -= len(picture.data)
                blocks.append(picture)
        finally:
            page.close()
    return tuple(blocks)


def _text(page: Any) -> str:
    try:
        text_page = page.get_textpage()
    except pypdfium2.PdfiumError:
        return ""
    try:
        return str(text_page.get_text_bounded()).replace("\r\n", "\n").replace("\0", "").strip()
    finally:
        text_page.close()


def _picture(page: Any) -> Image | None:
    """The rendered page; None without Pillow."""
    if not images.WITH_PILLOW:
        return None
    longer = max(*page.get_size(), 1.0)
    try:
        bitmap = page.render(scale=SIDE / longer)
    except (pypdfium2.PdfiumError, ValueError):
        return None
    data, _, kind = images.encode_image(bitmap.to_pil().convert("RGB"))
    return Image(b64encode(data).decode(), kind)


def _block_to_json(block: ResultBlock) -> dict[str, str]:
    if isinstance(block, Text):
        return {"text": block.text}
    assert isinstance(block, Image)
    return {"data": block.data, "media_type": block.media_type}


def main() -> None:
    """Read a PDF from standard input and print its blocks as JSON."""
    answer: dict[str, Any]
    try:
        blocks, shown, total = show_pdf(sys.stdin.buffer.read(), sys.argv[1], sys.argv[2])
        answer = {"blocks": [_block_to_json(block) for block in blocks], "shown": shown, "total": total}
    except ToolError as error:
        answer = {"problem": str(error)}
    print(json.dumps(answer))  # noqa: T201


if __name__ == "__main__":
    main()
