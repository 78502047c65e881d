"""What web tools are given by their session: options, a model that reads pages, and a search service."""

from typing import Protocol

from handrail.conversation.stream import Usage
from handrail.records import record


@record
class WebOptions:
    """How pages are fetched. `per_minute` is how often one host is asked."""

    robots: bool = True
    """Whether robots.txt is respected."""
    per_minute: int = 30
    max_bytes: int = 10_000_000
    seconds: float = 30.0


@record
class PageAnswer:
    """What a model said about a page, and the tokens that it used. With a `problem` there is no answer."""

    text: str
    used: tuple[tuple[str, Usage], ...] = ()
    problem: str = ""


class PageReader(Protocol):
    """A model that answers questions about pages."""

    async def answer(self, question: str, page: str) -> PageAnswer:
        """The answer from the text of the page, which is foreign."""
        ...


@record
class SearchQuery:
    """What is searched for. Only hits of the allowed domains count, if there are any, and none of the blocked ones."""

    text: str
    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    count: int = 10


@record
class SearchHit:
    """A page that a search found, in the words of the search service."""

    title: str
    url: str
    text: str = ""
    age: str = ""


@record
class SearchAnswer:
    """The hits, what a model said about them, if one was asked, and the tokens that it used."""

    hits: tuple[SearchHit, ...]
    text: str = ""
    used: tuple[tuple[str, Usage], ...] = ()


class SearchBackend(Protocol):
    """A search service."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def address(self) -> str:
        """Where queries are sent."""
        ...

    async def search(self, query: SearchQuery) -> SearchAnswer:
        """Raises ToolError if there is no answer."""
        ...
