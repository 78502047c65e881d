"""Sums over many sessions: what they cost, where the time went, which calls failed and which rules denied."""

import heapq
import time
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from handrail.view.decision import decision_data
from handrail.view.model import NO_TOKENS, CallData, TokenCounts, TurnData
from handrail.view.reader import RunReader

FORMAT = "handrail stats"
VERSION = 1
MAX_SLOWEST = 20
STAGES = ("model", "queued", "validated", "decided", "waited", "ran", "fitted")
UNANSWERED = "no rule: no one was there to answer"


class SumData(TypedDict):
    """What some of the sessions add up to. `unpriced` answers have no known price and are not in `dollars`."""

    sessions: int
    turns: int
    calls: int
    failed: int
    denied: int
    dollars: float
    unpriced: int
    tokens: TokenCounts
    cache_share: float | None
    """The part of the input that came from a cache; None if there was no input."""


class ToolSum(TypedDict):
    """The calls of one tool. `seconds` is the time in which they ran, `slowest` the longest of them."""

    tool: str
    calls: int
    failed: int
    denied: int
    seconds: float
    slowest: float


class DenialSum(TypedDict):
    """The calls that one rule denied, or that were denied without a rule."""

    rule: str
    count: int
    tools: list[str]


class SlowCall(TypedDict):
    """A call that took long. `seconds` is the time in which it ran."""

    seconds: float
    tool: str
    subject: str
    session: str
    call: str
    at: float


def new_sum() -> SumData:
    """A sum of nothing."""
    return SumData(
        sessions=0,
        turns=0,
        calls=0,
        failed=0,
        denied=0,
        dollars=0.0,
        unpriced=0,
        tokens=TokenCounts(**NO_TOKENS),
        cache_share=None,
    )


class SessionStats:
    """Adds sessions up, one at a time; what happened before `since` (seconds since 1970) is left out."""

    def __init__(self, since: float = 0.0) -> None:
        self.since = since
        self.total = new_sum()
        self.asked = 0
        self.unanswered = 0
        """Questions that no one was there to answer, so that the call was denied."""
        self.stages = dict.fromkeys(STAGES, 0.0)
        self.groups: dict[str, dict[str, SumData]] = {"days": {}, "folders": {}, "models": {}, "sessions": {}}
        self.tools: dict[str, ToolSum] = {}
        self.denials: dict[str, DenialSum] = {}
        self._slowest: list[tuple[float, int, SlowCall]] = []
        self._day: tuple[float, float, str] = (1.0, 0.0, "")

    def add(self, run: RunReader) -> None:
        """Add a session that was read; one in which nothing happened since is not counted."""
        turns = [turn for turn in run.turns if turn["at"] >= self.since]
        calls = [call for call in run.calls if call["queued"] >= self.since]
        if not turns and not calls:
            return
        folder, counted = run.facts["cwd"], set[tuple[str, str]]()
        for turn in turns:
            sums = self._sums(turn["at"], folder, turn["model"] or "unknown", run.id, counted)
            for each in sums:
                add_turn(each, turn)
            if turn["answered"] is not None:
                self.stages["model"] += max(0.0, turn["answered"] - turn["at"])
        for call in calls:
            at = call["turn"]
            model = run.turns[at]["model"] if at is not None else ""
            for each in self._sums(call["queued"], folder, model or "unknown", run.id, counted):
                add_call(each, call)
            self._add_call(run.id, call)

    def add_decision(self, line: Mapping[str, Any]) -> None:
        """Add a line of the audit log; KeyError, TypeError or ValueError if it is none."""
        if float(line["at"]) < self.since or line["session"] not in self.groups["sessions"]:
            return
        decision = decision_data(line)
        unanswered = decision["verdict"] == "deny" and decision["by"] == "nobody"
        if decision["asked"]:
            self.asked += not unanswered
            self.unanswered += unanswered
            self.stages["waited"] += decision["waiting"]
            self.stages["decided"] -= min(decision["waiting"], self.stages["decided"])
        if decision["verdict"] != "deny":
            return
        rule = decision["rule"] or (UNANSWERED if unanswered else f"no rule: {decision['by']}")
        found = self.denials.setdefault(rule, DenialSum(rule=rule, count=0, tools=[]))
        found["count"] += 1
        if (tool := str(line["tool"])) not in found["tools"]:
            found["tools"].append(tool)

    def _sums(
        self, at: float, folder: str, model: str, session: str, counted: set[tuple[str, str]]
    ) -> Sequence[SumData]:
        """The sums that something belongs to; a session counts once in each."""
        keys = {"days": self._day_of(at), "folders": folder, "models": model, "sessions": session}
        found = [self.groups[group].setdefault(key, new_sum()) for group, key in keys.items()]
        for group, each in zip((*keys.items(), ("", "")), (*found, self.total), strict=True):
            if group not in counted:
                counted.add(group)
                each["sessions"] += 1
        return (*found, self.total)

    def _day_of(self, at: float) -> str:
        begin, end, day = self._day
        if not begin <= at < end:
            local = time.localtime(at)
            begin = time.mktime((local.tm_year, local.tm_mon, local.tm_mday, 0, 0, 0, 0, 0, -1))
            end = time.mktime((local.tm_year, local.tm_mon, local.tm_mday + 1, 0, 0, 0, 0, 0, -1))
            day = time.strftime("%Y-%m-%d", local)
            self._day = begin, end, day
        return day

    def _add_call(self, session: str, call: CallData) -> None:
        name = call["tool"]
        tool = self.tools.setdefault(name, ToolSum(tool=name, calls=0, failed=0, denied=0, seconds=0.0, slowest=0.0))
        tool["calls"] += 1
        tool["failed"] += call["status"] == "error"
        tool["denied"] += call["status"] == "denied"
        if (stages := call["stages"]) is None:
            return
        for stage in ("queued", "validated", "decided", "ran", "fitted"):
            self.stages[stage] += stages[stage]
        seconds = stages["ran"]
        tool["seconds"] += seconds
        tool["slowest"] = max(tool["slowest"], seconds)
        if call["status"] != "denied" and (len(self._slowest) < MAX_SLOWEST or seconds > self._slowest[0][0]):
            slow = SlowCall(
                seconds=seconds, tool=name, subject=call["subject"], session=session, call=call["id"], at=call["queued"]
            )
            keep = heapq.heappush if len(self._slowest) < MAX_SLOWEST else heapq.heapreplace
            keep(self._slowest, (seconds, self.total["calls"], slow))

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table: days, folders, models, sessions, tools, denials or slowest."""
        match name:
            case "tools":
                tools = sorted(self.tools.values(), key=lambda each: (-each["calls"], each["tool"]))
                return [dict(each) for each in tools]
            case "denials":
                denials = sorted(self.denials.values(), key=lambda each: (-each["count"], each["rule"]))
                return [dict(each) for each in denials]
            case "slowest":
                return [dict(each) for _, _, each in sorted(self._slowest, key=lambda each: -each[0])]
        rows = [{COLUMNS[name]: key, **as_row(each)} for key, each in self.groups[name].items()]
        if name == "days":
            return sorted(rows, key=lambda row: str(row["day"]))
        return sorted(rows, key=lambda row: (-row["dollars"], -row["calls"], row[COLUMNS[name]]))

    def as_json(self) -> dict[str, Any]:
        """Everything, for other programs."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "since": self.since or None,
            "total": {**as_row(self.total), "asked": self.asked, "unanswered": self.unanswered},
            "stages": self.stages,
            **{name: self.table(name) for name in TABLES},
        }


COLUMNS = {"days": "day", "folders": "cwd", "models": "model", "sessions": "session"}
TABLES = (*COLUMNS, "tools", "denials", "slowest")


def add_turn(each: SumData, turn: TurnData) -> None:
    """Add a request and its answer to a sum."""
    each["turns"] += 1
    if (usage := turn["usage"]) is None:
        return
    for name in NO_TOKENS:
        each["tokens"][name] += usage[name]  # type: ignore[literal-required]
    if turn["dollars"] is None:
        each["unpriced"] += 1
    else:
        each["dollars"] += turn["dollars"]


def add_call(each: SumData, call: CallData) -> None:
    """Add a call to a sum."""
    each["calls"] += 1
    each["failed"] += call["status"] == "error"
    each["denied"] += call["status"] == "denied"


def as_row(each: SumData) -> dict[str, Any]:
    """A sum with the part of its input that came from a cache."""
    tokens = each["tokens"]
    whole = tokens["input"] + tokens["cache_read"] + tokens["cache_write"]
    share = tokens["cache_read"] / whole if whole else None
    return {**each, "dollars": round(each["dollars"], 9), "cache_share": share}  # 0.1 + 0.2 is 0.3 for people
