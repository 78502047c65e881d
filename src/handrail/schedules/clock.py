"""The time that schedules go by."""

import time


def now() -> float:
    """Seconds since 1970."""
    return time.time()
