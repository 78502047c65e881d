"""
Fetches a page: every address that its host has is judged before one of them is connected to, and so is every redirect.

    judge the addresses -> robots.txt -> wait for our turn -> ask -> redirect on the same host: again

A redirect to another host is reported, not followed: whether that host may be reached is another question.
"""

import asyncio
import ipaddress
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import quote

from handrail.builtin.web_fetch.robots import MAX_BYTES as MAX_ROBOTS
from handrail.builtin.web_fetch.robots import RobotsRule, may_fetch, read_robots
from handrail.errors import HandrailError, ToolError, TransportError
from handrail.http.addresses import CAREFUL, address_class
from handrail.http.client import HttpClient, WholeResponse, look_up
from handrail.http.content_coding import ACCEPTED, decode_body
from handrail.http.transport import HttpRequest
from handrail.http.urls import IN_PATH
from handrail.http.web_url import WebTarget, canonical_url, next_url
from handrail.records import record
from handrail.tools.web import WebOptions

MAX_HOPS = 5
ROBOTS_SECONDS = 10.0
KEPT_SECONDS = 15 * 60
MAX_WAIT = 10.0
MINUTE = 60.0
HEADERS = (
    ("user-agent", "handrail (a tool of an AI agent; fetches single pages for a person)"),
    ("accept", "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, application/json;q=0.8, */*;q=0.5"),
    ("accept-encoding", ACCEPTED),
    ("accept-language", "en, *;q=0.5"),
    ("connection", "close"),
)
REDIRECTS = frozenset((301, 302, 303, 307, 308))

JudgeAddress: TypeAlias = Callable[[WebTarget, str], Awaitable[None]]
"""Raises ToolError if a host may not be reached at this address, which leads inside."""


@record
class FetchedPage:
    """What a server answered, decompressed; `cut` if it was more than may be read."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool


@record
class Redirected:
    """The page is at another place, which was not asked."""

    url: str
    to: str
    status: int


@record
class SiteMemory:
    """What is remembered of hosts between calls: when they were asked, and their rules for robots."""

    asked: dict[str, deque[float]] = field(default_factory=dict)
    robots: dict[str, tuple[float, tuple[RobotsRule, ...]]] = field(default_factory=dict)
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class PageFetcher:
    """Fetches for one call. `judge` is asked about addresses that lead further inside than the host's name says."""

    def __init__(self, env: Mapping[str, str], options: WebOptions, memory: SiteMemory, judge: JudgeAddress) -> None:
        self._options = options
        self._memory = memory
        self._judge = judge
        self._addresses: dict[str, Sequence[str]] = {}
        self._client = HttpClient(env, keep_alive=False, proxy_loopback=False, resolve=self._judged_addresses)

    async def fetch(self, target: WebTarget) -> FetchedPage | Redirected:
        """The page. Raises ToolError if it cannot or may not be had."""
        for _ in range(MAX_HOPS + 1):
            url = canonical_url(target)
            await self._judge_host(target)
            await self._respect_robots(target)
            await self._wait_for_turn(target.host)
            answer = await self._ask(url, self._options.max_bytes, self._options.seconds)
            location = answer.headers.get("location", "")
            if answer.status not in REDIRECTS or not location:
                return self._page(url, answer)
            following = _check_target(next_url(url, location))
            if not _same_place(target, following):
                return Redirected(url, canonical_url(following), answer.status)
            target = following
        raise ToolError(f"{target.host} redirects more than {MAX_HOPS} times. Fetch another page.")

    async def _judged_addresses(self, host: str, _port: int) -> Sequence[str]:
        return self._addresses[host]

    async def _judge_host(self, target: WebTarget) -> None:
        """Look up the addresses of a host and judge each of them; only these are connected to."""
        if target.host in self._addresses:
            return
        try:
            async with asyncio.timeout(self._options.seconds):
                found = await look_up(target.host, target.port)
        except (OSError, UnicodeError) as error:
            if self._client.proxy_of(canonical_url(target)) is None:
                why = "no answer in time" if isinstance(error, TimeoutError) else str(error)
                raise ToolError(f"There is no address for {target.host!r}: {why}. Check the URL.") from error
            found = ()  # the proxy looks it up
        for address in found:
            reach = address_class(ipaddress.ip_address(address))
            if CAREFUL.index(reach) > CAREFUL.index(target.reach):
                await self._judge(target, address)
        self._addresses[target.host] = found

    async def _respect_robots(self, target: WebTarget) -> None:
        if not self._options.robots:
            return
        url = canonical_url(target)
        origin, _, path = url.partition("//")[2].partition("/")
        site = f"{target.scheme}://{origin}"
        known = self._memory.robots.get(site)
        if known is None or self._memory.now() - known[0] > KEPT_SECONDS:
            known = (self._memory.now(), await self._robots(site))
            self._memory.robots[site] = known
        if not may_fetch(known[1], f"/{path}"):
            raise ToolError(
                f"{site}/robots.txt asks programs not to fetch {url}. Use another source, or ask the user, who can "
                'fetch it, or set {"webFetch": {"robots": false}} in the settings.'
            )

    async def _robots(self, site: str) -> tuple[RobotsRule, ...]:
        """The rules of a site. Without the file everything may be fetched; if the server fails, nothing (RFC 9309)."""
        target = _check_target(next_url(f"{site}/", "/robots.txt"))
        for _ in range(MAX_HOPS + 1):
            url = canonical_url(target)
            answer = await self._ask(url, MAX_ROBOTS, ROBOTS_SECONDS)
            location = answer.headers.get("location", "")
            if answer.status in REDIRECTS and location:
                following = next_url(url, location)
                if following.problem or following.refused or not _same_place(target, following):
                    return ()
                target = following
                continue
            if answer.status >= 500:
                return (RobotsRule("/", allows=False),)
            return read_robots(self._page(url, answer).body.decode("utf-8", "replace")) if answer.status < 300 else ()
        return ()

    async def _wait_for_turn(self, host: str) -> None:
        """Wait until the host may be asked again; if that takes long, say so instead."""
        memory, limit = self._memory, max(1, self._options.per_minute)
        asked = memory.asked.setdefault(host, deque(maxlen=limit))
        if len(asked) == limit and (wait := asked[0] + MINUTE - memory.now()) > 0:
            if wait > MAX_WAIT:
                raise ToolError(
                    f"{host} was asked {limit} times within a minute, which is the limit. Try again in {wait:.0f} "
                    "seconds, or go on with what you have."
                )
            await memory.sleep(wait)
        asked.append(memory.now())

    async def _ask(self, url: str, max_bytes: int, seconds: float) -> WholeResponse:
        try:
            return await self._client.fetch(HttpRequest(url, HEADERS, b"", "GET"), max_bytes=max_bytes, timeout=seconds)
        except TimeoutError as error:
            raise ToolError(f"{url} did not answer completely within {seconds:g} seconds. Try another page.") from error
        except HandrailError as error:
            hint = (
                " A page without https has to be asked for with its port, http://host:80/." if "https:" in url else ""
            )
            raise ToolError(f"{error}.{hint}") from error

    def _page(self, url: str, answer: WholeResponse) -> FetchedPage:
        try:
            body, more = decode_body(answer.body, answer.headers.get("content-encoding", ""), self._options.max_bytes)
        except TransportError as error:
            raise ToolError(f"{url}: {error}. Try another page.") from error
        return FetchedPage(url, answer.status, answer.headers, body, answer.cut or more)


def status_text(status: int) -> str:
    """A status as servers name it."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _check_target(target: WebTarget) -> WebTarget:
    """The target of a redirect. Raises ToolError if it is none that may be fetched."""
    why = target.problem or target.refused or target.doubt
    if why:
        raise ToolError(
            f"The page redirects to {quote(target.url[:200], safe=IN_PATH)!r}, which is not followed: {why}. "
            "Fetch another page."
        )
    return target


def _same_place(before: WebTarget, after: WebTarget) -> bool:
    """Whether a redirect stays with the host, scheme and port that were allowed, or only turns to https."""
    if before.host != after.host:
        return False
    upgraded = before.scheme == "http" and before.port == 80 and after.ordinary
    return upgraded or (before.scheme, before.port) == (after.scheme, after.port)
