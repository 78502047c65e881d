"""A queue from the engine to one reader, closed by the engine."""

import asyncio
from collections import deque
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")


class Channel(Generic[Item]):
    """An async iterator that ends when the channel is closed and all items were read."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._news = asyncio.Event()
        self._closed = False

    def put(self, item: Item) -> None:
        self._items.append(item)
        self._news.set()

    def close(self) -> None:
        self._closed = True
        self._news.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        while not self._items:
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._items.popleft()
