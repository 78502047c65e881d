"""Runs blocking functions beside the event loop."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")


async def in_thread(function: Callable[[], Result]) -> Result:
    """
    Run the function in a thread of its own.

    A cancelled thread cannot be stopped: it is a daemon, and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # there is a result where there is no error

    def work() -> None:
        result: Result | None = None
        error: BaseException | None = None
        try:
            result = context.run(function)
        except StopIteration as stop:
            error = RuntimeError(f"the function raised {stop!r}, which a future cannot carry")
        except BaseException as raised:  # noqa: BLE001  # it is raised again where the result is awaited
            error = raised
        from_thread(loop, settle, result, error)

    threading.Thread(target=work, name="handrail-tool", daemon=True).start()
    return await future


def from_thread(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: Any) -> None:
    """Call the function in the loop's thread; does nothing if the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *args)


def in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: Any) -> None:
    """
    Call the function at once where the loop runs, and from elsewhere in the loop's next step.

    A loop that stands still gets it too: another thread may start it again at any moment. If it is closed, nothing runs
    there any more, and nothing is called.
    """
    if asyncio._get_running_loop() is loop:  # unlike the public function, it never raises
        function(*args)
    else:
        from_thread(loop, function, *args)
