"""What answers cost, from the table of prices. An unknown model has no price, which is not zero."""

from handrail.conversation.stream import Usage
from handrail.providers.prices import PRICES, Price

MILLION = 1_000_000
SEARCH_DOLLARS = 0.01
"""What each provider that searches takes for one search."""
BEFORE_VERSION = frozenset("-@:") | {""}
"""What may follow the name of a row: nothing, or a version."""


def price_of(model: str) -> Price | None:
    """The price of a model: the longest row that its name begins with, at the end of a word."""
    bare = model.rpartition("/")[2].removeprefix("anthropic.").removeprefix("openai.")
    begun = [name for name in PRICES if bare.startswith(name)]
    rows = [name for name in begun if bare[len(name) :][:1] in BEFORE_VERSION]
    return PRICES[max(rows, key=len)] if rows else None


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """Dollars for one answer; None if the price or the counts are unknown."""
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    total = (
        usage.fresh_input * price.input
        + (usage.cache_read_tokens or 0) * read
        + (usage.cache_write_tokens or 0) * write
        + usage.whole_output * price.output
    )
    return total / MILLION + (usage.web_searches or 0) * SEARCH_DOLLARS
