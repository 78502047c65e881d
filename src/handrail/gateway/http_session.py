"""A session of a client of the old era over HTTP."""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable

from handrail.gateway.links import PendingQuestions, SendMessage
from handrail.gateway.requests import RunningRequests
from handrail.gateway.state import ClientState
from handrail.mcp.messages import Message

MAX_WAITING = 1_000
"""The most messages that wait for a client that reads none."""


class HttpSession:
    """What is kept between the requests of one session."""

    def __init__(self, client: str, state: ClientState, used: float) -> None:
        self.id = secrets.token_urlsafe(32)
        self.client = client
        self.state = state
        self.used = used
        self.pending = PendingQuestions()
        self.requests = RunningRequests()
        self.tasks: set[asyncio.Future[object]] = set()
        """The work on its requests, also for a client that did not wait for the answer."""
        self.unlisten: Callable[[], None] = lambda: None
        self._waiting: deque[Message] = deque(maxlen=MAX_WAITING)
        self._reader: SendMessage | None = None
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_busy(self) -> bool:
        """Whether a request of it is worked on, or it listens."""
        return bool(self.tasks) or self._reader is not None

    def say(self, message: Message) -> None:
        """Send a message that belongs to no request, now or when the client listens."""
        if self._reader is not None:
            self._reader(message)
        else:
            self._waiting.append(message)

    async def stream(self, tell: SendMessage) -> tuple[int, Message | None]:
        """Send what belongs to no request until the session ends; a newer listener takes the place of this one."""
        self._reader = tell
        while self._waiting:
            tell(self._waiting.popleft())
        try:
            await asyncio.wait({self._ended})
        finally:
            if self._reader is tell:
                self._reader = None
        return 200, None

    def end(self) -> None:
        """Stop what runs in it, without waiting."""
        self.unlisten()
        for task in self.tasks:
            task.cancel()
        if not self._ended.done():
            self._ended.set_result(None)

    async def aclose(self) -> None:
        """Stop what runs in it."""
        tasks = list(self.tasks)
        self.end()
        await self.requests.aclose()
        if tasks:
            await asyncio.wait(tasks)
