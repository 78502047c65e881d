"""When a model refuses a request because of its length."""

from handrail.conversation.stream import StreamFailure

TOO_LONG = ("too long", "context length", "context window", "maximum context", "too large", "too many tokens")


def too_long(failure: StreamFailure) -> bool:
    """Whether the model refused the request because of its length, as far as its words tell."""
    words = failure.message.lower()
    return failure.status in {400, 413} and any(hint in words for hint in TOO_LONG)
