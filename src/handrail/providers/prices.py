"""
US dollars per million tokens. These are list prices; vendors change them and grant others.

A row holds for every model whose name it begins with (after a vendor prefix such as "anthropic/"); the longest row
wins. A model without a row has no price, which is not the same as a price of zero. `cache_write` is for the five-minute
cache.

In Python, because every run needs it: a file in another format takes 8 ms to parse.
"""

from handrail.records import record


@record
class Price:
    """US dollars per million tokens. A cache price that is None is the price of input."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


PRICES = {
    "claude-opus-4": Price(15.0, 75.0, cache_read=1.5, cache_write=18.75),
    "claude-opus-4-5": Price(5.0, 25.0, cache_read=0.5, cache_write=6.25),
    "claude-opus-4-6": Price(5.0, 25.0, cache_read=0.5, cache_write=6.25),
    "claude-sonnet-4": Price(3.0, 15.0, cache_read=0.3, cache_write=3.75),
    "claude-haiku-4-5": Price(1.0, 5.0, cache_read=0.1, cache_write=1.25),
    "claude-3-7-sonnet": Price(3.0, 15.0, cache_read=0.3, cache_write=3.75),
    "claude-3-5-sonnet": Price(3.0, 15.0, cache_read=0.3, cache_write=3.75),
    "claude-3-5-haiku": Price(0.8, 4.0, cache_read=0.08, cache_write=1.0),
    "claude-3-haiku": Price(0.25, 1.25, cache_read=0.03, cache_write=0.3),
    "gpt-5.2": Price(1.75, 14.0, cache_read=0.175),
    "gpt-5.1": Price(1.25, 10.0, cache_read=0.125),
    "gpt-5": Price(1.25, 10.0, cache_read=0.125),
    "gpt-5-mini": Price(0.25, 2.0, cache_read=0.025),
    "gpt-5-nano": Price(0.05, 0.4, cache_read=0.005),
    "gpt-4.1": Price(2.0, 8.0, cache_read=0.5),
    "gpt-4.1-mini": Price(0.4, 1.6, cache_read=0.1),
    "gpt-4o": Price(2.5, 10.0, cache_read=1.25),
    "gpt-4o-mini": Price(0.15, 0.6, cache_read=0.075),
    "o3": Price(2.0, 8.0, cache_read=0.5),
    "o4-mini": Price(1.1, 4.4, cache_read=0.275),
    "deepseek-chat": Price(0.28, 0.42, cache_read=0.028),
    "deepseek-reasoner": Price(0.28, 0.42, cache_read=0.028),
}
