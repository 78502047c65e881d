"""ToolSearch: load the definitions of deferred tools."""

from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.conversation.blocks import ToolReference
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.search import Searching


class ToolSearchInput(PlainInput):
    query: str = Field(max_length=1000, description="`select:A,B` for names, or keywords; `+word` must be in the name.")
    max_results: int = Field(default=5, ge=1, le=50, description="How many tools at the most.")


class ToolSearch(ReadOnlyTool[ToolSearchInput]):
    name = "ToolSearch"
    search_hint = "find load discover deferred capability"
    input_model = ToolSearchInput
    always_load = True

    def __init__(self, catalog: Searching) -> None:
        self._catalog = catalog

    def access(self, args: ToolSearchInput, run: RunContext) -> Access:
        return Access.bookkeeping(width="shared")

    async def call(self, args: ToolSearchInput, ctx: ToolContext) -> Output:
        found = self._catalog.search(args.query, args.max_results)
        if not args.query.strip().startswith("select:") or len(found) < args.query.count(",") + 1:
            await self._catalog.settle()
            found = self._catalog.search(args.query, args.max_results)
        self._catalog.activate(found)
        card = Card(title=f"ToolSearch {args.query}", detail=f"{len(found)} tools")
        if not found:
            text = f"No tool fits {args.query!r}. Try other words, or fewer.{_missing(ctx.run)}"
            return Output(text=text, card=card)
        return Output(blocks=tuple(ToolReference(name) for name in found), data=found, card=card)


def _missing(run: RunContext) -> str:
    """Which servers cannot be searched now."""
    words = {"pending": "still connecting"}
    missing = [
        f"{name} ({words.get(status, status)})"
        for name, status in run.options.mcp_servers().items()
        if status not in ("connected", "disabled")
    ]
    return f" These MCP servers are not connected: {', '.join(missing[:20])}." if missing else ""
