"""
Restores files to a point of an undo journal.

Each file gets its content from before the first change since that point. If another program changed one of the files
meanwhile, nothing is restored unless it is forced. Restoring is itself recorded in the journal.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from handrail.errors import ToolError, UndoError
from handrail.files.copying import digest
from handrail.files.journal import FileState, Note
from handrail.files.paths import FileKind, Place
from handrail.files.replace import TEMP_END, TargetFile
from handrail.files.source import FileSource
from handrail.files.undo import INDEX, Undo, UndoEntry, UndoHistory, read
from handrail.records import record


@record
class RestoreStep:
    """One file and its wanted state. `known`: hashes of states that the journal recorded; "" = no file."""

    path: str
    want: FileState | None
    known: frozenset[str]
    torn: bool = False
    """The last change may have stopped half-way, so the content is unknown."""


@record
class RestoreResult:
    """The restored files, and the files and folders that were removed."""

    to: int
    restored: tuple[str, ...]
    removed: tuple[str, ...]


def plan(history: UndoHistory, to: int) -> list[RestoreStep]:
    """The state of each file before change number `to`."""
    first: dict[str, UndoEntry] = {}
    last: dict[str, UndoEntry] = {}
    for entry in history.changes:
        if entry.number >= to and not entry.folder:
            first.setdefault(entry.path, entry)
            last[entry.path] = entry
    return [
        # a kill may have come between the journal's last word and the change itself
        RestoreStep(path, first[path].old, frozenset(s.digest if s else "" for s in (entry.new, entry.old)), entry.torn)
        for path, entry in last.items()
    ]


def go_back_to_message(folder: Path, message_id: str) -> RestoreResult:
    """Restore the files of a session to what they held before a message of the user; raises UndoError."""
    return go_back(folder, number_of(read(folder), message_id))


def number_of(history: UndoHistory, name: str) -> int:
    """The number of the first change after a point, given by number or name."""
    if name in history.points:
        return history.points[name]
    if name.isdecimal() and 1 <= int(name) <= len(history.entries):
        return int(name)
    raise UndoError(f"{name!r} is not a point of session {history.session}. `handrail undo --list` shows them.")


def latest(history: UndoHistory) -> int:
    """The point of a plain undo: before the last prompt whose changes are not undone yet. 0 = none."""
    number = len(history.entries)
    while number and (history.entries[number - 1].back or history.entries[number - 1] not in history.changes):
        entry = history.entries[number - 1]
        number = entry.back - 1 if entry.back else number - 1
    if not number:
        return 0
    group = _group(history.entries[number - 1])
    while number > 1 and _group(history.entries[number - 2]) == group:
        number -= 1
    return number


def latest_undone(history: UndoHistory) -> int:
    """The point of a redo: before the last undo that still holds. 0 = there is none, or files were changed since."""
    undone: list[int] = []
    before: UndoEntry | None = None
    for entry in history.changes:
        if not entry.back:
            undone = []
        elif before is None or before.back != entry.back:  # the first change of one undo or redo
            at = undone.index(entry.back) if entry.back in undone else None
            undone = [*undone, entry.number] if at is None else undone[:at]
        before = entry
    return undone[-1] if undone else 0


def _group(entry: UndoEntry) -> tuple[str, str]:
    return (entry.point, "") if entry.point else ("", entry.call or str(entry.number))


def go_back(folder: Path, to: int, *, force: bool = False, by: str = "undo") -> RestoreResult:
    """
    Restore all files to their state before change number `to`. `by` is what the journal names as the cause.

    Raises:
        UndoError: another program changed a file since, or its content is not kept. Nothing was restored.
        ToolError: a file cannot be written. Those before it are restored; going back again does the rest.
    """
    sweep(folder)
    history = read(folder)
    steps = plan(history, to)
    todo: list[tuple[RestoreStep, str]] = []
    problems: list[str] = []
    for step in steps:
        present, problem = _present(step.path)
        if not problem and present == (step.want.digest if step.want else ""):
            continue
        if not problem and not force and not step.torn and present not in step.known:
            problem = "was changed since"
        if not problem and step.want is not None:
            problem = _kept_problem(folder, step.want)
        if problem:
            problems.append(f"{step.path} {problem}")
        else:
            todo.append((step, present))
    if problems:
        raise UndoError(
            f"Nothing was done: {'; '.join(problems[:10])}. "
            + ("" if force else "Look at it, and use --force to go back all the same.")
        )
    undo, note = Undo(folder, back=to), Note(by)
    restored: list[str] = []
    removed: list[str] = []
    for step, present in todo:
        _apply(step, present, undo, note)
        (removed if step.want is None else restored).append(step.path)
    removed += _remove_folders(history, to, undo, note)
    return RestoreResult(to, tuple(restored), tuple(removed))


def _place(path: str) -> Place:
    return Place(path, path, path, kind=FileKind.FILE)


def _present(path: str) -> tuple[str, str]:
    """(hash of the present content, "" if there is no file; why it is unknown)"""
    try:
        with TargetFile(_place(path)) as target:
            return (target.digest() if target.exists else ""), ""
    except ToolError as error:
        return "", f"cannot be looked at: {error}"


def _kept_problem(folder: Path, want: FileState) -> str:
    try:
        descriptor = Undo(folder).open_content(want.digest)
    except OSError:
        return "held something that is no longer kept"
    try:
        return "" if digest(descriptor) == want.digest else "held something whose kept copy is damaged"
    finally:
        os.close(descriptor)


def _apply(step: RestoreStep, present: str, undo: Undo, note: Note) -> None:
    with TargetFile(_place(step.path)) as target:
        if step.want is None:
            target.remove(present, undo, note)
            return
        descriptor = undo.open_content(step.want.digest)
        try:
            source = FileSource(descriptor, step.want.size)
            target.write(source.pieces, present, undo, note, step.want.mode)
        finally:
            os.close(descriptor)


def _remove_folders(history: UndoHistory, to: int, undo: Undo, note: Note) -> Iterable[str]:
    """Remove the empty folders that were created since."""
    for entry in reversed(history.changes):
        if entry.number >= to and entry.folder:
            with suppress(OSError):
                if any(Path(entry.path).iterdir()):
                    continue
                undo.folder_changed(entry.path, note, made=False)
                Path(entry.path).rmdir()
                yield entry.path


def sweep(folder: Path, *, process: int = 0) -> list[str]:
    """
    Remove temporary files that killed processes left, or take them into the journal if they hold old content.

    `process`: only those of this one, which is known to be gone. Returns the paths.
    """
    removed: list[str] = []
    for entry in read(folder).entries if (folder / INDEX).exists() else ():
        ours = entry.temp.endswith(TEMP_END) and "/" not in entry.temp
        gone = entry.process == process if process else not _alive(entry.process)
        if not ours or entry.void or not gone:
            continue
        beside = Path(entry.path).with_name(entry.temp)
        with suppress(OSError):
            kept = entry.old and folder / "content" / entry.old.digest
            if kept and not kept.exists() and _present(str(beside))[0] == kept.name:
                beside.rename(kept)
            else:
                beside.unlink()
            removed.append(str(beside))
    return removed


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True
