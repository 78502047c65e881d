"""
How many sub-agents work at a time.

An agent that waits for agents of its own lends its slot meanwhile. So every slot belongs to an agent that makes
progress, and agents that wait for a slot never wait for each other.
"""

import asyncio


class AgentSlots:
    """A number of slots, given in the order they are asked for."""

    def __init__(self, number: int) -> None:
        self._slots = asyncio.Semaphore(number)

    def slot(self) -> "AgentSlot":
        """A slot that is not taken yet."""
        return AgentSlot(self._slots)


class AgentSlot:
    """The slot of one agent: taken while it works, lent while it waits for others."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self._is_taken = False
        self._waiting_for = 0

    async def take(self) -> None:
        """Wait for a free slot."""
        await self._slots.acquire()
        self._is_taken = True

    def give_back(self) -> None:
        """Let another agent have it."""
        if self._is_taken:
            self._is_taken = False
            self._slots.release()

    def lend(self) -> None:
        """Its agent begins to wait for an agent of its own."""
        self._waiting_for += 1
        self.give_back()

    def forget_one(self) -> None:
        """The wait for one of them was given up, and the agent is about to end."""
        self._waiting_for -= 1

    async def reclaim(self) -> None:
        """One of the agents that its agent waited for has ended; after the last it waits for a slot again."""
        self._waiting_for -= 1
        if not self._waiting_for:
            await self.take()
