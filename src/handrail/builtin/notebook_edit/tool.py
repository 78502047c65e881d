"""NotebookEdit: change one cell of a notebook and keep every other character."""

from contextlib import suppress
from typing import Literal

from handrail.builtin.notebook_edit.cells import CellType, EditedNotebook, NotebookText
from handrail.builtin.read.notebook import MAX_FILE_BYTES, cells_of, language_of
from handrail.builtin.services import ToolServices
from handrail.builtin.support.file_changes import (
    MAX_COMPARED,
    access_to,
    diff_card,
    diff_for_question,
    handed_around,
    known_digest,
    patch_data,
    refusal,
    write_change,
)
from handrail.builtin.support.places import place_of
from handrail.conversation.blocks import Json
from handrail.errors import ToolError
from handrail.files.diff import make_hunks, split_lines
from handrail.files.paths import FileKind
from handrail.files.replace import TargetFile
from handrail.files.text import UTF8
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import Refuse
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool

MARK = b"\xef\xbb\xbf"
DONE = {"replace": "Replaced", "insert": "Inserted", "delete": "Deleted"}


class NotebookEditInput(PlainInput):
    notebook_path: str = Field(description="The .ipynb file.")
    new_source: str = Field(description="The cell's new text; not used by delete.")
    cell_id: str = Field(default="", description="The cell; with insert, the new one comes after it, else first.")
    cell_type: CellType | None = Field(default=None, description="Needed to insert.")
    edit_mode: Literal["replace", "insert", "delete"] = Field(default="replace", description="What to do.")


class NotebookEdit(Tool[NotebookEditInput]):
    name = "NotebookEdit"
    search_hint = "change jupyter ipynb cell code markdown"
    input_model = NotebookEditInput
    subject = "notebook_path"
    should_defer = True
    blocking = True
    tracks_files = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: NotebookEditInput, run: RunContext) -> Access:
        return access_to(args.notebook_path, run, self._services)

    def summary(self, args: NotebookEditInput) -> str:
        return f"NotebookEdit({args.notebook_path})"

    def classifier_text(self, args: NotebookEditInput) -> str:
        return f"{args.notebook_path}: {args.new_source}"

    def use_card(self, partial: Json) -> Card:
        path, source = (partial.get(name) for name in ("notebook_path", "new_source"))
        detail = path if isinstance(path, str) else ""
        return Card(title=self.name, detail=detail, body=source if isinstance(source, str) else "", body_kind="code")

    def change_preview(self, args: NotebookEditInput, ctx: ToolContext) -> str:
        place = place_of(args.notebook_path, ctx, self._services)
        with suppress(ToolError, OSError), TargetFile(place) as target:
            if target.exists and max(target.source.size, len(args.new_source)) <= MAX_COMPARED:
                _, text, _ = _read_notebook(target, args.notebook_path)
                done = apply_edit(NotebookText(text, args.notebook_path), args)
                return diff_for_question(make_hunks(split_lines(text), split_lines(done.text)))
        return ""

    async def validate(self, args: NotebookEditInput, ctx: ToolContext) -> Refuse | None:
        place = place_of(args.notebook_path, ctx, self._services)
        if not args.notebook_path.lower().endswith(".ipynb"):
            return Refuse(f"{args.notebook_path!r} is not a .ipynb file. Use Edit for other files.")
        if args.edit_mode == "insert" and args.cell_type is None:
            return Refuse("To insert a cell, give its cell_type: code or markdown.")
        if args.edit_mode != "insert" and not args.cell_id:
            return Refuse(f"cell_id is missing: say which cell to {args.edit_mode}. Read shows the ids.")
        if place.kind in (FileKind.MISSING, FileKind.LINK):
            return Refuse(f"{args.notebook_path!r} does not exist. Look for it with Glob, or make it with Write.")
        return refusal(place, ctx.files)

    def call_blocking(self, args: NotebookEditInput, ctx: ToolContext) -> Output:
        with TargetFile(place_of(args.notebook_path, ctx, self._services)) as target:
            if not target.exists:
                raise ToolError(f"{args.notebook_path!r} was removed just now. Look for it with Glob.")
            digest = known_digest(target, ctx.files)
            mark, text, language = _read_notebook(target, args.notebook_path)
            done = apply_edit(NotebookText(text, args.notebook_path), args)
            after = mark + UTF8.encode(done.text, args.notebook_path)
            written = write_change(target, lambda: iter((after,)), digest, ctx, self._services, tool=self.name)
        return result(args, target, (text, language), done, written.notice)


def _read_notebook(target: TargetFile, name: str) -> tuple[bytes, str, str]:
    """The byte order mark of a notebook, if it has one, its text, and the language of its code."""
    source = target.source
    if source.size > MAX_FILE_BYTES:
        raise ToolError(f"{target.shown!r} has {source.size:,} bytes; {MAX_FILE_BYTES:,} is the most. Use a program.")
    content = source.read(0, source.size)
    notebook, _ = cells_of(content, name)
    mark = MARK if content.startswith(MARK) else b""
    return mark, content.removeprefix(mark).decode(), language_of(notebook)


def apply_edit(sheet: NotebookText, args: NotebookEditInput) -> EditedNotebook:
    """
    Apply the edit to the notebook.

    Raises:
        ToolError: there is no such cell.
    """
    index = sheet.find(args.cell_id) if args.cell_id else None
    if args.edit_mode == "insert":
        return sheet.insert(index, args.new_source, args.cell_type or "code")
    assert index is not None
    if args.edit_mode == "delete":
        return sheet.delete(index)
    return sheet.replace(index, args.new_source, args.cell_type)


def result(
    args: NotebookEditInput, target: TargetFile, old: tuple[str, str], done: EditedNotebook, notice: str
) -> Output:
    """The result for the model, the user and programs. `old`: the text before, and the language of its code."""
    before, language = old
    patch = make_hunks(split_lines(before), split_lines(done.text))
    text = f"{DONE[args.edit_mode]} cell {done.cell} ({done.cell_type}) of {args.notebook_path}."
    data = {
        "notebook_path": target.place.absolute,
        "cell_id": done.cell,
        "cell_type": done.cell_type,
        "language": language if done.cell_type == "code" else "markdown",
        "edit_mode": args.edit_mode,
        "new_source": args.new_source,
        "original_file": handed_around(before),
        "updated_file": handed_around(done.text),
        "structuredPatch": patch_data(patch),
    }
    card = diff_card("NotebookEdit", args.notebook_path, patch)
    return Output(text="\n".join(filter(None, [text, notice])), data=data, card=card)
