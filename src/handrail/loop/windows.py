"""How many tokens a model's window holds, as data."""

from functools import lru_cache

# unknown models get a small window: an early summary costs little, a request that is too long costs the turn
DEFAULT_WINDOW = 32_000

WINDOWS = {
    8_000: "gpt-4",
    16_000: "gpt-3.5",
    40_000: "magistral",
    100_000: "claude-2",
    128_000: "gpt-5-chat gpt-4o gpt-4-turbo gpt-oss grok deepseek glm kimi qwen3 mistral codestral devstral "
    "ministral command llama-4 llama-3",
    200_000: "claude o1 o3 o4 codex glm-4.6 glm-5 minimax",
    256_000: "grok-4 kimi-k2-0905 qwen3-coder",
    272_000: "gpt-5",
    1_000_000: "gpt-4.1 gemini",
    2_000_000: "gemini-1.5-pro",
}
"""The beginnings of models' names by the size of their window; the longest that fits counts."""
BY_START = {start: size for size, starts in WINDOWS.items() for start in starts.split()}


@lru_cache(maxsize=64)
def window_of(model: str) -> int:
    """The window of a model, by its own name without the provider's prefix."""
    name = model.lower().rpartition("/")[2].removeprefix("anthropic.").removeprefix("meta-")
    return BY_START.get(max(filter(name.startswith, BY_START), key=len, default=""), DEFAULT_WINDOW)
