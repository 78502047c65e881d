"""Handles SIGINT, SIGTERM and SIGHUP of a run."""

import asyncio
import os
import signal
from collections.abc import Callable

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
AT_ONCE = 0.5
"""Seconds within which further signals count as the first one."""


def on_signals(stop: Callable[[], None]) -> Callable[[], int | None]:
    """
    Call `stop` at the first signal. The returned function gives the exit code once there was a signal.

    A second signal ends the process at once. Two within half a second count as one: wrappers pass on what we got. A
    hang-up that the parent ignores (`nohup`) stays ignored.
    """
    loop = asyncio.get_running_loop()
    heard: list[tuple[int, float]] = []

    def hear(number: signal.Signals) -> None:
        heard.append((CODES[number], loop.time()))
        code, first = heard[0]
        if len(heard) == 1:
            stop()
        elif loop.time() - first > AT_ONCE:
            os._exit(code)

    for number in CODES:
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, hear, number)
    return lambda: heard[0][0] if heard else None
