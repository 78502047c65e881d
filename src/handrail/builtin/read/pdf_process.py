"""Reads PDFs in a separate process."""

from handrail.builtin.support.reader_process import read_in_process
from handrail.conversation.blocks import Image, ResultBlock, Text
from handrail.tools.abort import AbortSignal

READER = "handrail.builtin.read.pdf"
HINT = "Ask for fewer pages, or use a program like pdftotext."


def show_in_process(data: bytes, pages: str, name: str, abort: AbortSignal) -> tuple[tuple[ResultBlock, ...], int, int]:
    """The blocks of the wanted pages, how many pages these are, and how many there are. An abort ends it at once."""
    answer = read_in_process(READER, (pages, name), data, name, abort, hint=HINT)
    return tuple(map(_block_from_json, answer["blocks"])), answer["shown"], answer["total"]


def _block_from_json(value: dict[str, str]) -> ResultBlock:
    return Text(value["text"]) if "text" in value else Image(value["data"], value["media_type"])
