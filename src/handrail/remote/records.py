"""
What is kept of runs, for their owner only, so that it outlives the process.

    <folder>/<id>.json       the record: who asked for what, where, and how it stands; replaced as a whole
    <folder>/<id>.jsonl      the lines of the run, each written before it is sent
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

from handrail.errors import HandrailError
from handrail.files.private_folder import make_private_folder
from handrail.records import record

VERSION = 1
RunStatus: TypeAlias = Literal["waiting", "running", "finished", "stopped", "interrupted"]
STATUSES: tuple[RunStatus, ...] = ("waiting", "running", "finished", "stopped", "interrupted")
HIDDEN = frozenset({"partial", "prompt", "prompts", "is_said"})
OPEN = frozenset({"waiting", "running"})


@record
class ServedRunRecord:
    """
    One run. `id` is also that of its session.

        waiting -> running -> finished        it has an answer, or failed; `result` says which
                           -> stopped         a client stopped it
                           -> interrupted     the server ended; it can go on
    """

    id: str
    folder: str
    policy: str
    prompt: str
    """What is to be said next: the first prompt, or one that goes on."""
    status: RunStatus
    created: float
    path: str = ""
    client: str = ""
    """Who asked for it; empty = a schedule of the person whose server it is."""
    origin: Mapping[str, str] = field(default_factory=dict)
    started: float = 0.0
    ended: float = 0.0
    prompts: int = 1
    """How often something was said to it."""
    is_said: bool = False
    """Whether its session holds the prompt."""
    restarts: int = 0
    """How often it went on after the server had ended."""
    partial: bool = False
    """Whether its lines tell of each piece of an answer."""
    problem: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether it still runs, or waits to."""
        return self.status in OPEN

    def as_json(self) -> dict[str, Any]:
        """The run as clients see it."""
        shown = asdict(self)
        return {name: value for name, value in shown.items() if name not in HIDDEN} | {"prompt": self.prompt[:500]}


class RunStore:
    """The folder of records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def events_file(self, run_id: str) -> Path:
        """Where the lines of a run are."""
        return self.folder / f"{run_id}.jsonl"

    def write(self, run: ServedRunRecord) -> None:
        """Keep a record in place of the one before."""
        write_private(self.folder / f"{run.id}.json", {"version": VERSION, **asdict(run)})

    def read(self) -> Iterator[ServedRunRecord | str]:
        """Every record, the oldest first; a text says why one cannot be read, and it stays where it is."""
        found: list[ServedRunRecord] = []
        for file in sorted(self.folder.glob("*.json")) if self.folder.is_dir() else ():
            try:
                found.append(_from_json(json.loads(file.read_text("utf-8"))))
            except (OSError, ValueError, LookupError, TypeError) as error:
                yield f"{file} cannot be read and is left out ({error}). Repair it, or move it away."
        yield from sorted(found, key=lambda run: run.created)

    def remove(self, run_id: str) -> None:
        """Forget a run; its session stays."""
        for file in (self.folder / f"{run_id}.json", self.events_file(run_id)):
            file.unlink(missing_ok=True)


def write_private(file: Path, value: Mapping[str, Any]) -> None:
    """Replace a file by this JSON, whole or not at all; HandrailError if it cannot be written."""
    draft = file.with_suffix(".draft")
    try:
        make_private_folder(file.parent)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            json.dump(value, out)
        draft.replace(file)
    except OSError as error:
        raise HandrailError(f"{file} cannot be written: {error.strerror}. Nothing was changed.") from error


NAMES = tuple(each.name for each in fields(ServedRunRecord))


def _from_json(kept: dict[str, Any]) -> ServedRunRecord:
    if kept["version"] > VERSION:
        raise ValueError("a newer handrail wrote it")
    run = ServedRunRecord(**{name: kept[name] for name in NAMES})
    if run.status not in STATUSES or not isinstance(run.created, int | float):
        raise TypeError(f"its status is {run.status!r}")
    return run
