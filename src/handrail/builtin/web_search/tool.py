"""WebSearch: ask a search service of the person's choice."""

import re
import time

from handrail.builtin.services import ToolServices
from handrail.builtin.support.foreign_text import mark_foreign
from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.builtin.web_fetch.hidden import visible
from handrail.errors import ToolError
from handrail.http.web_url import read_url
from handrail.lazy import lazy_pattern
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import PermissionSnapshot, Refuse
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.web import SearchHit, SearchQuery
from handrail.tools.wording import several

MAX_TITLE, MAX_TEXT = 200, 500
DOMAIN = lazy_pattern(r"[a-z0-9*](?:[a-z0-9.*-]{0,251}[a-z0-9])?\Z")
DENIED = lazy_pattern(r"WebFetch\(domain:([^():]+)\)\Z")


class WebSearchInput(PlainInput):
    query: str = Field(min_length=2, max_length=1000, description="What to search for.")
    allowed_domains: list[str] | None = Field(default=None, description="Only pages of these domains.")
    blocked_domains: list[str] | None = Field(default=None, description="No pages of these domains.")


class WebSearch(ReadOnlyTool[WebSearchInput]):
    name = "WebSearch"
    search_hint = "google internet find news current online lookup"
    input_model = WebSearchInput
    should_defer = True
    interrupt = "cancel"

    def __init__(self, services: ToolServices) -> None:
        self._search = services.search
        self._limit = services.max_searches
        self._searches = 0

    def access(self, args: WebSearchInput, run: RunContext) -> Access:
        """The person chose the service, so rules about addresses are not about it. The query leaves all the same."""
        return Access(consults=(self._search.address if self._search else "",), width="shared")

    def summary(self, args: WebSearchInput) -> str:
        return f"WebSearch({args.query})"

    def classifier_text(self, args: WebSearchInput) -> str:
        return args.query

    async def validate(self, args: WebSearchInput, ctx: ToolContext) -> Refuse | None:
        if self._search is None:
            return Refuse("There is no search service in this run. `handrail doctor` tells the user how to have one.")
        if args.allowed_domains and args.blocked_domains:
            return Refuse("Give allowed_domains or blocked_domains, not both.")
        for domain in (*(args.allowed_domains or ()), *(args.blocked_domains or ())):
            if not DOMAIN.match(domain.lower()):
                return Refuse(f"{domain!r} is not a domain. Give it like example.com, without https:// and path.")
        return None

    async def call(self, args: WebSearchInput, ctx: ToolContext) -> Output:
        assert self._search is not None
        if self._searches >= self._limit:
            raise ToolError(f"The {self._limit} searches of this session are used up. Go on with what you have.")
        self._searches += 1
        start = time.monotonic()
        allowed = tuple(domain.lower() for domain in args.allowed_domains or ())
        blocked = (*(domain.lower() for domain in args.blocked_domains or ()), *denied_domains(ctx.permissions))
        ctx.progress(Progress(f"asking {self._search.name}"))
        query = SearchQuery(args.query, allowed, () if allowed else blocked)
        answer = await self._search.search(query)
        hits = tuple(hit for hit in answer.hits if fits(hit.url, allowed, blocked))[: query.count]
        text = "\n\n".join(filter(None, (visible(answer.text), *(_hit(at, hit) for at, hit in enumerate(hits, 1)))))
        data = {
            "query": args.query,
            "results": [{"title": hit.title, "url": hit.url} for hit in hits],
            "durationSeconds": round(time.monotonic() - start, 3),
        }
        card = Card(
            title="WebSearch", detail=f"{args.query}: {several(len(hits), 'page')}", body=text, body_kind="markdown"
        )
        if not text:
            return Output(
                text=f"{self._search.name} found nothing. Use other words.", data=data, card=card, used=answer.used
            )
        marked = mark_foreign(text, f"search results of {self._search.name}")
        return Output(text=f"{marked}\n[WebFetch reads a page.]", data=data, card=card, used=answer.used)


def denied_domains(policy: PermissionSnapshot) -> tuple[str, ...]:
    """The domains of deny rules: pages that may not be read are not found either."""
    texts = (text for rules in policy.deny_rules.values() for text in rules)
    return tuple(dict.fromkeys(found[1].strip().lower() for text in texts if (found := DENIED.match(text))))


def fits(url: str, allowed: tuple[str, ...], blocked: tuple[str, ...]) -> bool:
    """Whether a page is of one of the allowed domains, if there are any, and of none of the blocked ones."""
    host = read_url(url).host
    if not host or any(_is_of(host, domain) for domain in blocked):
        return False
    return not allowed or any(_is_of(host, domain) for domain in allowed)


def _is_of(host: str, domain: str) -> bool:
    plain = domain.removeprefix("*.").removesuffix(".")
    if "*" in plain:
        return re.fullmatch(re.escape(plain).replace(r"\*", "[^.]*"), host) is not None
    return host == plain or host.endswith(f".{plain}")


def _hit(number: int, hit: SearchHit) -> str:
    def line(text: str, most: int) -> str:
        return " ".join(visible(text).split())[:most]

    age = f" ({line(hit.age, 40)})" if hit.age else ""
    about = line(hit.text, MAX_TEXT)
    lines = (f"{number}. {line(hit.title, MAX_TITLE) or hit.url}{age}", f"   {hit.url}", f"   {about}" if about else "")
    return "\n".join(filter(None, lines))
