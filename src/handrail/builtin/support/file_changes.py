"""Code that Edit, Write and NotebookEdit share: read-before-write checks, writing and results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handrail.builtin.services import ToolServices
from handrail.errors import ToolError
from handrail.files import read_check
from handrail.files.copying import Pieces
from handrail.files.diff import MAX_LINE_CHARS, MAX_LINES, Hunk, count_changes, format_patch, limit_patch
from handrail.files.journal import Note, WriteResult
from handrail.files.memory import FileMemory
from handrail.files.paths import FileKind, Place, resolve
from handrail.files.replace import KINDS, TargetFile
from handrail.files.text import Encoding
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.permission import Refuse

MAX_FILE_BYTES = 1024 * 1024 * 1024
MAX_ORIGINAL_BYTES = 1024 * 1024
MAX_COMPARED = 200_000
"""Bytes of a file, and characters of its new content, that a question compares."""
MAX_SHOWN_LINES = 40
MAX_SHOWN_CHARS = 500


def access_to(spelling: str, run: RunContext, services: ToolServices) -> Access:
    """The access of a write. A file with hard links is reachable by other paths, so its change runs alone."""
    place = resolve(spelling, str(run.cwd), services.home)
    return Access.of(writes=spelling, width="named" if place.links <= 1 else "exclusive")


def refusal(place: Place, files: FileMemory) -> Refuse | None:
    """Why a file may not be changed, as far as that is known without opening it."""
    if place.kind in KINDS:
        return Refuse(f"{place.spelling!r} {KINDS[place.kind]}, not a file. Name a file.")
    if place.kind is FileKind.FILE and files.get(Path(place.real)) is None:
        return Refuse(read_check.not_read(place.spelling))
    return None


def known_digest(target: TargetFile, files: FileMemory) -> str:
    """The hash of the present content, which this agent has read."""
    assert target.stat is not None
    if target.stat.st_size > MAX_FILE_BYTES:
        raise ToolError(
            f"{target.shown!r} has {target.stat.st_size:,} bytes; {MAX_FILE_BYTES:,} is the most that can be changed "
            "here. Use a program."
        )
    return read_check.known_digest(target, files)


def write_change(
    target: TargetFile, pieces: Pieces, digest: str, ctx: ToolContext, services: ToolServices, *, tool: str
) -> WriteResult:
    """Write the file, keep its old content for undo, and remember it as read."""
    if ctx.abort.aborted:  # a thread cannot be stopped from outside
        raise ToolError(f"The call was stopped before {target.shown!r} was changed. Repeat it if it is still wanted.")
    written = target.write(pieces, digest, services.undo, Note(tool, ctx.use.id))
    ctx.files.note(Path(target.place.real), written.stat, written.digest)
    return written


def original(target: TargetFile, encoding: Encoding) -> str | None:
    """The text before the change, for programs; None if it is too large."""
    source = target.source
    if source.size > MAX_ORIGINAL_BYTES:
        return None
    return encoding.decode(source.read(len(encoding.mark), source.size))


def handed_around(text: str) -> str | None:
    """The text, for programs; None if it is too large."""
    return text if len(text) <= MAX_ORIGINAL_BYTES else None


def patch_data(patch: Sequence[Hunk]) -> list[dict[str, Any]]:
    """The patch as clients expect it."""
    return [hunk.as_json() for hunk in limit_patch(patch)]


def diff_for_question(patch: Sequence[Hunk]) -> str:
    """The change as a diff; empty if that would leave out a part of what is written, which is then shown by itself."""
    lines = [line for hunk in patch for line in hunk.lines]
    has_cut = any(line.startswith("+") and len(line) > len("+") + MAX_LINE_CHARS for line in lines)
    return "" if has_cut or len(lines) + len(patch) > MAX_LINES else format_patch(patch)


def diff_card(name: str, spelling: str, patch: Sequence[Hunk], tag: str = "") -> Card:
    """The change as the user sees it."""
    (added, removed), body = count_changes(patch), format_patch(patch)
    return Card(title=f"{name} {spelling}", detail=f"+{added} -{removed}", body=body, body_kind="diff", tag=tag)


def diff_text(patch: Sequence[Hunk]) -> str:
    """The change as the model sees it: a diff, cut after `MAX_SHOWN_LINES` lines."""
    lines = [
        line if len(line) <= MAX_SHOWN_CHARS else f"{line[:MAX_SHOWN_CHARS]}..."
        for line in format_patch(patch).split("\n")
    ]
    return "\n".join(lines if len(lines) <= MAX_SHOWN_LINES else [*lines[:MAX_SHOWN_LINES], "..."])
