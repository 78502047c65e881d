"""The catalog: the one changing thing about tools in a run. It makes a new pool only when something changed."""

from collections.abc import Iterable
from dataclasses import replace

from handrail.tools.pool import AnyTool, Ingredients, Pool, assemble, with_activated
from handrail.tools.search import Searchable, SearchIndex
from handrail.tools.tool import PLAIN_VIEW


class Catalog:
    """Holds the ingredients and the pool made from them; searches what is held back and activates what was found."""

    def __init__(self, ingredients: Ingredients) -> None:
        self._ingredients = ingredients
        self._pool: Pool | None = None
        self._index: SearchIndex | None = None

    @property
    def pool(self) -> Pool:
        """The pool of the next request."""
        if self._pool is None:
            self._pool = assemble(self._ingredients)
        return self._pool

    def refresh(self, *, mcp: tuple[AnyTool, ...]) -> Pool:
        """Take over the tools that MCP servers offer now. What was activated stays so, even if it goes for a while."""
        if mcp != self._ingredients.mcp:
            self._renew(replace(self._ingredients, mcp=mcp))
            self._index = None
        return self.pool

    def search(self, query: str, limit: int) -> list[str]:
        """Names of tools that fit, best first, from all that wait or waited behind the search."""
        if self._index is None:
            self._index = SearchIndex(
                Searchable(tool.name, tool.search_hint, tool.prompt(PLAIN_VIEW)) for tool in self.pool.tools
            )
        return self._index.find(query, limit)

    def activate(self, names: Iterable[str]) -> None:
        """Send the full definitions of these from the next request on."""
        held = set(self.pool.deferred)
        new = [name for name in names if name in held]
        if new:
            self._renew(with_activated(self._ingredients, new))

    def _renew(self, ingredients: Ingredients) -> None:
        self._ingredients = ingredients
        self._pool = None


def announcement(pool: Pool) -> str:
    """The note that tells the model which tools it could search for; empty when none is held back."""
    if not pool.deferred:
        return ""
    return "More tools can be loaded with ToolSearch before they are used:\n" + "\n".join(pool.deferred)
