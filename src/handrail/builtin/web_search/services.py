"""Search services that answer with JSON over HTTP: SearXNG by its address, Brave and Tavily by key."""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from handrail.errors import HandrailError, ToolError
from handrail.http.client import HttpClient
from handrail.http.transport import HttpRequest
from handrail.records import record
from handrail.tools.web import SearchAnswer, SearchHit, SearchQuery

MAX_BYTES = 2_000_000
SECONDS = 20.0
ACCEPT = (("accept", "application/json"), ("user-agent", "handrail (a tool of an AI agent)"))
BRAVE, TAVILY = "https://api.search.brave.com/res/v1/web/search", "https://api.tavily.com/search"


@record
class Searxng:
    """A SearXNG server."""

    env: Mapping[str, str]
    address: str

    name = "SearXNG"

    async def search(self, query: SearchQuery) -> SearchAnswer:
        """Ask it, with the domains as words of the query."""
        url = f"{self.address.rstrip('/')}/search?q={quote(with_sites(query), safe='')}&format=json"
        hint = "Its settings.yml has to name json under search.formats."
        found = await ask(self, HttpRequest(url, ACCEPT, b"", "GET"), hint)
        return SearchAnswer(hits(found.get("results"), text="content", age="publishedDate"))


@record
class Brave:
    """Brave Search."""

    env: Mapping[str, str]
    key: str
    address: str = BRAVE

    name = "Brave"

    async def search(self, query: SearchQuery) -> SearchAnswer:
        """Ask it, with the domains as words of the query."""
        url = f"{self.address}?q={quote(with_sites(query)[:400], safe='')}&count={min(query.count, 20)}"
        request = HttpRequest(url, (*ACCEPT, ("x-subscription-token", self.key)), b"", "GET")
        found = await ask(self, request, "Check BRAVE_API_KEY.")
        web = found.get("web")
        return SearchAnswer(hits(web.get("results") if isinstance(web, dict) else (), text="description", age="age"))


@record
class Tavily:
    """Tavily."""

    env: Mapping[str, str]
    key: str
    address: str = TAVILY

    name = "Tavily"

    async def search(self, query: SearchQuery) -> SearchAnswer:
        """Ask it; it knows domains."""
        wanted = {
            "query": query.text,
            "max_results": min(query.count, 20),
            "include_domains": list(query.allowed),
            "exclude_domains": list(query.blocked),
        }
        headers = (*ACCEPT, ("content-type", "application/json"), ("authorization", f"Bearer {self.key}"))
        found = await ask(
            self, HttpRequest(self.address, headers, json.dumps(wanted).encode()), "Check TAVILY_API_KEY."
        )
        return SearchAnswer(hits(found.get("results"), text="content", age="published_date"))


async def ask(service: "Searxng | Brave | Tavily", request: HttpRequest, hint: str) -> Mapping[str, Any]:
    """The JSON object that a service answers. Raises ToolError, with the hint if the service refuses us."""
    try:
        async with HttpClient(service.env, proxy_loopback=False, keep_alive=False) as client:
            answer = await client.fetch(request, max_bytes=MAX_BYTES, timeout=SECONDS)
    except TimeoutError as error:
        raise ToolError(f"{service.name} gave no answer within {SECONDS:g} seconds. Try again later.") from error
    except HandrailError as error:
        raise ToolError(f"{service.name} cannot be reached: {error}. Tell the user.") from error
    if answer.status == 429:
        raise ToolError(f"{service.name} refuses more searches for now (status 429). Go on without, or wait.")
    if answer.status != 200:
        raise ToolError(f"{service.name} answered with status {answer.status}. {hint} Tell the user.")
    try:
        found = json.loads(answer.body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ToolError(f"{service.name} at {service.address} did not answer with JSON. {hint} Tell the user.")
    return found


def with_sites(query: SearchQuery) -> str:
    """The query with its domains, as most services read them."""
    allowed = " OR ".join(f"site:{domain}" for domain in query.allowed)
    blocked = (f"-site:{domain}" for domain in query.blocked)
    return " ".join(filter(None, (query.text, f"({allowed})" if len(query.allowed) > 1 else allowed, *blocked)))


def hits(found: object, *, text: str, age: str) -> tuple[SearchHit, ...]:
    """The hits of an answer; what is no hit is left out."""
    rows: Iterable[Any] = found if isinstance(found, list) else ()
    return tuple(
        SearchHit(_text(row.get("title")), _text(row.get("url")), _text(row.get(text)), _text(row.get(age)))
        for row in rows
        if isinstance(row, dict) and _text(row.get("url")).startswith(("http://", "https://"))
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
