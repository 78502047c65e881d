"""
The folder of a batch: one line per attempt that ended, the plan of what there is to do, and a lock.

    attempts.jsonl  a line is flushed to disk before an attempt begins, so that one that was cut off is known
    results.jsonl   a line is flushed to disk when an attempt has ended; half a line is no result
    plan.json       which cells there are, by their place in the table, with the newest key of each
    lock            held by the one process that works in the folder
    work            where the working copies are, while it runs
    cassettes/      the answers of models, if they are recorded
    claims/         which worker of a cluster began which attempt, while it runs

A folder may come from others: links and pipes under these names are refused, and lines that are no results passed over.
A cell whose last line is an error of the infrastructure is not finished: the next run tries it again.
"""

import fcntl
import json
import os
import stat
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from handrail.batch.cells import Cell, CellAttempt
from handrail.batch.outcome import CellStatus
from handrail.batch.seal import Seal
from handrail.errors import BatchError, HandrailError
from handrail.records import record

VERSION = 1


@record
class CellResult:
    """One line of results: the cell by its place, what came of it, and what it took."""

    key: str
    task: str
    model: str
    settings: str
    trial: int
    status: str
    why: str
    tags: tuple[str, ...] = ()
    seconds: float = 0.0
    turns: int = 0
    dollars: float | None = None
    """None = the price of an answer is not known."""
    denials: int = 0
    unasked: int = 0
    """Those of the denials that were questions with no one there to answer."""
    attempts: int = 1
    """The number of the attempt that ended so; earlier ones were ended by the infrastructure or cut off."""
    lost_dollars: float = 0.0
    """What the earlier attempts cost, as far as that is known."""
    unpriced_attempts: int = 0
    """Those of the earlier attempts whose cost is not known."""
    session: str = ""
    text: str = ""
    """What the check said last, or what the error was."""
    finished: float = 0.0

    @property
    def place(self) -> tuple[str, str, str, int]:
        """Its place in the table, as that of its cell."""
        return self.task, self.model, self.settings, self.trial

    @property
    def is_final(self) -> bool:
        """Whether the cell is finished."""
        return self.status != CellStatus.INFRASTRUCTURE.value


STATUSES = frozenset(each.value for each in CellStatus)
MAX_AMOUNT = 1e12
NAMES = frozenset(each.name for each in fields(CellResult))
RESULT = TypeAdapter(CellResult)


class BatchFolder:
    """The folder of a batch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results_file = path / "results.jsonl"
        self.attempts_file = path / "attempts.jsonl"
        self.cassettes = path / "cassettes"
        self.claims = path / "claims"
        self.work_note = path / "work"
        self._lock_file = path / "lock"
        self._plan_file = path / "plan.json"
        self._plan_draft = path / "plan.draft"  # only the holder of the lock writes it

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Make the folder, and work in it alone; HandrailError if another process does."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._refuse_links_and_pipes()
        descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise HandrailError(
                    f"another handrail batch run works in {self.path}. Wait for its end, or give another --out."
                ) from error
            yield
        finally:
            os.close(descriptor)

    def _refuse_links_and_pipes(self) -> None:
        """What is written would go elsewhere, and reading might never end."""
        files = (
            self.results_file,
            self.attempts_file,
            self._plan_file,
            self._plan_draft,
            self._lock_file,
            self.work_note,
        )
        folders = (self.cassettes, self.claims)
        for path, is_usual in [*((file, stat.S_ISREG) for file in files), *((each, stat.S_ISDIR) for each in folders)]:
            with suppress(FileNotFoundError):
                if not is_usual(path.lstat().st_mode):
                    raise HandrailError(f"{path} is not what a batch makes there. Remove it, or give another folder.")

    def read_results(self) -> tuple[dict[str, CellResult], int]:
        """The last result of each key, and the number of lines that are none, such as half ones."""
        found: dict[str, CellResult] = {}
        damaged = 0
        for line in filter(bytes.strip, self._result_lines()):
            if (result := _from_json(line)) is None:
                damaged += 1
            elif result.is_final or result.key not in found or not found[result.key].is_final:
                found[result.key] = result
        return found, damaged

    def _result_lines(self) -> list[bytes]:
        self._refuse_links_and_pipes()
        return _lines(self.results_file)

    def foreign_lines(self, seal: Seal) -> list[int]:
        """The numbers of the lines with results that do not carry the seal."""
        lines = enumerate(self._result_lines(), 1)
        return [number for number, line in lines if _from_json(line) and not seal.fits(_json_object(line) or {})]

    def count_attempts(self) -> Counter[str]:
        """How many attempts began, by the key of their cell."""
        values = filter(None, map(_json_object, _lines(self.attempts_file)))
        return Counter(value["key"] for value in values if isinstance(value.get("key"), str))

    def read_plan(self) -> dict[tuple[str, str, str, int], str]:
        """The newest key of each place in the table. Raises HandrailError if the file is damaged or newer."""
        try:
            content = json.loads(self._plan_file.read_text("utf-8"))
            version = int(content["version"])
            cells = {(str(a), str(b), str(c), int(d)): str(key) for a, b, c, d, key in content["cells"]}
        except FileNotFoundError:
            return {}
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
            raise HandrailError(f"{self._plan_file} cannot be read ({error}). Give another folder.") from error
        if version > VERSION:
            raise HandrailError(f"{self._plan_file} was written by a newer handrail. Go on with that one.")
        return cells

    def write_plan(self, cells: Iterable[Cell]) -> None:
        """Add cells to the plan; a cell whose content changed takes the place of the old one."""
        plan = self.read_plan() | {cell.place: cell.key for cell in cells}
        with self._plan_draft.open("w", encoding="utf-8") as file:
            json.dump({"version": VERSION, "cells": [[*place, key] for place, key in plan.items()]}, file)
            file.flush()
            os.fsync(file.fileno())
        self._plan_draft.replace(self._plan_file)


class LineWriter:
    """Appends lines, each flushed to disk before the next. A line that does not fit on the disk is taken back."""

    def __init__(self, file: Path) -> None:
        self._file = file
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(file, flags, 0o666)
        parent = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.fsync(parent)  # after a power cut, a new file is there only with its name
        os.close(parent)
        end = os.fstat(self._descriptor).st_size
        if end and os.pread(self._descriptor, 1, end - 1) != b"\n":
            self._append(b"\n")  # half a line of a process that was killed

    def write(self, value: Mapping[str, Any]) -> None:
        """Keep a JSON object; BatchError if the disk does not take it."""
        self._append(json.dumps(value).encode() + b"\n")

    def _append(self, line: bytes) -> None:
        before = os.fstat(self._descriptor).st_size
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, before)
            raise BatchError(
                f"{self._file} cannot be written: {error.strerror}. Make room, and start the same command again: "
                "it goes on with what is missing."
            ) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class AttemptLog:
    """Keeps which attempts begin and how they end, and adds up what the earlier ones of each cell cost."""

    def __init__(self, folder: BatchFolder, seal: Seal) -> None:
        self._seal = seal
        self._last, _ = folder.read_results()
        self._begun = folder.count_attempts()
        self._attempts = LineWriter(folder.attempts_file)
        self._results = LineWriter(folder.results_file)

    def begin(self, cell: Cell) -> CellAttempt:
        """The next attempt of a cell; it is on disk when this returns. BatchError if the disk does not take it."""
        key = cell.key
        number = max(self._begun[key], self._last[key].attempts if key in self._last else 0) + 1
        attempt = CellAttempt(cell, number, str(uuid.uuid4()))
        self._attempts.write(
            {
                "version": VERSION,
                "key": key,
                "task": cell.task.id,
                "attempt": number,
                "session": attempt.session,
                "started": now(),
            }
        )
        self._begun[key] = number
        return attempt

    def end(self, result: CellResult) -> CellResult:
        """Keep how the newest attempt of a cell ended; the result that is written, with what the earlier ones cost."""
        before = self._last.get(result.key)
        written = replace(result, unpriced_attempts=result.attempts - 1)
        if before:
            unpriced = before.unpriced_attempts + (before.dollars is None)
            cut_off = result.attempts - before.attempts - 1
            lost = before.lost_dollars + (before.dollars or 0.0)
            written = replace(result, lost_dollars=lost, unpriced_attempts=unpriced + cut_off)
        self._results.write(self._seal.add({"version": VERSION, **asdict(written)}))
        self._last[result.key] = written
        return written

    def close(self) -> None:
        """Close both files."""
        self._attempts.close()
        self._results.close()


def now() -> float:
    """The time of day, to the millisecond."""
    return round(time.time(), 3)


def _lines(file: Path) -> list[bytes]:
    try:
        return file.read_bytes().splitlines()
    except FileNotFoundError:
        return []


def _json_object(line: bytes) -> dict[str, Any] | None:
    """The object of a line; None if it is none, or of a newer version."""
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.get("version") == VERSION else None


def _from_json(line: bytes) -> CellResult | None:
    """The result of a line; None if it is none, or of a newer version."""
    if (value := _json_object(line)) is None:
        return None
    try:
        found = RESULT.validate_python({name: each for name, each in value.items() if name in NAMES})
    except (ValueError, RecursionError):
        return None
    return found if is_sound(found) else None


def is_sound(result: CellResult) -> bool:
    """Whether a status is one, and amounts can be such: what others wrote must not spoil what is added up."""
    counts = (result.turns, result.denials, result.unasked, result.attempts - 1, result.unpriced_attempts)
    amounts = (result.seconds, result.dollars or 0.0, result.lost_dollars, result.finished, *counts)
    return result.status in STATUSES and all(0 <= amount <= MAX_AMOUNT for amount in amounts)


def missing_cells(cells: Sequence[Cell], results: dict[str, CellResult]) -> list[Cell]:
    """The cells that have no final result of their place in the table."""
    finished = {(key, each.place) for key, each in results.items() if each.is_final}
    return [cell for cell in cells if (cell.key, cell.place) not in finished]
