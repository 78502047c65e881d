"""The turns of a run: each a request with its answer, and what it cost."""

from collections.abc import Mapping
from typing import Any

from handrail.view.lanes import AgentLane
from handrail.view.model import NO_TOKENS, TokenCounts, TurnData
from handrail.view.prefix import why_broke


class RunTurns:
    """Collects turns from the lines of a session. `all` has those of all agents, `now` is the time of the line."""

    def __init__(self) -> None:
        self.all: list[TurnData] = []
        self._changed: set[int] = set()

    def begin(self, lane: AgentLane, values: Mapping[str, Any], now: float) -> None:
        """A request was sent."""
        lane.data["turns"] += 1
        turn = TurnData(
            agent=lane.data["id"],
            turn=int(values.get("turn") or lane.data["turns"]),
            attempt=int(values.get("attempt") or 1),
            why=str(values.get("why") or ""),
            model=str(values.get("model") or ""),
            at=now,
            first=None,
            answered=None,
            ended=None,
            usage=None,
            dollars=None,
            prefix=dict(values.get("prefix") or {}),
            broke="",
            discarded=False,
        )
        turn["broke"] = why_broke(lane.before, turn, shortened=lane.was_shortened)
        lane.turn = len(self.all)
        self.all.append(turn)
        self._changed.add(lane.turn)

    def current(self, lane: AgentLane, model: str, now: float) -> TurnData:
        """The turn of an answer; one is made for sessions that do not record requests."""
        if lane.turn is None:
            self.begin(lane, {"model": model}, now)
        assert lane.turn is not None
        return self.all[lane.turn]

    def answer(self, lane: AgentLane, line: Mapping[str, Any], now: float) -> None:
        """The answer is complete, with what was used for it."""
        turn, usage = self.current(lane, str(line.get("model") or ""), now), line.get("usage") or {}
        turn["answered"] = now
        turn["usage"] = TokenCounts(**{name: int(usage.get(name) or 0) for name in NO_TOKENS})  # type: ignore[typeddict-item]
        turn["dollars"] = line.get("dollars")
        turn["model"] = str(line.get("model") or turn["model"])
        known, cost = lane.data["dollars"], turn["dollars"]
        lane.data["dollars"] = None if known is None or cost is None else known + cost
        turn["broke"] = why_broke(lane.before, turn, shortened=lane.was_shortened)
        self._note(lane)

    def settle(self, lane: AgentLane, now: float) -> None:
        """The answer joined the history; a new request makes the next turn."""
        if lane.turn is not None:
            turn = self.all[lane.turn]
            turn["ended"] = now
            lane.before, lane.was_shortened = turn, False
            self._note(lane)
        lane.turn = None

    def discard(self, lane: AgentLane, now: float) -> None:
        """The answer broke off."""
        if lane.turn is not None:
            self.all[lane.turn]["discarded"] = True
            self.all[lane.turn]["ended"] = now
            self._note(lane)
        lane.turn = None

    def take_changed(self) -> set[int]:
        """The positions of turns that are new or different since the last time."""
        taken, self._changed = self._changed, set()
        return taken

    def _note(self, lane: AgentLane) -> None:
        assert lane.turn is not None
        self._changed.add(lane.turn)
