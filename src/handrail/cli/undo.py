"""`handrail undo`: bring back what files held before an agent changed them."""

import argparse
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from handrail.conversation.plain import plain
from handrail.errors import SessionError, UndoError
from handrail.files.restore import RestoreResult, go_back, latest, number_of
from handrail.files.undo import INDEX, UndoEntry, UndoHistory, read
from handrail.session.state_folder import session_store, undo_folder
from handrail.tools.wording import several


def run(chosen: argparse.Namespace) -> int:
    """List the changes of a session, or go back before one of them."""
    folder = journal_of(chosen.session, undo_folder(os.environ), os.path.realpath(Path.cwd()))
    history = read(folder)
    if chosen.list:
        print(json.dumps(as_json(history)) if chosen.json else plain(table(history)))
        return 0
    to = number_of(history, chosen.to) if chosen.to else latest(history)
    if not to:
        raise UndoError(f"Session {history.session} has nothing left to undo. --to 1 goes back to its beginning.")
    done = go_back(folder, to, force=chosen.force)
    print_result(done, f"changed back to before change {to} of session {history.session}.", as_json=chosen.json)
    return 0


def print_result(done: RestoreResult, end: str, *, as_json: bool) -> None:
    """Print what was restored and removed, one line each, and how many there are; or one JSON object."""
    if as_json:
        print(json.dumps({"to": done.to, "restored": done.restored, "removed": done.removed}))
        return
    for verb, paths in (("restored", done.restored), ("removed", done.removed)):
        for path in paths:
            print(plain(f"{verb}  {path}"))
    print(f"{several(len(done.restored) + len(done.removed), 'file')} {end}")


def journal_of(session: str | None, parent: Path, cwd: str) -> Path:
    """The journal of a session by its id, a prefix of the id or its title; by default of this folder's newest."""
    if session is not None:
        for folder in (parent / Path(session).name, *_of_sessions(session, parent, cwd)):
            if (folder / INDEX).exists():
                return folder
        raise UndoError(
            f"There are no recorded changes of a session {session!r}. `handrail sessions list --all` lists them."
        )
    found = sorted(parent.glob(f"*/{INDEX}"), key=lambda index: index.stat().st_mtime, reverse=True)
    for index in found:
        if read(index.parent).cwd == cwd:
            return index.parent
    raise UndoError(
        f"There are no recorded changes from {cwd!r}. Name a session: `handrail sessions list --all` lists them."
    )


def _of_sessions(wanted: str, parent: Path, cwd: str) -> Iterator[Path]:
    """The journal folder of a session that is named by a prefix of its id or by its title, if there is one."""
    with suppress(SessionError):
        yield parent / session_store(os.environ).find(wanted, cwd).stem


def table(history: UndoHistory) -> str:
    """One line per change; a line for each named point before it."""
    named: dict[int, list[str]] = {}
    for name, number in history.points.items():
        named.setdefault(number, []).append(name)
    lines = [f"session {history.session} in {history.cwd}"]
    for entry in history.entries:
        lines += [f"-- {name}" for name in named.get(entry.number, ())]
        if entry in history.changes:
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.at))
            lines.append(f"{entry.number:>4}  {at}  {entry.tool:<12}  {kind(entry):<8}  {entry.path}")
    return "\n".join(lines)


def kind(entry: UndoEntry) -> str:
    """What a change did, in a word."""
    if entry.folder:
        return "folder"
    if entry.old is None:
        return "made"
    return "removed" if entry.new is None and not entry.torn else "changed"


def as_json(history: UndoHistory) -> dict[str, Any]:
    """The changes as JSON, for programs."""
    return {
        "session": history.session,
        "cwd": history.cwd,
        "points": history.points,
        "changes": [
            {
                "number": entry.number,
                "at": entry.at,
                "tool": entry.tool,
                "call": entry.call,
                "kind": kind(entry),
                "path": entry.path,
                "point": entry.point or None,
                "undoes_from": entry.back or None,
            }
            for entry in history.changes
        ],
    }
