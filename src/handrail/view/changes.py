"""What a session changed in files, from its undo journal: each change, and a diff for each file."""

from contextlib import suppress
from pathlib import Path

from typing_extensions import TypedDict

from handrail.files.copying import digest
from handrail.files.diff import count_changes, format_patch, limit_patch, make_hunks, split_lines
from handrail.files.journal import FileState
from handrail.files.undo import UndoEntry, UndoHistory
from handrail.view.model import ChangeData

MAX_BYTES = 2_000_000


class FileDiff(TypedDict):
    """How a file differs from what it was before the session. `note` says why there is no diff."""

    path: str
    kind: str
    first: int
    """The number of its first change: undo goes back before it."""
    added: int
    removed: int
    diff: str
    note: str


def change_data(history: UndoHistory) -> list[ChangeData]:
    """The changes of a journal, in order, without those that brought files back."""
    undone = undone_numbers(history)
    return [
        ChangeData(
            number=entry.number,
            at=entry.at,
            tool=entry.tool,
            call=entry.call,
            path=entry.path,
            kind=change_kind(entry),
            undone=entry.number in undone,
        )
        for entry in history.changes
        if not entry.back
    ]


def undone_numbers(history: UndoHistory) -> frozenset[int]:
    """The changes that an undo took back; a redo is an undo of that."""
    undone: set[int] = set()
    taken: dict[int, set[int]] = {}
    for entry in history.changes:
        if not entry.back:
            continue
        later = {each.number for each in history.changes if entry.back <= each.number < entry.number}
        brought = {number for back, numbers in taken.items() if back in later for number in numbers}
        plain = {each.number for each in history.changes if each.number in later and not each.back}
        undone = (undone | plain) - brought
        taken[entry.number] = plain
    return frozenset(undone)


def change_kind(entry: UndoEntry) -> str:
    """What a change did, in a word."""
    if entry.folder:
        return "folder"
    if entry.old is None:
        return "made"
    return "removed" if entry.new is None and not entry.torn else "changed"


def file_diffs(folder: Path, history: UndoHistory) -> list[FileDiff]:
    """A diff for each file that changed, from before its first change to after its last."""
    first: dict[str, UndoEntry] = {}
    last: dict[str, UndoEntry] = {}
    for entry in history.changes:
        if not entry.folder:
            first.setdefault(entry.path, entry)
            last[entry.path] = entry
    return [diff_of(folder, first[path], last[path]) for path in first]


def diff_of(folder: Path, first: UndoEntry, last: UndoEntry) -> FileDiff:
    """The diff of one file between the state before one change and that after another."""
    old, new = content_of(folder, first.old), content_after(folder, last)
    kind = "unchanged" if first.old == last.new else "made" if first.old is None else "changed"
    found = FileDiff(
        path=first.path,
        kind="removed" if last.new is None and first.old is not None else kind,
        first=first.number,
        added=0,
        removed=0,
        diff="",
        note="",
    )
    if old is None or new is None:
        which = "before" if old is None else "after"
        found["note"] = f"what it held {which} is no longer kept, or is too large to show"
        return found
    if b"\0" in old or b"\0" in new:
        found["note"] = f"a binary file: {len(old):,} bytes before, {len(new):,} after"
        return found
    patch = make_hunks(lines_of(old), lines_of(new))
    found["added"], found["removed"] = count_changes(patch)
    found["diff"] = format_patch(limit_patch(patch))
    return found


def lines_of(data: bytes) -> list[str]:
    """A file's content as lines to compare."""
    return split_lines(data.decode("utf-8", "replace"))


def content_of(folder: Path, state: FileState | None) -> bytes | None:
    """What a file held in a state that the journal kept; empty if there was no file, None if it is gone."""
    if state is None:
        return b""
    if state.size > MAX_BYTES:
        return None
    with suppress(OSError):
        return (folder / "content" / state.digest).read_bytes()
    return None


def content_after(folder: Path, entry: UndoEntry) -> bytes | None:
    """What a file held after a change: as it was kept before a later one, or as it lies there now."""
    state = entry.new
    kept = content_of(folder, state)
    if kept is not None or state is None or state.size > MAX_BYTES:
        return kept
    with suppress(OSError), open(entry.path, "rb") as file:  # noqa: PTH123  # its descriptor is hashed
        if digest(file.fileno()) == state.digest:
            file.seek(0)
            return file.read()
    return None
