"""Write: create or replace a whole file."""

from contextlib import suppress

from handrail.builtin.services import ToolServices
from handrail.builtin.support.file_changes import (
    MAX_COMPARED,
    access_to,
    diff_card,
    diff_for_question,
    known_digest,
    original,
    patch_data,
    refusal,
    write_change,
)
from handrail.builtin.support.places import place_of
from handrail.conversation.blocks import Json
from handrail.errors import ToolError
from handrail.files.diff import Hunk, make_hunks, split_lines
from handrail.files.replace import TargetFile
from handrail.files.source import FileSource
from handrail.files.text import UTF8, Encoding, detect_encoding
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import Refuse
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool
from handrail.tools.wording import several

MAX_CONTENT_CHARS = 50_000_000
MAX_COMPARED_BYTES = 8 * 1024 * 1024


class WriteInput(PlainInput):
    file_path: str = Field(description="The file to write.")
    content: str = Field(description="Everything that the file shall hold.")


class Write(Tool[WriteInput]):
    name = "Write"
    aliases = ("FileWrite", "FileWriteTool", "write_file")
    search_hint = "create make new file save text"
    input_model = WriteInput
    subject = "file_path"
    always_load = True
    blocking = True
    tracks_files = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: WriteInput, run: RunContext) -> Access:
        return access_to(args.file_path, run, self._services)

    def summary(self, args: WriteInput) -> str:
        return f"Write({args.file_path})"

    def classifier_text(self, args: WriteInput) -> str:
        return f"{args.file_path}: {args.content}"

    def use_card(self, partial: Json) -> Card:
        path, content = (partial.get(name) for name in ("file_path", "content"))
        detail = path if isinstance(path, str) else ""
        return Card(title="Write", detail=detail, body=content if isinstance(content, str) else "", body_kind="code")

    def change_preview(self, args: WriteInput, ctx: ToolContext) -> str:
        place = place_of(args.file_path, ctx, self._services)
        if len(args.content) > MAX_COMPARED:
            return ""
        with suppress(ToolError, OSError), TargetFile(place) as target:
            if not target.exists:
                return diff_for_question(make_hunks([], split_lines(args.content)))
            if target.source.size <= MAX_COMPARED:
                encoding = detect_encoding(window for _, _, window in target.source.windows()) or UTF8
                content = with_own_line_ends(args.content, target.source, encoding)
                return diff_for_question(compare(target.source, encoding, content))
        return ""

    async def validate(self, args: WriteInput, ctx: ToolContext) -> Refuse | None:
        if len(args.content) > MAX_CONTENT_CHARS:
            return Refuse(
                f"content has {len(args.content):,} characters; {MAX_CONTENT_CHARS:,} is the most for one call. Write "
                "the file in parts with a program."
            )
        return refusal(place_of(args.file_path, ctx, self._services), ctx.files)

    def call_blocking(self, args: WriteInput, ctx: ToolContext) -> Output:
        with TargetFile(place_of(args.file_path, ctx, self._services)) as target:
            digest, encoding, before, content = "", UTF8, None, args.content
            patch: list[Hunk] = []
            if target.exists:
                digest = known_digest(target, ctx.files)
                source = target.source
                encoding = detect_encoding(window for _, _, window in source.windows()) or UTF8
                content = with_own_line_ends(content, source, encoding)
                before = original(target, encoding)
                patch = compare(source, encoding, content)
            else:
                patch = make_hunks([], split_lines(content))
            data = encoding.mark + encoding.encode(content.removeprefix("\ufeff"), args.file_path)
            written = write_change(target, lambda: iter((data,)), digest, ctx, self._services, tool=self.name)
        return result(args, target, patch, before, encoding, update=bool(digest), notice=written.notice)


def with_own_line_ends(content: str, source: FileSource, encoding: Encoding) -> str:
    """The content with CRLF line ends if every line of the old file has them."""
    lines = pairs = 0
    half = ""
    for _, _, window in source.windows():
        text = half + encoding.decode(window)
        half = "\r" if text.endswith("\r") else ""
        lines += text.count("\n")
        pairs += text.count("\r\n")
    return content.replace("\r\n", "\n").replace("\n", "\r\n") if pairs and lines == pairs else content


def compare(source: FileSource, encoding: Encoding, content: str) -> list[Hunk]:
    """The diff to the new content; empty for files that are too large to read."""
    if max(source.size, len(content)) > MAX_COMPARED_BYTES:
        return []
    return make_hunks(split_lines(encoding.decode(source.read(len(encoding.mark), source.size))), split_lines(content))


def result(
    args: WriteInput,
    target: TargetFile,
    patch: list[Hunk],
    before: str | None,
    encoding: Encoding,
    *,
    update: bool,
    notice: str,
) -> Output:
    """The result for the model, the user and programs."""
    lines = args.content.count("\n") + (not args.content.endswith("\n") and bool(args.content))
    kept = "" if encoding == UTF8 else f" Its encoding, {encoding.shown}, was kept."
    text = f"{'Replaced' if update else 'Created'} {args.file_path} ({several(lines, 'line')}).{kept}"
    data = {
        "type": "update" if update else "create",
        "filePath": target.place.absolute,
        "content": args.content,
        "structuredPatch": patch_data(patch) if update else [],
        "originalFile": before,
    }
    return Output(
        text="\n".join(filter(None, [text, notice])), data=data, card=diff_card("Write", args.file_path, patch)
    )
