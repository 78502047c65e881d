"""
A list of all sessions that does not read them again: one row for each file, good as long as the file is unchanged.

It is only a memory. Whoever deletes it loses nothing but the time to read the files once more.
"""

import json
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from handrail.records import record

HEAD = 65_536
TITLE = 120
COLUMNS = "path, id, cwd, title, model, created, updated, size, mtime_ns"
SCHEMA = f"CREATE TABLE IF NOT EXISTS sessions_1 ({COLUMNS}, PRIMARY KEY (path))"


@record
class Entry:
    """What a list shows of one session. `updated` is in seconds since 1970; `title` is its name or first prompt."""

    path: str
    id: str
    cwd: str
    title: str
    model: str
    created: str
    updated: float
    size: int
    mtime_ns: int


def entries(folder: Path) -> list[Entry]:
    """All sessions below the folder, the newest first."""
    files = _files(folder)
    if not files:
        return []
    try:
        found = _remembered(folder, files)
    except (sqlite3.Error, OSError):  # broken or not writable: it is only a memory
        found = [_looked_at(path, *facts) for path, facts in files.items()]
    return sorted(found, key=lambda entry: entry.updated, reverse=True)


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    with suppress(FileNotFoundError):
        for place in os.scandir(folder):
            if not place.is_dir(follow_symlinks=False):
                continue
            for file in os.scandir(place.path):
                if file.name.endswith(".jsonl") and file.is_file(follow_symlinks=False):
                    facts = file.stat()
                    found[file.path] = (facts.st_size, facts.st_mtime_ns)
    return found


def _remembered(folder: Path, files: dict[str, tuple[int, int]]) -> list[Entry]:
    path = folder / "index.db"
    try:
        return _from(path, files)
    except sqlite3.DatabaseError:
        path.unlink(missing_ok=True)
        return _from(path, files)


def _from(path: Path, files: dict[str, tuple[int, int]]) -> list[Entry]:
    os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC | os.O_RDWR, 0o600))
    with closing(sqlite3.connect(path, timeout=1.0)) as base, base:
        base.execute(SCHEMA)
        rows = {row[0]: Entry(*row) for row in base.execute(f"SELECT {COLUMNS} FROM sessions_1")}  # noqa: S608  # ours
        fresh = [_looked_at(name, *facts) for name, facts in files.items() if not _good(rows.get(name), facts)]
        base.executemany(
            f"INSERT OR REPLACE INTO sessions_1 VALUES ({','.join('?' * 9)})",  # noqa: S608  # question marks
            [entry._values(entry) for entry in fresh],  # type: ignore[attr-defined]  # every record has it
        )
        base.executemany("DELETE FROM sessions_1 WHERE path = ?", [(name,) for name in rows.keys() - files.keys()])
    known = rows | {entry.path: entry for entry in fresh}
    return [known[name] for name in files]


def _good(entry: Entry | None, facts: tuple[int, int]) -> bool:
    return entry is not None and (entry.size, entry.mtime_ns) == facts


def _looked_at(path: str, size: int, mtime_ns: int) -> Entry:
    """What the first lines tell."""
    facts: dict[str, str] = {}
    with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123  # ten thousand of them
        for line in file.read(HEAD).splitlines():
            with suppress(ValueError, AttributeError, KeyError, TypeError, RecursionError):
                _note(facts, json.loads(line))
    name = Path(path).stem
    title = " ".join(facts.get("title", facts.get("prompt", "")).split())[:TITLE]
    return Entry(
        path,
        name,
        facts.get("cwd", ""),
        title,
        facts.get("model", ""),
        facts.get("created", ""),
        mtime_ns / 1e9,
        size,
        mtime_ns,
    )


def _note(facts: dict[str, str], line: dict[str, Any]) -> None:
    for name, key in (("cwd", "cwd"), ("created", "timestamp")):
        if isinstance(line.get(key), str):
            facts.setdefault(name, line[key])
    match line["type"]:
        case "user" if not line.get("isMeta") and not line.get("isSidechain"):
            content = line["message"]["content"]
            texts = [content] if isinstance(content, str) else [each.get("text", "") for each in content]
            prompt = next((text for text in texts if text), "")
            if prompt:
                facts.setdefault("prompt", prompt)
        case "assistant":
            facts["model"] = line["message"]["model"]
        case "summary":
            facts["title"] = line["summary"]
        case "handrail":
            facts |= {name: line[name] for name in ("title", "model") if line.get(name)}
        case _:
            pass
