"""
The named places that running calls hold, over all agents of a session.

Within an answer the schedule decides which calls overlap. Agents that work side by side have schedules of their own, so
a call also holds the files and records that it names while it runs: a call of another agent that conflicts waits for
it, in the order they came. Calls that may touch anything, such as commands, hold nothing here.
"""

import asyncio

from handrail.dispatch.footprint import NOTHING, WORLD, Footprint, conflict


class Hold:
    """A footprint in the line; `turn` is set while it waits."""

    __slots__ = ("footprint", "turn")

    def __init__(self, footprint: Footprint) -> None:
        self.footprint = footprint
        self.turn: asyncio.Future[None] | None = None


class HeldPlaces:
    """Who holds what, in the order of arrival. A hold is taken whole, so that no two wait for each other."""

    def __init__(self) -> None:
        self._line: list[Hold] = []

    async def acquire(self, footprint: Footprint) -> Hold | None:
        """Wait until no earlier hold conflicts; None = there is nothing to hold. Give it to `release` in any case."""
        if footprint is NOTHING or WORLD in footprint.writes or WORLD in footprint.reads:
            return None
        hold = Hold(footprint)
        blocked = bool(self._line) and any(conflict(other.footprint, footprint) for other in self._line)
        self._line.append(hold)
        if blocked:
            hold.turn = asyncio.get_running_loop().create_future()
            try:
                await hold.turn
            except asyncio.CancelledError:
                self.release(hold)
                raise
        return hold

    def release(self, hold: Hold | None) -> None:
        """Let go; whatever waited only for this goes on."""
        if hold is None:
            return
        self._line.remove(hold)
        for at, other in enumerate(self._line):
            if other.turn is None or other.turn.done():
                continue
            if not any(conflict(earlier.footprint, other.footprint) for earlier in self._line[:at]):
                other.turn.set_result(None)
