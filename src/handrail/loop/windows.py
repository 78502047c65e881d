"""How many tokens a model's window holds, as data. The first row whose beginning fits the model's name wins."""

# what is not known is taken to be small: a summary too early costs a little, a request too long costs the turn
DEFAULT_WINDOW = 32_000

WINDOWS: tuple[tuple[str, int], ...] = (
    ("claude-2", 100_000),
    ("claude", 200_000),
    ("gpt-5-chat", 128_000),
    ("gpt-5", 272_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 8_000),
    ("gpt-3.5", 16_000),
    ("gpt-oss", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("codex", 200_000),
    ("gemini-1.5-pro", 2_000_000),
    ("gemini", 1_000_000),
    ("grok-4", 256_000),
    ("grok", 128_000),
    ("deepseek", 128_000),
    ("glm-4.6", 200_000),
    ("glm-5", 200_000),
    ("glm", 128_000),
    ("kimi-k2-0905", 256_000),
    ("kimi", 128_000),
    ("qwen3-coder", 256_000),
    ("qwen3", 128_000),
    ("mistral", 128_000),
    ("codestral", 128_000),
    ("devstral", 128_000),
    ("magistral", 40_000),
    ("ministral", 128_000),
    ("command", 128_000),
    ("minimax", 200_000),
    ("llama-4", 128_000),
    ("llama-3", 128_000),
)


def window_of(model: str) -> int:
    """The window of a model, by its own name without the provider's prefix."""
    name = model.lower().rpartition("/")[2].removeprefix("anthropic.").removeprefix("meta-")
    return next((tokens for start, tokens in WINDOWS if name.startswith(start)), DEFAULT_WINDOW)
