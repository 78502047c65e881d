"""
Sends requests to a model and yields the events of its answers; retries where that is safe.

    connect -> read -> ... -> MessageEnd
       ^         |
       +- StreamRetry (delay, plain, next model)   never after a tool call was yielded
                 +-> StreamFailure                  the caller decides
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TypeAlias

from handrail.conversation.request import Request
from handrail.conversation.stream import MessageEnd, StreamEvent, StreamFailure, StreamRetry
from handrail.errors import ProviderSetupError, TransportError, UrlError
from handrail.http.transport import HttpRequest, Response, Transport
from handrail.providers.api import Api, Headers, RequestWriter
from handrail.providers.failures import broken, from_status, retry_after
from handrail.providers.quirks import quirks_of
from handrail.providers.reader import AnswerReader
from handrail.providers.retry import RetryPolicy, attempt_limit, next_step
from handrail.records import record

MAX_ERROR_BODY = 64 * 1024
MAX_PIECE = 4 * 1024
"""Bytes that are read into events at once, in about a millisecond."""
REQUEST_IDS = ("request-id", "x-request-id", "x-amzn-requestid", "apim-request-id", "cf-ray")

Advise: TypeAlias = Callable[[StreamFailure, str], str]
"""What people can try after a failure of this model; empty = nothing."""


class SystemClock:
    """The real time. Replays and tests have other clocks."""

    def time(self) -> float:
        """Unix time."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Raises TimeoutError out of its body when it takes longer."""
        return asyncio.timeout(seconds)


@record
class Endpoint:
    """A server: `base_url` without the path of the api, `headers` with the credentials. Its repr shows no headers."""

    base_url: str
    headers: Headers = ()

    def __repr__(self) -> str:
        return f"Endpoint({self.base_url!r})"


@record
class Timeouts:
    """Seconds to wait for the next byte of a stream, and for a whole answer without streaming."""

    idle: float = 300.0
    whole: float = 600.0


TIMEOUTS = Timeouts()
RETRY_POLICY = RetryPolicy()


def random_fraction() -> float:
    """A number from 0 to 1. Delays need no better randomness, and the random module costs start-up time."""
    return int.from_bytes(os.urandom(4)) / 2**32


class Provider:
    """One api at one endpoint. `model` is the name that a session asks it by; empty = each request names its own."""

    def __init__(
        self,
        api: Api,
        endpoint: Endpoint,
        transport: Transport,
        *,
        model: str = "",
        fallback_models: tuple[str, ...] = (),
        retry: RetryPolicy = RETRY_POLICY,
        timeouts: Timeouts = TIMEOUTS,
        clock: SystemClock | None = None,
        random: Callable[[], float] = random_fraction,
        advise: Advise = lambda _failure, _model: "",
    ) -> None:
        self.api = api
        self.endpoint = endpoint
        self.transport = transport
        self.model = model
        self.fallback_models = fallback_models
        self.retry = retry
        self.timeouts = timeouts
        self.clock = clock or SystemClock()
        self.random = random
        self.advise = advise
        self._writers: dict[str, RequestWriter] = {}

    @property
    def name(self) -> str:
        """The api's name."""
        return self.api.name

    @property
    def is_taped(self) -> bool:
        """Whether its answers are recorded or replayed: its transport says `is_tape`."""
        return bool(getattr(self.transport, "is_tape", False))

    def web_search(self, model: str) -> str:
        """The type of the server's own tool that searches the web; empty = it has none."""
        return quirks_of(self.api.name, self.endpoint.base_url, model).web_search

    def stream(self, request: Request, *, plain: bool = False) -> "AnswerStream":
        """The events of the answer as they arrive; `plain` requests it in one piece."""
        return AnswerStream(self, request, plain)

    def build_request(self, request: Request, stream: bool) -> HttpRequest:
        """The HTTP request for a request. Pure; a cassette is keyed by it."""
        writer = self._writers.get(request.model)
        if writer is None:
            quirks = quirks_of(self.api.name, self.endpoint.base_url, request.model)
            writer = self._writers[request.model] = self.api.writer(quirks)
        chain = request.chain
        tracking = (("x-handrail-chain", chain.id), ("x-handrail-depth", str(chain.depth))) if chain.id else ()
        headers = (
            ("user-agent", "handrail"),
            ("content-type", "application/json"),
            ("accept", "text/event-stream" if stream else "application/json"),
            *self.api.headers,
            *self.endpoint.headers,
            *writer.headers(request),
            *tracking,
        )
        return HttpRequest(self.url, headers, writer.body(request, stream))

    @property
    def url(self) -> str:
        """The address that requests go to."""
        return join(self.endpoint.base_url, self.api.path)

    def takes_schema(self, model: str) -> bool:
        """Whether the server is known to hold the model's answers to a JSON Schema."""
        return quirks_of(self.api.name, self.endpoint.base_url, model).json_schema

    async def aclose(self) -> None:
        await self.transport.aclose()


def join(base_url: str, path: str) -> str:
    """The base URL with the path; a version that both contain appears once."""
    base = base_url.rstrip("/")
    first = "/" + path.split("/")[1]
    return base.removesuffix(first) + path if path.count("/") > 1 and base.endswith(first) else base + path


class AnswerStream:
    """
    The events of one answer, an async iterator. Network problems are StreamFailures, never exceptions.

    Cancelling a waiting `__anext__`, or `aclose`, drops the connection at once.
    """

    def __init__(self, provider: Provider, request: Request, plain: bool) -> None:
        self._provider = provider
        self._request = request
        self._plain = plain
        self._fallbacks = list(provider.fallback_models)
        self._attempt = 1
        self._delay = 0.0
        self._events: list[StreamEvent] = []
        self._at = 0
        self._reply: Response | None = None
        self._reader: AnswerReader | None = None
        self._unread = b""
        self._over = False
        self._yielded_call = False
        self._has_data = False
        self._headers: Mapping[str, str] = {}

    def __aiter__(self) -> "AnswerStream":
        return self

    async def __anext__(self) -> StreamEvent:
        at = self._at
        if at >= len(self._events):
            await self._fill()
            at = 0
        self._at = at + 1
        return self._events[at]

    async def aclose(self) -> None:
        """Stop reading; the connection of an incomplete answer is dropped."""
        self._over = True
        self._events = []
        self._at = 0
        self._drop()

    async def _fill(self) -> None:
        self._at = 0
        self._events = []
        try:
            while not self._events:
                if self._over:
                    raise StopAsyncIteration
                self._take(await (self._open() if self._reply is None else self._read()))
        except BaseException:
            self._drop()
            raise

    def _take(self, events: list[StreamEvent]) -> None:
        last = events[-1] if events else None
        if isinstance(last, StreamFailure):
            self._drop()
            events = self._handle_failure(events, last)
        elif self._reader is not None and self._reader.done:
            self._over = True
            if self._reply is not None:
                self._reply.leave()
                self._reply = None
        self._events = events

    async def _open(self) -> list[StreamEvent]:
        provider = self._provider
        if self._delay:
            await provider.clock.sleep(self._delay)
        self._reader, self._unread = None, b""
        self._has_data, self._headers = False, {}
        outgoing = provider.build_request(self._request, stream=not self._plain)
        try:
            async with provider.clock.timeout(self._timeout):
                reply = await provider.transport.send(outgoing)
        except TransportError as error:
            return [broken(error.kind, str(error))]
        except UrlError as error:
            raise ProviderSetupError(str(error)) from error
        except TimeoutError:
            return [self._stall_failure()]
        self._reply = reply
        self._headers = reply.headers
        if not 200 <= reply.status < 300:
            return [await self._read_refusal(reply)]
        tools = {tool.name for tool in self._request.tools}
        self._reader = provider.api.reader(self._request.history.call_ids, tools)
        return []

    async def _read(self) -> list[StreamEvent]:
        assert self._reply is not None
        assert self._reader is not None
        self._yielded_call = self._reader.announced  # all earlier events were yielded: reading starts when none is left
        if self._unread:
            await asyncio.sleep(0)  # others get their turn, for example the keys of a terminal
            return self._reader.feed(self._next_piece(self._unread))
        try:
            async with self._provider.clock.timeout(self._timeout):
                data = await self._reply.read()
        except TransportError as error:
            events = self._reader.end()  # the answer may have been complete before the connection broke
            return events if isinstance(events[-1], MessageEnd) else [broken(error.kind, str(error))]
        except TimeoutError:
            return [self._stall_failure()]
        self._has_data = True
        return self._reader.feed(self._next_piece(data)) if data else self._reader.end()

    def _next_piece(self, data: bytes) -> bytes:
        self._unread = data[MAX_PIECE:]
        return data[:MAX_PIECE]

    async def _read_refusal(self, reply: Response) -> StreamFailure:
        body = b""
        try:
            async with self._provider.clock.timeout(self._timeout):
                while len(body) < MAX_ERROR_BODY and (data := await reply.read()):
                    body += data
        except (TransportError, TimeoutError):
            pass  # the status says enough
        wait = retry_after(reply.headers, self._provider.clock.time())
        return from_status(reply.status, body, wait, reply.headers.get("x-should-retry", ""))

    def _handle_failure(self, events: list[StreamEvent], failure: StreamFailure) -> list[StreamEvent]:
        """Retry and drop the events that were not yielded yet; or yield everything and end."""
        provider = self._provider
        limit = attempt_limit(provider.retry, failure, fallbacks=bool(self._fallbacks))
        step = next_step(
            provider.retry,
            failure,
            self._attempt,
            announced=self._yielded_call,
            plain=self._plain,
            fallbacks=bool(self._fallbacks),
            random=provider.random,
        )
        if step is None:
            self._over = True
            return [*events[:-1], self._explain(failure)]
        self._attempt += 1
        self._delay, self._plain = step.delay, step.plain
        if step.next_model:
            self._attempt = 1
            self._request = replace(self._request, model=self._fallbacks.pop(0))
        return [StreamRetry(failure, self._attempt, step.delay, self._request.model, limit)]

    def _explain(self, failure: StreamFailure) -> StreamFailure:
        """The failure with what was asked where, and what to try next."""
        asked = [self._provider.url, f"model {self._request.model!r}"]
        if request_id := next(filter(None, map(self._headers.get, REQUEST_IDS)), ""):
            asked.append(f"request id {request_id[:200]}")
        return replace(failure, asked=", ".join(asked), hint=self._provider.advise(failure, self._request.model))

    @property
    def _timeout(self) -> float:
        return self._provider.timeouts.whole if self._plain else self._provider.timeouts.idle

    def _stall_failure(self) -> StreamFailure:
        if self._has_data:
            return broken("stalled", f"the server said nothing for {self._timeout:g} s")
        # a server that never began would only get more to do
        text = f"the server took the request and said nothing for {self._timeout:g} s"
        return StreamFailure("stalled", text, retryable=False)

    def _drop(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.abort()
