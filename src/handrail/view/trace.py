"""
A run for Perfetto and Chrome's tracing view: the Trace Event Format.

Each agent is a process; its first thread is the model, the others hold its calls, as many as ran beside each other.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MICROS = 1_000_000
MODEL_THREAD = 1
STAGES = ("queued", "validated", "decided", "ran", "fitted")
MAX_NAME = 100


def trace_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """The trace of a run's record, as JSON."""
    began = float(run["began"] or 0.0)
    ended = float(run["ended"] or began)
    events: list[dict[str, Any]] = []
    for number, agent in enumerate(run["agents"], 1):
        events += agent_events(run, agent, number, ended)
    for event in events:
        if "ts" in event:
            event["ts"] -= round(began * MICROS)
    facts = {name: run[name] for name in ("id", "title", "cwd", "model", "outcome")}
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {**facts, "began": began, "totals": run["totals"]},
    }


def agent_events(
    run: Mapping[str, Any], agent: Mapping[str, Any], process: int, ended: float
) -> Iterator[dict[str, Any]]:
    """The names, requests and calls of one agent."""
    title = " ".join(filter(None, (agent["id"], agent["type"], agent["description"])))
    yield name_event("process_name", process, 0, title[:MAX_NAME])
    yield {**name_event("process_sort_index", process, 0, ""), "args": {"sort_index": process}}
    yield name_event("thread_name", process, MODEL_THREAD, "model")
    for turn in run["turns"]:
        if turn["agent"] == agent["id"]:
            yield turn_event(turn, process, ended)
    calls = [call for call in run["calls"] if call["agent"] == agent["id"]]
    lanes = Lanes()
    for call in sorted(calls, key=call_start):
        start, end = call_start(call), max(call_start(call), call["ended"] or ended)
        lane, is_new = lanes.take(start, end)
        thread = MODEL_THREAD + 1 + lane
        if is_new:
            yield name_event("thread_name", process, thread, f"calls {lane + 1}")
        yield from call_events(call, (process, thread), (start, end))


class Lanes:
    """Rows for spans that may overlap: each gets the first row that is free."""

    def __init__(self) -> None:
        self._free: list[float] = []

    def take(self, start: float, end: float) -> tuple[int, bool]:
        """A row for a span, and whether it is a new one. Spans are given in the order in which they start."""
        for lane, free in enumerate(self._free):
            if free <= start:
                self._free[lane] = end
                return lane, False
        self._free.append(end)
        return len(self._free) - 1, True


def call_start(call: Mapping[str, Any]) -> float:
    """When a call was queued, counted back from its end if its stages are known."""
    stages, ended = call["stages"], call["ended"]
    if stages is None or ended is None:
        return float(call["queued"])
    return float(ended - sum(stages[stage] for stage in STAGES))


def turn_event(turn: Mapping[str, Any], process: int, ended: float) -> dict[str, Any]:
    """A request, from when it was sent to when the answer was complete."""
    end = turn["answered"] or turn["ended"] or ended
    about = {name: turn[name] for name in ("turn", "attempt", "why", "model", "usage", "dollars", "broke", "discarded")}
    return span(f"chat {turn['model']}".strip(), "model", (process, MODEL_THREAD), (turn["at"], end), about)


def call_events(
    call: Mapping[str, Any], place: tuple[int, int], times: tuple[float, float]
) -> Iterator[dict[str, Any]]:
    """A call, and inside it its stages."""
    decision = call["decision"]
    about = {name: call[name] for name in ("id", "subject", "status", "cause", "early", "size", "starts_agent")}
    if decision is not None:
        about["decision"] = {name: decision[name] for name in ("verdict", "by", "asked", "reason", "rule", "mode")}
    name = f"{call['tool']} {call['subject']}".strip()[:MAX_NAME]
    yield span(name, call["status"], place, times, about)
    if (stages := call["stages"]) is None:
        return
    at = times[0]
    for stage in STAGES:
        end = min(at + stages[stage], times[1])  # sums of fractions may exceed the whole by a hair
        if stages[stage] > 0:
            yield span(stage, "stage", place, (at, end))
        if stage == "decided" and stages["waited"] > 0:
            yield span("waiting for an answer", "stage", place, (max(at, end - stages["waited"]), end))
        at = end


def span(
    name: str,
    category: str,
    place: tuple[int, int],
    times: Sequence[float],
    about: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A complete event. Both ends are rounded the same way, so that what lies inside stays inside."""
    start, end = (round(each * MICROS) for each in times)
    event = {
        "name": name,
        "cat": category,
        "ph": "X",
        "pid": place[0],
        "tid": place[1],
        "ts": start,
        "dur": max(end - start, 0),
    }
    return {**event, "args": dict(about)} if about else event


def name_event(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    """The name of a process or a thread."""
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
