"""
An index of all transcripts: one row for each file, valid as long as the file is unchanged.

It is only a cache. Deleting it costs no more than the time to read the files again.
"""

import json
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from handrail.records import record
from handrail.transcripts.log import transcript_files

HEAD = 65_536
LONG_HEAD = 16_000_000
TAIL = 16_384
TITLE = 120
COLUMNS = "path, id, cwd, title, model, created, updated, size, mtime_ns, outcome, answers, dollars"
SCHEMA = f"CREATE TABLE IF NOT EXISTS sessions_2 ({COLUMNS}, PRIMARY KEY (path))"


@record
class TranscriptEntry:
    """
    What lists show of one transcript. `updated` is in seconds since 1970; `title` is its name or first prompt.

    `outcome` is how its last prompt ended, `answers` and `dollars` are what the model gave and cost until then; empty
    or None if that is not known.
    """

    path: str
    id: str
    cwd: str
    title: str
    model: str
    created: str
    updated: float
    size: int
    mtime_ns: int
    outcome: str = ""
    answers: int | None = None
    dollars: float | None = None


def entries(folder: Path) -> list[TranscriptEntry]:
    """All transcripts below the folder, the newest first."""
    files = {path: (facts.st_size, facts.st_mtime_ns) for path, facts in transcript_files(folder) if facts.st_size}
    if not files:
        return []
    try:
        found = _read_index(folder, files)
    except (sqlite3.Error, OSError, UnicodeError):  # broken, not writable, an odd name: it is only a cache
        found = [_read_entry(path, *facts) for path, facts in files.items()]
    return sorted(found, key=lambda entry: entry.updated, reverse=True)


def _read_index(folder: Path, files: dict[str, tuple[int, int]]) -> list[TranscriptEntry]:
    path = folder / "index.db"
    try:
        return _update_index(path, files)
    except sqlite3.OperationalError:
        raise  # another process is busy with it, or the disk is full
    except sqlite3.DatabaseError:
        path.unlink(missing_ok=True)
        return _update_index(path, files)


def _update_index(path: Path, files: dict[str, tuple[int, int]]) -> list[TranscriptEntry]:
    os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC | os.O_RDWR, 0o600))
    with closing(sqlite3.connect(path, timeout=1.0)) as base, base:
        base.execute(SCHEMA)
        rows = {row[0]: TranscriptEntry(*row) for row in base.execute(f"SELECT {COLUMNS} FROM sessions_2")}  # noqa: S608  # ours
        known = {row.path: (row.size, row.mtime_ns) for row in rows.values()}
        fresh = [_read_entry(name, *facts) for name, facts in files.items() if known.get(name) != facts]
        gone = rows.keys() - files.keys()
        if fresh or gone:  # reading alone need not wait for other processes
            base.executemany(
                f"INSERT OR REPLACE INTO sessions_2 VALUES ({','.join('?' * 12)})",  # noqa: S608  # question marks
                [entry._values(entry) for entry in fresh],  # type: ignore[attr-defined]  # every record has it
            )
            base.executemany("DELETE FROM sessions_2 WHERE path = ?", [(name,) for name in gone])
    rows |= {entry.path: entry for entry in fresh}
    return [rows[name] for name in files]


def _read_entry(path: str, size: int, mtime_ns: int) -> TranscriptEntry:
    """The entry from the first lines, and the title and model from the last ones."""
    facts: dict[str, Any] = {}
    with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123  # ten thousand of them
        _collect_all(facts, file.read(HEAD))
        if size > HEAD and "prompt" not in facts:  # it may hold pictures
            file.seek(0)
            _collect_all(facts, file.read(LONG_HEAD))
        if size > HEAD:
            file.seek(max(HEAD, size - TAIL))
            late: dict[str, Any] = {}
            _collect_all(late, file.read(TAIL))
            facts.pop("ended", None)
            facts |= {name: late[name] for name in ("title", "model", "ended") if name in late}
    name = Path(path).stem
    ended = facts.get("ended") or {}
    # a database cannot store lone surrogates
    facts = {name: text.encode("utf-8", "replace").decode() for name, text in facts.items() if isinstance(text, str)}
    title = " ".join(facts.get("title", facts.get("prompt", "")).split())[:TITLE]
    cwd, model, created = (facts.get(key, "") for key in ("cwd", "model", "created"))
    end = (ended.get("outcome", ""), ended.get("answers"), ended.get("dollars"))
    return TranscriptEntry(path, name, cwd, title, model, created, mtime_ns / 1e9, size, mtime_ns, *end)


def _collect_all(facts: dict[str, Any], lines: bytes) -> None:
    for line in lines.splitlines():
        with suppress(ValueError, AttributeError, KeyError, TypeError, RecursionError):
            _collect(facts, json.loads(line))


def _collect(facts: dict[str, Any], line: dict[str, Any]) -> None:
    for name, key in (("cwd", "cwd"), ("created", "timestamp")):
        if isinstance(line.get(key), str):
            facts.setdefault(name, line[key])
    match line["type"]:
        case "user" if not line.get("isMeta") and not line.get("isSidechain"):
            facts.pop("ended", None)
            content = line["message"]["content"]
            texts = [content] if isinstance(content, str) else [each.get("text", "") for each in content]
            prompt = next((text for text in texts if text and isinstance(text, str)), "")
            if prompt:
                facts.setdefault("prompt", prompt)
        case "assistant":
            facts["model"] = line["message"]["model"]
        case "summary":
            facts["title"] = line["summary"]
        case "handrail":
            facts |= {name: line[name] for name in ("title", "model", "prompt") if line.get(name)}
            if line["event"] == "ended" and not line.get("isSidechain"):
                so_far = line["session"]
                facts["ended"] = {
                    "outcome": str(line["why"]),
                    "answers": int(so_far["answers"]),
                    "dollars": None if so_far["dollars"] is None else float(so_far["dollars"]),
                }
        case _:
            pass
