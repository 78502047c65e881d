"""ToolSearch: load the definitions of tools that were held back."""

from typing import Protocol

from pydantic import Field

from handrail.conversation.blocks import ToolReference
from handrail.tools.cards import Card
from handrail.tools.context import ToolContext
from handrail.tools.output import Output
from handrail.tools.schema import Input
from handrail.tools.tool import Tool


class Searching(Protocol):
    """Finds tools and loads them; the catalog of the run."""

    def search(self, query: str, limit: int) -> list[str]: ...

    def activate(self, names: list[str]) -> None: ...


class ToolSearchInput(Input):
    query: str = Field(description="`select:A,B` for names, or keywords; `+word` must be in the name.")
    max_results: int = Field(default=5, ge=1, le=50, description="How many tools at the most.")


class ToolSearch(Tool[ToolSearchInput]):
    name = "ToolSearch"
    search_hint = "find load discover deferred capability"
    input_model = ToolSearchInput
    always_load = True

    def __init__(self, catalog: Searching) -> None:
        self._catalog = catalog

    def is_read_only(self, args: ToolSearchInput) -> bool:
        return True

    def is_concurrency_safe(self, args: ToolSearchInput) -> bool:
        return True

    async def call(self, args: ToolSearchInput, ctx: ToolContext) -> Output:
        found = [name for name in self._catalog.search(args.query, args.max_results) if name != self.name]
        self._catalog.activate(found)
        card = Card(title=f"ToolSearch {args.query}", detail=f"{len(found)} tools")
        if not found:
            return Output(text=f"No tool fits {args.query!r}. Try other words, or fewer.", card=card)
        return Output(blocks=tuple(ToolReference(name) for name in found), data=found, card=card)
