"""Read: the text of a file, with line numbers."""

import os
import stat
from pathlib import Path

from pydantic import Field

from handrail.errors import ToolError
from handrail.files.paths import real_path
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.schema import Input
from handrail.tools.tool import Tool

MAX_CHARS = 100_000
MAX_FILE_BYTES = 50_000_000


class ReadInput(Input):
    file_path: str = Field(description="The file to read; relative paths start at the working folder.")
    offset: int = Field(default=1, ge=0, description="First line to show, counted from 1.")
    limit: int | None = Field(default=None, gt=0, description="How many lines to show.")


class Read(Tool[ReadInput]):
    name = "Read"
    aliases = ("FileRead", "FileReadTool", "read_file", "NotebookRead")
    search_hint = "show open view file contents text lines"
    input_model = ReadInput
    max_result_chars = None
    always_load = True
    blocking = True

    def is_read_only(self, args: ReadInput) -> bool:
        return True

    def is_concurrency_safe(self, args: ReadInput) -> bool:
        return True

    def access(self, args: ReadInput, run: RunContext) -> Access:
        return Access.of(reads=[str(real_path(run.cwd, args.file_path))])

    def summary(self, args: ReadInput) -> str:
        return f"Read({args.file_path})"

    def call_blocking(self, args: ReadInput, ctx: ToolContext) -> Output:
        path = real_path(ctx.cwd, args.file_path)
        found, content = whole(path, args.file_path)
        if b"\0" in content[:8192]:
            raise ToolError(f"{args.file_path!r} is a binary file of {len(content):,} bytes; Read shows text only.")
        ctx.files.record(path, found, content)
        lines = content.decode("utf-8", "replace").removesuffix("\n").split("\n") if content else []
        card = Card(title=f"Read {args.file_path}", detail=f"{len(lines)} lines")
        return Output(text=numbered(lines, args), card=card)


def whole(path: Path, name: str) -> tuple[os.stat_result, bytes]:
    """The content of a regular file and how it looked then. Nothing else is opened: a pipe or device may never end."""
    try:
        _check_kind(path.stat(), name)
        # somebody may put a pipe in its place now: opening it would wait for a writer
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor, not a path
            found = os.fstat(descriptor)
            _check_kind(found, name)
            content = file.read(MAX_FILE_BYTES + 1) or b""  # None = a special file with nothing to say now
    except FileNotFoundError as error:
        raise ToolError(f"{name!r} does not exist. Use Glob to find it.") from error
    except OSError as error:
        raise ToolError(f"{name!r} cannot be read: {error.strerror}. Read another file, or ask the user.") from error
    except ValueError as error:
        raise ToolError(
            f"{name!r} cannot be a path: it holds what no file name can hold. Give the name of a file."
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise ToolError(f"{name!r} has more than {MAX_FILE_BYTES:,} bytes, too many for Read. Search in it instead.")
    return found, content


def _check_kind(found: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ToolError(f"{name!r} is a folder. Use Glob with the pattern '*' to list it.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{name!r} is a pipe, socket or device. Read takes regular files only.")


def numbered(lines: list[str], args: ReadInput) -> str:
    """`N<TAB>line` for the asked part, cut at a bound with a notice that comes first."""
    if not lines:
        return f"{args.file_path} exists and is empty."
    first = max(args.offset, 1)
    if first > len(lines):
        return f"{args.file_path} has {len(lines)} lines, so there is nothing from line {first} on."
    asked = lines[first - 1 : first - 1 + args.limit if args.limit else None]
    shown: list[str] = []
    size = 0
    for number, line in enumerate(asked, first):
        entry = f"{number}\t{line}"
        size += len(entry) + 1
        if size > MAX_CHARS:
            break
        shown.append(entry)
    if len(shown) == len(asked):
        return "\n".join(shown)
    if not shown:
        return (
            f"PARTIAL: line {first} alone has {len(asked[0]):,} characters, of which {MAX_CHARS:,} follow. "
            f"Read the lines after it with offset={first + 1}.\n{first}\t{asked[0][:MAX_CHARS]}"
        )
    upto = first + len(shown) - 1
    return "\n".join([f"PARTIAL: lines {first} to {upto} of {len(lines)}; read on with offset={upto + 1}.", *shown])
