"""Read: the text of a file, with line numbers."""

from pathlib import Path

from pydantic import Field

from handrail.errors import ToolError
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
        return Access.of(reads=[str((run.cwd / args.file_path).resolve())])

    def summary(self, args: ReadInput) -> str:
        return f"Read({args.file_path})"

    def call_blocking(self, args: ReadInput, ctx: ToolContext) -> Output:
        path = ctx.cwd / args.file_path
        text = remembered(path, ctx)
        return Output(
            text=numbered(text, args, path),
            card=Card(title=f"Read {args.file_path}", detail=f"{text.count(chr(10)) + 1} lines"),
        )


def remembered(path: Path, ctx: ToolContext) -> str:
    """The file's text; that it was read is noted in the agent's memory."""
    if path.is_dir():
        raise ToolError(f"{str(path)!r} is a folder. Use Glob with the pattern '*' to list it.")
    try:
        stat = path.stat()
        if stat.st_size > MAX_FILE_BYTES:
            raise ToolError(f"{str(path)!r} has {stat.st_size:,} bytes, more than the {MAX_FILE_BYTES:,} Read takes.")
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise ToolError(f"{str(path)!r} does not exist. Use Glob to find it.") from error
    except OSError as error:
        raise ToolError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    if b"\0" in content[:8192]:
        raise ToolError(f"{str(path)!r} is a binary file of {stat.st_size:,} bytes; Read shows text only.")
    ctx.files.record(path.resolve(), stat, content)
    return content.decode("utf-8", "replace")


def numbered(text: str, args: ReadInput, path: Path) -> str:
    """`N<TAB>line` for the asked part, cut at a bound with a notice that comes first."""
    if not text:
        return f"{path} exists and is empty."
    lines = text.removesuffix("\n").split("\n")
    first = max(args.offset, 1)
    if first > len(lines):
        return f"{path} has {len(lines)} lines, so there is nothing from line {first} on."
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
        return f"PARTIAL: line {first} alone has {len(asked[0]):,} characters. It begins:\n{asked[0][:MAX_CHARS]}"
    notice = (
        f"PARTIAL: lines {first} to {first + len(shown) - 1} of {len(lines)}; read on with offset={first + len(shown)}."
    )
    return "\n".join([notice, *shown])
