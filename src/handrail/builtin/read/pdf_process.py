"""Reads PDFs in a separate process: a document can make the library hang, take all memory or crash."""

import json
import resource
import subprocess
import sys
from contextlib import suppress

from handrail.conversation.blocks import Image, ResultBlock, Text
from handrail.errors import ToolError
from handrail.tools.abort import AbortSignal

MAX_SECONDS = 30.0
MAX_HEAP = 2 << 30
START = (sys.executable, "-I", "-m", "handrail.builtin.read.pdf")


def show_in_process(data: bytes, pages: str, name: str, abort: AbortSignal) -> tuple[tuple[ResultBlock, ...], int, int]:
    """The blocks of the wanted pages, how many pages these are, and how many there are. An abort ends it at once."""
    with subprocess.Popen(  # noqa: S603  # no shell, and only our own arguments
        [*START, pages, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as process:
        abort.listen(lambda _reason: process.kill())
        if abort.aborted:  # it may have been set between the two looks of `listen`
            process.kill()
        try:
            _bound_memory(process.pid)
            out, _ = process.communicate(data, MAX_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ToolError(
                f"{name!r} takes more than {MAX_SECONDS:g} seconds to be shown. Ask for fewer pages, or use a program "
                "like pdftotext."
            ) from error
        finally:
            process.kill()
    if process.returncode:
        raise ToolError(f"{name!r} cannot be shown: reading it takes too much memory, or breaks off. Use a program.")
    answer = json.loads(out)
    if "problem" in answer:
        raise ToolError(answer["problem"])
    return tuple(map(_block_from_json, answer["blocks"])), answer["shown"], answer["total"]


def _bound_memory(process: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError):  # it has ended, or belongs to another user
            resource.prlimit(process, resource.RLIMIT_DATA, (MAX_HEAP, MAX_HEAP))


def _block_from_json(value: dict[str, str]) -> ResultBlock:
    return Text(value["text"]) if "text" in value else Image(value["data"], value["media_type"])
