"""Edit: replace text in a file and keep every other byte."""

from handrail.builtin.services import ToolServices
from handrail.builtin.support.file_changes import (
    access_to,
    diff_card,
    diff_text,
    known_digest,
    original,
    patch_data,
    refusal,
    write_change,
)
from handrail.builtin.support.places import place_of
from handrail.conversation.blocks import Json
from handrail.errors import ToolError
from handrail.files.diff import format_patch, make_hunks, split_lines
from handrail.files.find_text import MAX_COUNTED, TextMatches, find_text, one_line_end
from handrail.files.nearest_block import nearest_block
from handrail.files.paths import FileKind
from handrail.files.replace import TargetFile
from handrail.files.source import FileSource
from handrail.files.text import UTF8, Encoding, detect_encoding
from handrail.files.text_edits import TextEdits, make_edits
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import Refuse
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool
from handrail.tools.wording import several

NAMED_LINES = 10
MAX_PREVIEW = 20_000
EVERYWHERE = "every occurrence"


class EditInput(PlainInput):
    file_path: str = Field(description="The file to change.")
    old_string: str = Field(description="The text to replace; empty to make a new file.")
    new_string: str = Field(description="What stands there afterwards.")
    replace_all: bool = Field(default=False, description="Replace every occurrence.")


class Edit(Tool[EditInput]):
    name = "Edit"
    aliases = ("FileEdit", "FileEditTool", "edit_file")
    search_hint = "change replace modify text in file"
    input_model = EditInput
    subject = "file_path"
    always_load = True
    blocking = True
    tracks_files = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: EditInput, run: RunContext) -> Access:
        return access_to(args.file_path, run, self._services)

    def summary(self, args: EditInput) -> str:
        return f"Edit({args.file_path}){f', {EVERYWHERE}' if args.replace_all else ''}"

    def classifier_text(self, args: EditInput) -> str:
        return f"{args.file_path}: {args.new_string}"

    def use_card(self, partial: Json) -> Card:
        path, old, new = (partial.get(name) for name in ("file_path", "old_string", "new_string"))
        body = ""
        if isinstance(old, str) and isinstance(new, str) and len(old) + len(new) <= MAX_PREVIEW:
            body = format_patch(make_hunks(split_lines(old), split_lines(new)))
        return Card(title="Edit", detail=path if isinstance(path, str) else "", body=body, body_kind="diff")

    def tag(self, args: EditInput) -> str:
        return EVERYWHERE if args.replace_all else ""

    async def validate(self, args: EditInput, ctx: ToolContext) -> Refuse | None:
        place = place_of(args.file_path, ctx, self._services)
        if one_line_end(args.old_string) == one_line_end(args.new_string):
            only = "" if args.old_string == args.new_string else " but for line ends, which Edit keeps as they are"
            return Refuse(
                f"old_string and new_string are equal{only}. Nothing would change in {args.file_path!r}. "
                "Give the new text, or leave the file as it is."
            )
        if place.kind in (FileKind.MISSING, FileKind.LINK) and args.old_string:
            return Refuse(
                f"{args.file_path!r} does not exist, so there is nothing to replace. Look for it with Glob, or make it "
                "with Write."
            )
        return refusal(place, ctx.files)

    def call_blocking(self, args: EditInput, ctx: ToolContext) -> Output:
        with TargetFile(place_of(args.file_path, ctx, self._services)) as target:
            if not target.exists:
                return self._create(args, ctx, target)
            digest = known_digest(target, ctx.files)
            source = target.source
            encoding = encoding_of(source, args.file_path)
            found = places(source, encoding, args)
            edits = make_edits(source, encoding, found, (args.old_string, args.new_string), args.file_path)
            before = original(target, encoding)
            written = write_change(target, edits.pieces, digest, ctx, self._services, tool=self.name)
            return result(args, target, edits, found, before=before, notice=written.notice)

    def _create(self, args: EditInput, ctx: ToolContext, target: TargetFile) -> Output:
        if args.old_string:
            raise ToolError(
                f"{args.file_path!r} was removed just now. Make it anew with Write, or look for it with Glob."
            )
        content = UTF8.encode(args.new_string, args.file_path)
        edits = TextEdits(FileSource.of(b""), UTF8, [(0, 0)], [content])
        written = write_change(target, edits.pieces, "", ctx, self._services, tool=self.name)
        return result(args, target, edits, TextMatches([(0, 0)]), before=None, notice=written.notice)


def encoding_of(source: FileSource, name: str) -> Encoding:
    """
    The encoding of a text file.

    Raises:
        ToolError: it is not text.
    """
    encoding = detect_encoding(window for _, _, window in source.windows())
    if encoding is None:
        raise ToolError(f"{name!r} is a binary file of {source.size:,} bytes, and Edit changes text. Use a program.")
    return encoding


def places(source: FileSource, encoding: Encoding, args: EditInput) -> TextMatches:
    """
    The place of the edit, or all places with replace_all.

    Raises:
        ToolError: there is none, or there are several without replace_all.
    """
    name = args.file_path
    if not args.old_string:
        if source.size > len(encoding.mark):
            raise ToolError(f"{name!r} is not empty, but old_string is. Give the text to replace, or use Write.")
        return TextMatches([(source.size, source.size)])
    found = find_text(source, encoding, args.old_string, overlapping=not args.replace_all)
    if not found.spans:
        raise ToolError(not_found(source, encoding, args))
    if len(found.spans) > 1 and not args.replace_all:
        lines = ", ".join(map(str, TextEdits(source, encoding, found.spans, []).lines(NAMED_LINES)))
        more = ", ..." if len(found.spans) > NAMED_LINES else ""
        least = "at least " if len(found.spans) == MAX_COUNTED else ""
        raise ToolError(
            f"old_string occurs {least}{len(found.spans):,} times in {name!r} (lines {lines}{more}). Add neighbouring "
            "lines to old_string, or set replace_all."
        )
    return found


def not_found(source: FileSource, encoding: Encoding, args: EditInput) -> str:
    """The message about a text that is not in the file, which is as it was read: reading it again shows nothing new."""
    missing = f"old_string does not occur in {args.file_path!r}"
    if source.size <= len(encoding.mark):
        return f"{missing}: the file is empty. Leave old_string empty to give it its first text."
    if hint := nearest_block(source, encoding, args.old_string):
        return f"{missing}. Correct old_string.\n{hint}"
    return f"{missing}, and nothing like it does. The file is as you read it; search others with Grep."


def result(
    args: EditInput, target: TargetFile, edits: TextEdits, found: TextMatches, *, before: str | None, notice: str
) -> Output:
    """The result for the model, the user and programs."""
    patch, hidden = edits.patch()
    count = len(edits.spans)
    lines = [f"Edited {args.file_path}{f' at {count:,} places' if count > 1 else ''}."]
    if patch:
        lines = [f"{lines[0]} The change:", diff_text(patch)]
    if found.quotes:
        lines.append("Quotes of another shape stood in the file; its own shapes were kept.")
    if hidden:
        lines.append(f"Not shown: {several(hidden, 'more place')}.")
    data = {
        "filePath": target.place.absolute,
        "oldString": args.old_string,
        "newString": args.new_string,
        "originalFile": before,
        "structuredPatch": patch_data(patch),
        "userModified": False,
        "replaceAll": args.replace_all,
    }
    text = "\n".join(filter(None, [*lines, notice]))
    tag = several(count, "place") if args.replace_all else ""
    return Output(text=text, data=data, card=diff_card("Edit", args.file_path, patch, tag))
