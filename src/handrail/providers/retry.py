"""Whether and how to retry, decided purely."""

from collections.abc import Callable

from handrail.conversation.stream import StreamFailure
from handrail.records import record

BROKEN_STREAM = frozenset({"cut", "stalled", "malformed", "inconsistent"})
OVERLOAD = frozenset({429, 503, 529})
NO_STREAMING = frozenset({400, 404, 405, 422, 501})


@record
class RetryPolicy:
    """
    `attempts` counts requests to one model, the first included. Delays double from `first_delay` up to `longest_delay`.

    A server that asks to wait longer than `longest_wait` is not waited for. After `overload_attempts` the next fallback
    model is asked instead of an overloaded one. Where nothing listens on this machine, `refused_attempts` are enough.
    """

    attempts: int = 6
    overload_attempts: int = 3
    refused_attempts: int = 3
    first_delay: float = 0.5
    longest_delay: float = 32.0
    longest_wait: float = 120.0


@record
class Retry:
    """Retry after `delay` seconds; `plain`: without streaming, `next_model`: with the next fallback model."""

    delay: float
    plain: bool = False
    next_model: bool = False


def attempt_limit(policy: RetryPolicy, failure: StreamFailure, *, fallbacks: bool) -> int:
    """How many requests one model gets when they fail like this, the first included."""
    if failure.kind == "refused":
        return min(policy.refused_attempts, policy.attempts)
    return policy.overload_attempts if fallbacks and failure.status in OVERLOAD else policy.attempts


def next_step(
    policy: RetryPolicy,
    failure: StreamFailure,
    attempt: int,
    *,
    announced: bool,
    plain: bool,
    fallbacks: bool,
    random: Callable[[], float],
) -> Retry | None:
    """
    What to do about a failure of attempt number `attempt` (from 1); None = give up.

    `announced`: a tool call of the answer was yielded, so its side effect may have begun and must not be repeated.
    """
    if announced:
        return None
    if not failure.retryable:
        if not plain and failure.status in NO_STREAMING and "stream" in failure.message.lower():
            return Retry(0.0, plain=True)
        is_model_at_fault = failure.status == 404 or failure.kind == "stalled"
        return Retry(0.0, plain, next_model=True) if fallbacks and is_model_at_fault else None
    limit = attempt_limit(policy, failure, fallbacks=fallbacks)
    wait = failure.retry_after
    if attempt >= limit or (wait is not None and wait > policy.longest_wait):
        return Retry(0.0, plain, next_model=True) if fallbacks else None
    if wait is None:
        backoff = min(policy.longest_delay, policy.first_delay * 2 ** (attempt - 1))
        wait = backoff * (0.5 + random() / 2)
    else:
        wait += random() * min(1.0, policy.first_delay)  # many clients are told to come back at the same moment
    # a stream that breaks often breaks again at the same place; an answer in one piece does not
    return Retry(wait, plain or failure.kind in BROKEN_STREAM)
