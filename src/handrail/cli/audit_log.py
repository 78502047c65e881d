"""Reads the audit log: every decision on a call, as it was recorded."""

import json
import re
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from handrail.dispatch.approval.audit import FORMAT
from handrail.errors import HandrailError
from handrail.records import record
from handrail.tools.permission import Strength

ALLOWED, DENIED, ASKED = "allowed", "denied", "asked"
KINDS = (ALLOWED, ASKED, DENIED)
ID_START = 8
"""Characters before the first dash of a session's id; a single call has no session, and its log the time there."""
AGO = re.compile(r"(\d+)\s*(m|min|h|d|w)")
UNITS = {"m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


@record
class AuditedCall:
    """One decision of the log."""

    at: float
    session: str
    call: str
    tool: str
    input: Mapping[str, Any]
    decision: str
    """allow or deny, or why there is no answer."""
    asked: bool
    by: str
    """The layer that decided, or who answered."""
    reason: str
    rule: str
    """The rule that decided, or because of which it was asked, with its place; empty if it was none."""
    layer: str
    """The layer of that rule; empty if no layer had this opinion."""
    line: Mapping[str, Any]
    """Everything that was recorded."""

    @property
    def kind(self) -> str:
        """asked if there was a question, else allowed or denied."""
        return ASKED if self.asked else ALLOWED if self.decision == "allow" else DENIED

    @property
    def kinds(self) -> frozenset[str]:
        """The kind, and of a question also what came of it."""
        outcome = {"allow": ALLOWED, "deny": DENIED}.get(self.decision)
        return frozenset({self.kind, outcome or self.kind})

    @property
    def ref(self) -> str:
        """What to ask for it by: the part of the session's id that differs, and the call."""
        beginning, _, end = self.session.partition("-")
        return f"{beginning if len(beginning) == ID_START else end.rpartition('-')[2]}/{self.call}"

    @property
    def subject(self) -> str:
        """What the call was about, in short."""
        found = self.line.get("facts", {}).get("subject", "")
        return str(found) or (json.dumps(self.input, ensure_ascii=False) if self.input else "")

    def as_json(self) -> dict[str, Any]:
        """The call for programs, without the details of the decision."""
        return {
            "at": time_text(self.at),
            "session": self.session,
            "call": self.call,
            "tool": self.tool,
            "input": dict(self.input),
            "kind": self.kind,
            "decision": self.decision,
            "by": self.by,
            "rule": self.rule,
            "reason": self.reason,
            "cwd": self.line.get("cwd", ""),
            "mode": self.line.get("mode", ""),
            "agent": self.line.get("agent", ""),
            **({"origin": origin} if (origin := self.line.get("origin")) else {}),
        }


@record
class AuditLog:
    """The calls of the logs, the oldest first, and how many lines could not be read."""

    calls: tuple[AuditedCall, ...]
    unreadable: int


def read_log(folder: Path, since: float = 0.0) -> AuditLog:
    """The calls that were decided since a moment; HandrailError if a newer handrail wrote a log."""
    calls: list[AuditedCall] = []
    unreadable = 0
    for file in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
        try:
            if file.stat().st_mtime < since:
                continue
            text = file.read_text("utf-8", "replace")
        except OSError:  # logs are removed when there are too many
            continue
        for line in filter(None, text.split("\n")):
            try:
                call = parse_call(json.loads(line), file)
            except (ValueError, KeyError, TypeError):
                unreadable += 1  # cut off when its process died, or not ours
                continue
            if call.at >= since:
                calls.append(call)
    return AuditLog(tuple(sorted(calls, key=lambda call: call.at)), unreadable)


def parse_call(line: Mapping[str, Any], file: Path) -> AuditedCall:
    if line["v"] > FORMAT:
        raise HandrailError(f"{file} was written by a newer handrail. Use that one, or move the file away.")
    asked = bool(line.get("asked"))
    opinion = deciding_opinion(line["opinions"], "ask" if asked else line["decision"])
    return AuditedCall(
        float(line["at"]),
        str(line["session"]),
        str(line["call"]),
        str(line["tool"]),
        dict(line["input"]),
        str(line["decision"]),
        asked,
        str(line["by"]),
        str(line["reason"]),
        str(opinion.get("rule", "")),
        str(opinion.get("layer", "")),
        line,
    )


def deciding_opinion(opinions: list[Mapping[str, Any]], verdict: str) -> Mapping[str, Any]:
    """The strongest opinion with this verdict; empty if there is none."""
    same = [each for each in opinions if each["says"] == verdict]
    return max(same, key=lambda each: Strength[each["strength"].upper()], default={})


def parse_since(text: str, now: float | None = None) -> float:
    """A moment from `2h`, `3d`, `2026-11-01` or `2026-11-01T12:00`; HandrailError if the text is none of them."""
    at = time.time() if now is None else now
    if found := AGO.fullmatch(text.strip()):
        return at - int(found[1]) * UNITS[found[2]]
    try:
        if text.strip() in ("today", "yesterday"):
            day = datetime.fromtimestamp(at).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
            return (day - timedelta(days=text.strip() == "yesterday")).timestamp()
        return datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except ValueError as error:
        raise HandrailError(
            f"--since: {text!r} is not a time. Write 30m, 2h, 3d, 1w, today, or 2026-11-01T12:00."
        ) from error


def is_session(call: AuditedCall, name: str) -> bool:
    """Whether a call is of the session with this id, the beginning of one, or the end."""
    return call.session.startswith(name) or call.session.endswith(name)


def find_call(calls: tuple[AuditedCall, ...], name: str) -> list[AuditedCall]:
    """The calls of that id, or of that beginning of one; `SESSION/CALL` looks in one session."""
    session, slash, call = name.rpartition("/")
    inside = [each for each in calls if is_session(each, session)] if slash else list(calls)
    exact = [each for each in inside if each.call == call]
    return exact or [each for each in inside if call and each.call.startswith(call)]


def time_text(at: float) -> str:
    """The moment in local time."""
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
