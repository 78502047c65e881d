"""
Builds the record of a run from the lines of its session, one at a time, and from those of the audit log.

Nothing here reads files. What a line changed is known (`take_changed`), so that a page can follow a running session.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from handrail.view.call_parts import agent_named_in, result_text, set_decision, set_stages, shorten
from handrail.view.decision import decision_data, subject_of
from handrail.view.lanes import MAIN, AgentLane, new_agent
from handrail.view.model import (
    AgentData,
    CallData,
    ChangeData,
    DecisionData,
    EntryData,
    EntryKind,
    RunRecord,
    RunTotals,
)
from handrail.view.stamps import StampClock
from handrail.view.totals import run_totals
from handrail.view.turns import RunTurns

OWN = "handrail"
MAX_TEXT = 4_000


class RunReader:
    """Reads a session line by line. `most` = the longest text that is kept of an entry or a result."""

    def __init__(self, session_id: str, most: int = MAX_TEXT) -> None:
        self.id = session_id
        self.most = most
        self._turns = RunTurns()
        self.turns = self._turns.all
        self.calls: list[CallData] = []
        self.entries: list[EntryData] = []
        self.changes: list[ChangeData] = []
        self.problems: list[str] = []
        self.facts = {"title": "", "prompt": "", "cwd": "", "model": "", "parent": ""}
        self.outcome, self.problem = "", ""
        self._clock = StampClock()
        self.began: float | None = None
        self.now = 0.0
        self._lanes: dict[str, AgentLane] = {}
        self._decisions: dict[tuple[str, str], DecisionData] = {}
        self._subjects: dict[tuple[str, str], str] = {}
        self._changed: dict[str, set[int]] = {"calls": set(), "entries": set()}
        self.lane(MAIN)

    # Lines

    def add(self, line: Mapping[str, Any], number: int = 0) -> None:
        """Take one line of a session file. What is not understood is counted as a problem, and the rest is read."""
        try:
            self._add(line, number)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            self.problems.append(f"line {number}: {type(error).__name__}: {error}"[:300])

    def _add(self, line: Mapping[str, Any], number: int) -> None:
        lane = self.lane(line["agentId"] if line.get("isSidechain") and line.get("agentId") else MAIN)
        stamp = line.get("timestamp")
        if isinstance(stamp, str):
            self.now = self._clock.parse(stamp)
            self.began = self.now if self.began is None else min(self.began, self.now)
            lane.data["began"] = lane.data["began"] or self.now
            lane.data["ended"] = self.now
        kind = line["type"]
        if kind == "assistant":
            self._assistant(lane, line["message"], number)
        elif kind == "user":
            self._user(lane, line, number)
        elif kind == OWN:
            self._event(lane, line["event"], line, number)
        elif kind == "system":
            self._system(lane, line, number)
        elif kind == "summary":
            self.facts["title"] = str(line["summary"])
        if not self.facts["cwd"] and isinstance(line.get("cwd"), str):
            self.facts["cwd"] = line["cwd"]

    def lane(self, agent: str) -> AgentLane:
        """The agent of this id, from its first line on."""
        found = self._lanes.get(agent)
        if found is None:
            found = self._lanes[agent] = AgentLane(new_agent(agent))
        return found

    def describe_agent(self, kept: Mapping[str, Any]) -> None:
        """Take what is kept of a sub-agent beside its transcript."""
        data = self.lane(str(kept["id"])).data
        data["type"] = str(kept.get("kind") or "agent")
        for name in ("description", "parent", "status", "model"):
            data[name] = str(kept.get(name) or data[name])

    def add_decision(self, line: Mapping[str, Any]) -> None:
        """Take one line of the audit log. Its call may come later."""
        key = (str(line.get("agent") or MAIN), str(line["call"]))
        self._decisions[key] = found = decision_data(line)
        self._subjects[key] = str((line.get("facts") or {}).get("subject") or "")
        lane = self._lanes.get(key[0])
        place = lane.calls.get(key[1]) if lane else None
        if place is not None:
            set_decision(self.calls[place], found, self._subjects[key])
            self._changed["calls"].add(place)

    # What is said

    def _assistant(self, lane: AgentLane, message: Mapping[str, Any], number: int) -> None:
        model = str(message.get("model") or "")
        self.facts["model"] = lane.data["model"] = model or lane.data["model"]
        turn = self._turns.current(lane, model, self.now)
        for block in message["content"]:
            match block["type"]:
                case "text":
                    self._entry(lane, "text", block["text"], number)
                case "thinking":
                    self._entry(lane, "thinking", block["thinking"], number)
                case "tool_use":
                    self._queue_call(lane, block, number)
                case "redacted_thinking":
                    pass
                case other:
                    self._entry(lane, "file", str(other), number)
        if turn["first"] is None:
            turn["first"] = self.now

    def _queue_call(self, lane: AgentLane, block: Mapping[str, Any], number: int) -> None:
        key = (lane.data["id"], str(block["id"]))
        values = dict(block.get("input") or {})
        call: CallData = {
            "id": key[1],
            "agent": key[0],
            "turn": lane.turn,
            "tool": str(block["name"]),
            "subject": subject_of(values),
            "input": {name: shorten(value) for name, value in values.items()} if self.most else values,
            "queued": self.now,
            "started": None,
            "ended": None,
            "status": "running",
            "cause": "",
            "early": False,
            "stages": None,
            "result": "",
            "size": 0,
            "decision": None,
            "starts_agent": "",
        }
        if (decision := self._decisions.get(key)) is not None:
            set_decision(call, decision, self._subjects[key])
        place = lane.calls[key[1]] = len(self.calls)
        self.calls.append(call)
        self._changed["calls"].add(place)
        lane.data["calls"] += 1
        self._entry(lane, "call", "", number, place)

    def _user(self, lane: AgentLane, line: Mapping[str, Any], number: int) -> None:
        content = line["message"]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            if block["type"] == "tool_result":
                self._end_call(lane, block, line.get("ending") or {})
        words = [block for block in blocks if block["type"] != "tool_result"]
        if not words:
            return
        is_prompt = not line.get("isMeta")
        lane.turn = None
        self._say(lane, "prompt" if is_prompt else "attachment", words, number)
        if is_prompt and lane.data["id"] == MAIN:
            self.outcome = "unfinished"

    def _say(self, lane: AgentLane, kind: EntryKind, blocks: Sequence[Mapping[str, Any]], number: int) -> None:
        for block in blocks:
            if block["type"] == "text":
                self._entry(lane, kind, block["text"], number)
                self.facts["prompt"] = self.facts["prompt"] or (block["text"] if kind == "prompt" else "")
            else:
                source = block.get("source") or {}
                self._entry(lane, "file", str(source.get("media_type") or block["type"]), number)

    def _end_call(self, lane: AgentLane, block: Mapping[str, Any], ending: Mapping[str, Any]) -> None:
        place = lane.calls.get(str(block["tool_use_id"]))
        if place is None:
            return
        call = self.calls[place]
        text = result_text(block.get("content"))
        call["result"], call["size"] = text[: self.most or None], len(text)
        call["ended"] = self.now
        failed = block.get("is_error") is True
        call["status"] = str(ending.get("status") or ("error" if failed else "ok"))
        call["cause"] = str(ending.get("cause") or "")
        if micros := ending.get("micros"):
            set_stages(call, micros)
        if call["tool"] in ("Agent", "Task"):
            call["starts_agent"] = agent_named_in(text)
        self._changed["calls"].add(place)

    def _entry(self, lane: AgentLane, kind: EntryKind, text: str, number: int, call: int | None = None) -> None:
        entry: EntryData = {
            "kind": kind,
            "agent": lane.data["id"],
            "at": self.now,
            "turn": lane.turn,
            "call": call,
            "text": text[: self.most or None],
            "size": len(text),
            "line": number,
        }
        self._changed["entries"].add(len(self.entries))
        self.entries.append(entry)

    # What happens

    def _system(self, lane: AgentLane, line: Mapping[str, Any], number: int) -> None:
        if line.get("subtype") == "note":
            self._entry(lane, "note", line["content"], number)
        elif line.get("subtype") == "compact_boundary":
            lane.was_shortened = True
            self._entry(lane, "compacted", "", number)

    def _event(self, lane: AgentLane, event: str, line: Mapping[str, Any], number: int) -> None:
        match event:
            case "opened" | "title" | "model":
                self._know(event, line)
            case "requested":
                self._turns.begin(lane, line, self.now)
            case "answered":
                self._turns.answer(lane, line, self.now)
            case "settled":
                self._turns.settle(lane, self.now)
            case "began" | "deferred":
                self._begin(lane, str(line["id"]), deferred=event == "deferred")
            case "discarded":
                self._discard(lane, number)
            case "adopted":
                lane.is_adopting = True
            case "replaced":
                self._replace(lane, line["messages"], number)
            case "ended":
                self._end(lane, line, number)

    def _know(self, event: str, line: Mapping[str, Any]) -> None:
        if event != "opened":
            self.facts[event] = str(line[event])
            return
        self.facts["cwd"] = self.facts["cwd"] or str(line["cwd"])
        self.facts["parent"] = self.facts["parent"] or str(line.get("parent") or "")

    def _begin(self, lane: AgentLane, call_id: str, *, deferred: bool) -> None:
        if (place := lane.calls.get(call_id)) is None:
            return
        call = self.calls[place]
        self._changed["calls"].add(place)
        if deferred:
            call["status"] = "deferred"
            return
        call["started"] = self.now
        turn = self.turns[call["turn"]] if call["turn"] is not None else None
        call["early"] = turn is not None and turn["answered"] is None and turn["ended"] is None

    def _discard(self, lane: AgentLane, number: int) -> None:
        self._entry(lane, "discarded", "", number)
        self._turns.discard(lane, self.now)

    def _replace(self, lane: AgentLane, messages: Sequence[Mapping[str, Any]], number: int) -> None:
        adopting, lane.is_adopting = lane.is_adopting, False
        if not adopting:
            fresh = [each for each in messages if "keep" not in each and each.get("role") == "user"]
            lane.was_shortened = True
            self._entry(lane, "compacted", "\n\n".join(result_text(each["content"]) for each in fresh), number)
            return
        for value in messages:
            match value.get("role"):
                case "assistant":
                    self._assistant(lane, value, number)
                    self._turns.settle(lane, self.now)
                case "user":
                    self._user(lane, {"message": value, "isMeta": "attachment" in value}, number)
                case _:
                    self._entry(lane, "note", str(value.get("content") or ""), number)

    def _end(self, lane: AgentLane, line: Mapping[str, Any], number: int) -> None:
        lane.data["status"] = "completed" if line["move"] == "stopped" else str(line["move"])
        self._turns.settle(lane, self.now)
        self._entry(lane, "ended", str(line["why"]), number)
        if lane.data["id"] == MAIN:
            self.outcome, self.problem = str(line["why"]), str(line.get("problem") or "")

    # What came of it

    def totals(self) -> RunTotals:
        """The sums so far."""
        return run_totals(self.agents, self.turns, self.calls, self.entries)

    @property
    def agents(self) -> list[AgentData]:
        """The agents, in the order of their first lines."""
        return [lane.data for lane in self._lanes.values()]

    def record(self) -> RunRecord:
        """The record of all lines so far."""
        facts = self.facts
        ends = [agent["ended"] for agent in self.agents if agent["ended"] is not None]
        title = " ".join((facts["title"] or facts["prompt"]).split())[:120]
        return RunRecord(
            self.id,
            title,
            facts["cwd"],
            facts["model"],
            facts["parent"],
            self.began,
            max(ends, default=None),
            self.outcome,
            self.problem,
            self.totals(),
            self.agents,
            self.turns,
            self.calls,
            self.entries,
            self.changes,
            self.problems,
        )

    def take_changed(self) -> dict[str, dict[str, Any]]:
        """What is new or different since the last time, by list and position."""
        taken, self._changed = self._changed, {name: set() for name in self._changed}
        taken = {"turns": self._turns.take_changed(), **taken}
        return {name: {str(at): getattr(self, name)[at] for at in sorted(places)} for name, places in taken.items()}
