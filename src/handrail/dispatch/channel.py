"""A queue from the engine to one reader, closed by the engine."""

import asyncio
from collections import deque
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")


class Channel(Generic[Item]):
    """An async iterator that ends when the channel is closed and all items were read."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._closed = False

    @property
    def waiting(self) -> deque[Item]:
        """The items that wait to be read. The reader may take the first ones from it while it does not wait here."""
        return self._items

    def put(self, item: Item) -> None:
        self._items.append(item)
        if self._reader is not None:
            self._wake()

    def close(self) -> None:
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        while not self._items:
            if self._closed:
                raise StopAsyncIteration
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self._items.popleft()
