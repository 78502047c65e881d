"""Runs a reader of foreign data in a process of its own: the data can make a library hang, take all memory or crash."""

import json
import resource
import subprocess
import sys
from contextlib import suppress
from typing import Any

from handrail.errors import ToolError
from handrail.tools.abort import AbortSignal

MAX_SECONDS = 30.0
MAX_HEAP = 2 << 30
START = (sys.executable, "-I", "-m")


def read_in_process(
    module: str, arguments: tuple[str, ...], data: bytes, name: str, abort: AbortSignal, *, hint: str
) -> dict[str, Any]:
    """
    What `python -m module arguments` prints as JSON when it is given the data. An abort ends it at once.

    Raises ToolError if it takes too long (with the hint what else to do) or breaks off, or says what is wrong.
    """
    with subprocess.Popen(  # noqa: S603  # no shell, and only our own arguments
        [*START, module, *arguments],
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
            raise ToolError(f"{name!r} takes more than {MAX_SECONDS:g} seconds to be shown. {hint}") from error
        finally:
            process.kill()
    if process.returncode:
        raise ToolError(f"{name!r} cannot be shown: reading it takes too much memory, or breaks off. Use a program.")
    answer: dict[str, Any] = json.loads(out)
    if "problem" in answer:
        raise ToolError(answer["problem"])
    return answer


def _bound_memory(process: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError):  # it has ended, or belongs to another user
            resource.prlimit(process, resource.RLIMIT_DATA, (MAX_HEAP, MAX_HEAP))
