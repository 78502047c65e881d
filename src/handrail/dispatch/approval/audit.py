"""
The audit log: one JSON line for every decision, also for calls that were allowed without a question.

    <folder>/<start>-<process>-<random>.jsonl      one file for each run, for its owner only

A line is written before the call runs, so it survives a crash of the process. A write error is logged once: a record
that cannot be written never holds up a decision.
"""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.conversation.logger import get_logger
from handrail.conversation.redact import Redactor, as_entry, telling_name
from handrail.files.private_folder import make_private_folder
from handrail.lazy import lazy
from handrail.permissions.case import Case
from handrail.permissions.facts import Facts
from handrail.permissions.file_access import FileEffect
from handrail.records import record
from handrail.tools.permission import Decision, Opinion, Strength, Update, Verdict
from handrail.tools.request import CallRequest

if TYPE_CHECKING:
    import pydantic_core
else:
    pydantic_core = lazy("pydantic_core")  # 25 ms, and hardly any line needs it

log = get_logger(__name__)

FORMAT = 1
MAX_FILE = 16_000_000
MAX_FOLDER = 256_000_000
MAX_FILES = 1_000
ROOM_DELAY = 0.5
"""Seconds after the first decision, at most, until old files are looked at."""
MAX_TEXT = 16_000
MAX_INPUT = 64_000


@record
class AuditEntry:
    """One decision, as it is recorded."""

    request: CallRequest
    case: Case
    decision: Decision
    by: str
    """The layer that decided, or the handler that answered."""
    judging: float = 0.0
    """Seconds until the policy had decided."""
    waiting: float = 0.0
    """Seconds until an answer came."""
    ended: str = ""
    """Why there is no answer: cancelled, or the failure."""
    asked: bool = False
    """Whether the policy left the decision to a question."""
    updates: tuple[Update, ...] = ()
    problems: tuple[str, ...] = ()
    classified: str = ""
    """The text that a classifier allowed, for later review."""


class Audit:
    """Writes entries to a file of its own, created with the first entry. `origin`: who started the run from afar."""

    def __init__(
        self,
        folder: Path,
        redactor: Redactor,
        *,
        session: str = "",
        origin: Mapping[str, str] | None = None,
        max_file: int = MAX_FILE,
        max_folder: int = MAX_FOLDER,
        now: Callable[[], float] = time.time,
    ) -> None:
        name = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(now()))}-{os.getpid()}-{os.urandom(3).hex()}"
        self.file = folder / f"{name}.jsonl"
        self._redactor = redactor
        self._session = session or name
        self._origin = {"origin": dict(origin)} if origin else {}
        self._max_file, self._max_folder = max_file, max_folder
        self._now = now
        self._known_clean = lru_cache(maxsize=2048)(lambda text: not redactor.spans(text))
        self._fd = -1
        self._size = 0
        self._complained = False
        self._room: threading.Thread | None = None
        self._room_due: asyncio.TimerHandle | None = None

    def write(self, entry: AuditEntry) -> None:
        """Record a decision. What goes wrong is logged once."""
        shown = self._line(entry)
        if not self._is_clean(entry, shown):
            shown = self._redactor.value(shown)
        line = encode_line(shown)
        try:
            self._append(line)
        except OSError as error:
            if not self._complained:
                log.warning(
                    "handrail: decisions are not recorded: %s cannot be written (%s)", self.file, error.strerror
                )
            self._complained = True

    def _is_clean(self, entry: AuditEntry, shown: Mapping[str, Any]) -> bool:
        """Whether an entry has no secrets, the common case: one check of all its texts is cheaper than one for each."""
        if self._redactor.patterns or not all(map(self._known_clean, common_texts(entry))):
            return False
        return not self._redactor.spans("\n".join(dict.fromkeys(own_texts(entry, shown))))  # a path is there five times

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._room_due is not None:
            self._room_due.cancel()
            self._room_due = None
            if self._room is None:
                self._make_room()
        if self._room is not None:
            self._room.join()
            self._room = None

    def _append(self, line: bytes) -> None:
        if self._fd < 0:
            self._open()
        elif self._size + len(line) > self._max_file:
            self.close()
            self.file.replace(self.file.with_suffix(".old.jsonl"))
            self._open()
        written = os.write(self._fd, line)
        if written < len(line):  # the disk is full: half a line would corrupt the file
            os.ftruncate(self._fd, self._size)
            raise OSError(0, "the disk is full")
        self._size += written

    def _open(self) -> None:
        make_private_folder(self.file.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self.file, flags, 0o600)
        self._size = os.fstat(self._fd).st_size
        # there may be a thousand files, and the first call should wait neither for that nor for the start of a thread
        self._room_due = asyncio.get_running_loop().call_later(ROOM_DELAY, self._start_making_room)

    def _start_making_room(self) -> None:
        self._room = threading.Thread(target=self._make_room, daemon=True)
        self._room.start()

    def _make_room(self) -> None:
        make_room(self.file, self._max_folder)

    def _line(self, entry: AuditEntry) -> dict[str, Any]:
        case, decision, policy, agent = entry.case, entry.decision, entry.case.policy, entry.request.ctx.agent
        line: dict[str, Any] = {
            "v": FORMAT,
            "at": self._now(),
            "session": self._session,
            **self._origin,
            "agent": agent.id,
            "call": case.use.id,
            "tool": case.use.name,
            "input": bound_input(case.use.input),
            "decision": entry.ended or VERDICTS[decision.verdict],
            "by": entry.by,
            "reason": decision.reason,
            "opinions": [opinion_json(each) for each in decision.opinions],
            "version": decision.version,
            "mode": policy.mode,
            "cwd": policy.cwd,
            "home": policy.home,
            "working_dirs": policy.working_dirs,
            "micros": [round(entry.judging * 1e6), round(entry.waiting * 1e6)],
        }
        if agent.path:
            line["agent_path"] = agent.path
        if policy.kept:
            line["kept"] = policy.kept
        if entry.asked:
            line["asked"] = True
        if files := case.files + case.named_files:
            line["places"] = [
                {"path": file.shown, "real": file.place.real if file.place else None, "access": EFFECTS[file.effect]}
                for file in files
            ]
        line["facts"] = facts_json(case.facts)
        if decision.updated_input is not None:
            line["ran"] = bound_input(decision.updated_input)
        if decision.remedy:
            line["remedy"] = decision.remedy
        if entry.updates:
            line["updates"] = entry.updates
        if entry.problems:
            line["problems"] = entry.problems
        if entry.classified:
            line["classified"] = entry.classified
        return line


# the values and names of members are properties in Python
VERDICTS = {verdict: verdict.value for verdict in Verdict}
STRENGTHS = {strength: strength.name.lower() for strength in Strength}
EFFECTS = {effect: effect.value for effect in FileEffect}
_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def encode_line(line: Mapping[str, Any]) -> bytes:
    try:
        return _ENCODE(line).encode() + b"\n"
    except (TypeError, ValueError):  # a value that only Python knows, infinity, or half a character
        return _encode_odd(line) + b"\n"


def _encode_odd(line: Mapping[str, Any]) -> bytes:
    try:
        return pydantic_core.to_json(line, inf_nan_mode="strings", fallback=str)
    except pydantic_core.PydanticSerializationError:  # invalid Unicode, which json.dumps escapes
        return json.dumps(line, default=str).encode()


def common_texts(entry: AuditEntry) -> list[str]:
    """The texts that many entries share: rules, reasons, the folder."""
    texts = [entry.case.policy.cwd, entry.decision.reason]
    for opinion in entry.decision.opinions:
        texts += (opinion.reason, opinion.source)
    return texts


def own_texts(entry: AuditEntry, shown: Mapping[str, Any]) -> list[str]:
    """The texts that only this entry has; inputs as they are shown, since they can be as long as a file."""
    facts = entry.case.facts
    texts = [entry.ended, entry.classified, facts.doubt, facts.check.reason, facts.subject, *facts.unmet]
    texts += (*facts.access.reaches, *facts.access.consults, *facts.access.may_reach)
    if facts.access.runs is not None:
        texts.append(facts.access.runs)
    for file in entry.case.files + entry.case.named_files:
        texts += (file.shown, file.place.real) if file.place else (file.shown,)
    for value in (shown["input"], shown.get("ran"), entry.updates, entry.problems, entry.decision.remedy):
        if value:
            collect_texts(value, texts)
    return texts


def texts_in(value: Any) -> list[str]:
    """Every text in a JSON value, as `collect_texts` finds them."""
    texts: list[str] = []
    collect_texts(value, texts)
    return texts


def collect_texts(value: Any, texts: list[str]) -> None:
    """Add every text in a JSON value, keys included; also with its key, if that may say that it is secret."""
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, dict | Mapping):
        for name, each in value.items():
            texts.append(str(name))
            if not isinstance(each, str):
                collect_texts(each, texts)
                continue
            texts.append(each)
            if shown := telling_name(str(name), value):
                texts.append(f'{as_entry(shown, each)}"')
    elif isinstance(value, list | tuple):
        for each in value:
            collect_texts(each, texts)


def opinion_json(opinion: Opinion) -> dict[str, str]:
    shown = {
        "layer": opinion.layer,
        "says": VERDICTS[opinion.verdict],
        "strength": STRENGTHS[opinion.strength],
        "reason": opinion.reason,
    }
    return shown | {"rule": opinion.source} if opinion.source else shown


def facts_json(facts: Facts) -> dict[str, Any]:
    """The facts about a call, so that the decision can be repeated."""
    shown: dict[str, Any] = {"read_only": facts.read_only}
    if declared := facts.access.as_json():
        if facts.access.runs is not None:
            declared["runs"] = shorten(facts.access.runs)
        shown["declares"] = declared
    if facts.subject:
        shown["subject"] = facts.subject
    if facts.destructive:
        shown["destructive"] = True
    if facts.needs_person:
        shown["needs_person"] = True
    if facts.doubt:
        shown["doubt"] = facts.doubt
    if facts.unmet:
        shown["unmet"] = facts.unmet
    if facts.mcp is not None:
        shown["mcp"] = [facts.mcp.server, facts.mcp.tool]
    if facts.check.verdict is not None:
        shown["check"] = [VERDICTS[facts.check.verdict], facts.check.reason]
    return shown


def bound_input(values: Mapping[str, Any]) -> Any:
    """The input with long values cut, such as the text of a file."""
    short = {name: shorten(value) for name, value in values.items()}
    if is_small(short) or len(json.dumps(short, default=str)) <= MAX_INPUT:
        return short
    return {name: shorten(value, 1_000) for name, value in short.items() if isinstance(value, str | int | float)}


def is_small(values: Mapping[str, Any]) -> bool:
    """Whether an input certainly keeps to the limit, without encoding it."""
    size = 0
    for value in values.values():
        if isinstance(value, dict | list):
            return False
        size += len(value) if isinstance(value, str) else 50
    return size <= MAX_INPUT


def shorten(value: Any, most: int = MAX_TEXT) -> Any:
    if isinstance(value, str) and len(value) > most:
        return f"{value[:most]}[{len(value) - most} more characters]"
    return value


def make_room(apart: Path, most: int) -> None:
    """Remove the oldest log files until the others take at most `most` bytes; the file `apart` stays."""
    kept: list[tuple[float, int, str]] = []
    with suppress(OSError), os.scandir(apart.parent) as entries:
        for entry in entries:
            if entry.name.endswith(".jsonl") and entry.name != apart.name:
                with suppress(OSError):  # other processes clean up too
                    stat = entry.stat(follow_symlinks=False)
                    kept.append((stat.st_mtime, stat.st_size, entry.path))
    kept.sort(reverse=True)
    total = 0
    for number, (_, size, path) in enumerate(kept):
        total += size
        if total > most or number >= MAX_FILES:
            with suppress(OSError):
                Path(path).unlink()
